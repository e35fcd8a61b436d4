"""The three step modes."""

from urlab.manager.modes.direct import DirectMode
from urlab.manager.modes.live import LiveMode
from urlab.manager.modes.mode import Mode
from urlab.manager.modes.puppet import PuppetMode
from urlab_wire.enums import StepMode

MODES: dict[StepMode, type[Mode]] = {mode.name: mode for mode in (LiveMode, DirectMode, PuppetMode)}

__all__ = ["MODES", "Mode"]

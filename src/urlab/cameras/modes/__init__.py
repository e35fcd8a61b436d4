"""What a camera's pixels can mean: one definition per mode."""

from urlab.cameras.modes.depth import DepthMode
from urlab.cameras.modes.mode import Mode, make_mode, mode_kinds
from urlab.cameras.modes.real import RealMode
from urlab.cameras.modes.segmented import InstanceMode, SemanticMode

__all__ = ["DepthMode", "InstanceMode", "Mode", "RealMode", "SemanticMode", "make_mode", "mode_kinds"]

"""MuJoCo's own warnings: into the log as they happen, and into the reply of the step that caused them."""

import logging
from typing import Any

import mujoco

log = logging.getLogger("urlab.physics")

_KINDS = tuple(kind for name, kind in mujoco.mjtWarning.__members__.items() if name != "mjNWARNING")

_NO_WARNINGS = bytes(4 * len(_KINDS))


def route_mujoco_log() -> None:
    """Send MuJoCo's messages to our log instead of the console and a file in the current folder."""
    config = mujoco.MjLogConfig.get()
    config.logto_console = False
    config.logto_file = False
    mujoco.MjLogConfig.set(config)
    mujoco.set_mju_user_warning(_log_warning)


class WarningCounters:
    """Counts of MuJoCo's warnings in one MjData. The owner of the physics lock calls it."""

    def __init__(self, data: Any) -> None:
        self._counters = data.warning
        self._numbers = data.warning.number

    def take(self) -> list[str]:
        """The warnings since the last call, in words."""
        if self._numbers.tobytes() == _NO_WARNINGS:
            return []
        texts = [_words(self._counters[kind], kind) for kind in _KINDS if self._counters[kind].number]
        self._numbers[:] = 0
        return texts


def _words(counter: Any, kind: mujoco.mjtWarning) -> str:
    text = mujoco.mju_warningText(kind, counter.lastinfo).strip()
    if kind in _RESETS:
        text += " MuJoCo has reset the simulation; use a smaller timestep or gentler controls."
    return text if counter.number == 1 else f"{text} ({counter.number} times)"


def _log_warning(message: str) -> None:
    log.warning("MuJoCo: %s", message.strip())


_RESETS = (
    mujoco.mjtWarning.mjWARN_BADQPOS,
    mujoco.mjtWarning.mjWARN_BADQVEL,
    mujoco.mjtWarning.mjWARN_BADQACC,
)

"""The server's physics options, written into the local model."""

from collections.abc import Mapping
from typing import Any

import mujoco

_ENUMS = {
    "integrator": (mujoco.mjtIntegrator, "mjINT_"),
    "cone": (mujoco.mjtCone, "mjCONE_"),
    "solver": (mujoco.mjtSolver, "mjSOL_"),
}
_MASKS = ("disableflags", "enableflags")
_MULTICCD_OFF = int(mujoco.mjtDisableBit.mjDSBL_MULTICCD)
_SLEEP_ON = int(mujoco.mjtEnableBit.mjENBL_SLEEP)


def mirror_options(opt: Any, options: Mapping[str, Any]) -> None:
    """Write echoed options into an mjOption; what has no place there is left out. Named fields win over masks."""
    for name in _MASKS:
        if name in options:
            setattr(opt, name, int(options[name]))
    for name, value in options.items():
        if name in _ENUMS:
            words, stem = _ENUMS[name]
            setattr(opt, name, int(getattr(words, f"{stem}{str(value).upper()}")))
        elif isinstance(value, list | tuple):
            getattr(opt, name)[:] = value
        elif name not in _MASKS and hasattr(opt, name):
            setattr(opt, name, type(getattr(opt, name))(value))
    _mirror_flags(opt, options)


def _mirror_flags(opt: Any, options: Mapping[str, Any]) -> None:
    if "enable_multiccd" in options:
        opt.disableflags = _with_bit(opt.disableflags, _MULTICCD_OFF, not options["enable_multiccd"])
    if "enable_sleep" in options:
        opt.enableflags = _with_bit(opt.enableflags, _SLEEP_ON, bool(options["enable_sleep"]))


def _with_bit(mask: int, bit: int, on: bool) -> int:
    return mask | bit if on else mask & ~bit

"""The physics options that a client may change: checked as a whole, then applied as a whole.

Words and units are the protocol's. Named fields win over the raw masks of the same call.
"""

import copy
from collections.abc import Callable, Mapping
from typing import Any

import mujoco
import numpy as np

from urlab.errors import BadValue, DimMismatch, known
from urlab.numbers import finite_number
from urlab_wire.ops.runtime import OPTION_FIELDS

_INTEGRATORS = {"euler": 0, "rk4": 1, "implicit": 2, "implicitfast": 3}
_CONES = {"pyramidal": 0, "elliptic": 1}
_SOLVERS = {"pgs": 0, "cg": 1, "newton": 2}
_VECTORS = ("gravity", "wind", "magnetic")
_POSITIVE = ("timestep", "impratio")
_NUMBERS = (
    "density", "viscosity", "tolerance", "noslip_tolerance", "ccd_tolerance", "sleep_tolerance",
)  # fmt: skip
_COUNTS = ("iterations", "ls_iterations", "noslip_iterations", "ccd_iterations", "num_worker_threads")
_MASKS = ("disableflags", "enableflags")
_FLAGS = ("enable_multiccd", "enable_sleep")
_WORDS = {"integrator": _INTEGRATORS, "cone": _CONES, "solver": _SOLVERS}
_NOT_IN_MJOPTION = (*_FLAGS, *_MASKS, "num_worker_threads")
_LARGEST_MASK = 2**31 - 1
_MOST_ITERATIONS = 10_000
"""More would let one mj_step run for minutes, which nothing can interrupt."""

_MULTICCD = int(mujoco.mjtDisableBit.mjDSBL_MULTICCD)
_SLEEP = int(mujoco.mjtEnableBit.mjENBL_SLEEP)


def check_options(patch: Mapping[str, Any]) -> dict[str, Any]:
    """The patch in MuJoCo's terms; BadValue or DimMismatch names the first field that is wrong."""
    checked = {}
    for name, value in patch.items():
        if name not in OPTION_FIELDS:
            raise BadValue(f"there is no option {name!r}; there are: {known(OPTION_FIELDS, limit=40)}")
        if value is not None:
            checked[name] = _CHECKS[name](name, value)
    return checked


def apply_options(option: Any, checked: Mapping[str, Any]) -> None:
    """Write a checked patch into an mjOption (of a model or of a spec)."""
    for mask in _MASKS:
        if mask in checked:
            setattr(option, mask, checked[mask])
    for name, value in checked.items():
        if name in _VECTORS:
            getattr(option, name)[:] = value
        elif name not in _NOT_IN_MJOPTION:
            setattr(option, name, value)
    if "enable_multiccd" in checked:
        option.disableflags = _with_bit(option.disableflags, _MULTICCD, not checked["enable_multiccd"])
    if "enable_sleep" in checked:
        option.enableflags = _with_bit(option.enableflags, _SLEEP, checked["enable_sleep"])


def try_options(model: Any, checked: Mapping[str, Any]) -> None:
    """Apply a checked patch to a model, or BadValue and nothing when MuJoCo cannot step with it.

    Only a trial shows that: some flags are for models that are made for them. The caller holds the physics lock.
    """
    before = read_all(model.opt)
    apply_options(model.opt, checked)
    try:
        mujoco.mj_step(model, mujoco.MjData(model))
    except (mujoco.FatalError, mujoco.UnexpectedError) as refused:
        write_all(model.opt, before)
        raise BadValue(f"MuJoCo cannot run this scene with {dict(checked)}: {refused}") from refused


def read_all(option: Any) -> dict[str, Any]:
    """Every field of an mjOption, as copies."""
    return {name: copy.copy(getattr(option, name)) for name in mujoco.MjOption._all_fields}


def write_all(option: Any, values: Mapping[str, Any]) -> None:
    """Write what `read_all` read."""
    for name, value in values.items():
        if isinstance(value, np.ndarray):
            getattr(option, name)[:] = value
        else:
            setattr(option, name, value)


def read_options(option: Any) -> dict[str, Any]:
    """All options in force, in the protocol's words (without the thread counts)."""
    values: dict[str, Any] = {name: getattr(option, name).tolist() for name in _VECTORS}
    values |= {name: float(getattr(option, name)) for name in (*_POSITIVE, *_NUMBERS)}
    values |= {name: int(getattr(option, name)) for name in (*_COUNTS, *_MASKS) if name != "num_worker_threads"}
    values |= {name: _word(words, int(getattr(option, name))) for name, words in _WORDS.items()}
    values["enable_multiccd"] = not option.disableflags & _MULTICCD
    values["enable_sleep"] = bool(option.enableflags & _SLEEP)
    return {name: values[name] for name in OPTION_FIELDS if name in values}


def _word(words: Mapping[str, int], number: int) -> str:
    return next(word for word, value in words.items() if value == number)


def _with_bit(mask: int, bit: int, on: bool) -> int:
    return int(mask) | bit if on else int(mask) & ~bit


def _number(name: str, value: Any) -> float:
    number = finite_number(f"option {name}", value)
    if number < 0:
        raise BadValue(f"option {name} must not be negative, but is {value!r}")
    return number


def _positive(name: str, value: Any) -> float:
    number = _number(name, value)
    if number <= 0:
        raise BadValue(f"option {name} must be above zero, but is {value!r}")
    return number


def _count(name: str, value: Any) -> int:
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    largest = _LARGEST_MASK if name in _MASKS else _MOST_ITERATIONS
    if isinstance(value, bool) or not whole or not 0 <= value <= largest:
        raise BadValue(f"option {name} must be a whole number from 0 to {largest}, not {value!r}")
    return int(value)


def _vector(name: str, value: Any) -> list[float]:
    if not isinstance(value, list | tuple):
        raise BadValue(f"option {name} must be a list of three numbers, not {value!r}")
    if len(value) != 3:
        raise DimMismatch(f"option {name} must have 3 numbers, but has {len(value)}")
    return [finite_number(f"option {name}", number) for number in value]


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise BadValue(f"option {name} must be true or false, not {value!r}")
    return value


def _one_of(name: str, value: Any) -> int:
    words = _WORDS[name]
    word = value.lower() if isinstance(value, str) else ""
    if word not in words:
        raise BadValue(f"option {name} must be one of {known(words)}, not {value!r}")
    return words[word]


_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    **dict.fromkeys(_VECTORS, _vector),
    **dict.fromkeys(_NUMBERS, _number),
    **dict.fromkeys(_POSITIVE, _positive),
    **dict.fromkeys((*_COUNTS, *_MASKS), _count),
    **dict.fromkeys(_FLAGS, _flag),
    **dict.fromkeys(_WORDS, _one_of),
}

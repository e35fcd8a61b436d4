"""What differs between the versions of MuJoCo that the server runs on: 4.0, which it is made for, and 3.8.1 and newer.

Rooms ask here instead of looking at a version.
"""

import importlib.util
import logging
import re
from typing import Any

import mujoco

from urlab.errors import BadValue, ConfigError

log = logging.getLogger("urlab.mujoco")

OLDEST = (3, 8, 1)
VERSION: tuple[int, ...] = tuple(int(number) for number in re.findall(r"\d+", mujoco.__version__)[:3])

ACTUATOR_COUNT = "nactuator" if hasattr(mujoco.MjModel, "nactuator") else "nu"
"""The field of a model that counts its actuators. Before MuJoCo 4 each has one control."""

PID_GAIN: int | None = int(mujoco.mjtGain.mjGAIN_PID) if hasattr(mujoco.mjtGain, "mjGAIN_PID") else None
PID_DYNAMICS: int | None = int(mujoco.mjtDyn.mjDYN_PID) if hasattr(mujoco.mjtDyn, "mjDYN_PID") else None
"""Gain and dynamics of the actuators with several controls that MuJoCo 4 has."""

POST_PROCESSING: int | None = (
    int(mujoco.mjtRndFlag.mjRND_POST_PROCESSING) if hasattr(mujoco.mjtRndFlag, "mjRND_POST_PROCESSING") else None
)
"""The flag of a scene for what MuJoCo 4 does to a finished picture."""

CONTROL_INPUTS: tuple[int, ...] = (
    tuple(int(getattr(mujoco.mjtCtrlInput, f"mjINPUT_{name}")) for name in ("POS", "VEL", "FF"))
    if hasattr(mujoco, "mjtCtrlInput")
    else ()
)
"""The bits of ``actuator_ctrlspec``: position, velocity, feed-forward."""


def check_version() -> None:
    """ConfigError on a MuJoCo that is too old."""
    if VERSION < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise ConfigError(f"MuJoCo {mujoco.__version__} is installed, and the server needs {oldest} or newer")


def has_batches() -> bool:
    """Whether this MuJoCo steps many simulations in one call: ``mujoco.batch`` of MuJoCo 4."""
    return importlib.util.find_spec("mujoco.batch") is not None


def actuator_count(model: Any) -> int:
    """How many actuators a model has."""
    return int(getattr(model, ACTUATOR_COUNT))


def controls_of(model: Any, actuator: int) -> tuple[int, int]:
    """Where the controls of an actuator begin in ``ctrl``, and how many there are."""
    if not hasattr(model, "actuator_ctrladr"):
        return actuator, 1
    return int(model.actuator_ctrladr[actuator]), int(model.actuator_ctrlnum[actuator])


def forces_of(model: Any, actuator: int) -> tuple[int, int]:
    """Where the forces of an actuator begin in ``actuator_force``, and how many there are."""
    if not hasattr(model, "actuator_outadr"):
        return actuator, 1
    return int(model.actuator_outadr[actuator]), int(model.actuator_outnum[actuator])


def authored_actuator(actuator: Any) -> str:
    """The element that an actuator of a spec was written as: ``motor``, ``position``, ..., ``general``.

    Before MuJoCo 4 that is not kept, and is told from what the element's attributes became.
    """
    if hasattr(actuator, "type"):
        return str(actuator.type.name.removeprefix("mjACTUATOR_").lower())
    gain, bias = int(actuator.gaintype), int(actuator.biastype)
    if gain == mujoco.mjtGain.mjGAIN_MUSCLE:
        return "muscle"
    if int(actuator.trntype) == mujoco.mjtTrn.mjTRN_BODY:
        return "adhesion"
    if gain == mujoco.mjtGain.mjGAIN_AFFINE and bias == mujoco.mjtBias.mjBIAS_NONE:
        return "damper"
    if gain != mujoco.mjtGain.mjGAIN_FIXED:
        return "general"
    return "motor" if bias == mujoco.mjtBias.mjBIAS_NONE else _servo(actuator)


def _servo(actuator: Any) -> str:
    """What an actuator with a fixed gain and an affine bias was written as."""
    stiffness, (offset, of_length, of_velocity) = float(actuator.gainprm[0]), map(float, actuator.biasprm[:3])
    dynamics = int(actuator.dyntype)
    if of_length == -stiffness and not offset:
        return "intvelocity" if dynamics == mujoco.mjtDyn.mjDYN_INTEGRATOR else "position"
    if not of_length and of_velocity == -stiffness and not offset:
        return "velocity"
    return "cylinder" if dynamics == mujoco.mjtDyn.mjDYN_FILTER else "general"


def log_without_files() -> None:
    """Write no MUJOCO_LOG.TXT. MuJoCo 3.8 writes none while Python takes its warnings."""
    if hasattr(mujoco, "MjLogConfig"):
        config = mujoco.MjLogConfig.get()
        config.logto_file = False
        mujoco.MjLogConfig.set(config)


def log_without_console() -> None:
    """Print nothing: warnings go to the function that was set for them."""
    if hasattr(mujoco, "MjLogConfig"):
        config = mujoco.MjLogConfig.get()
        config.logto_console = False
        mujoco.MjLogConfig.set(config)


def set_worker_threads(data: Any, count: int) -> None:
    """Resize MuJoCo's pool of threads; BadValue where there is none."""
    if hasattr(mujoco, "mju_threadpool"):
        mujoco.mju_threadpool(data, count)
    elif count:
        raise BadValue(f"num_worker_threads must be 0: MuJoCo {mujoco.__version__} has no pool of threads to set")


def discard_visual(spec: Any) -> None:
    """Take a model's visual geoms out of it; where MuJoCo cannot do that to one model of several, they stay."""
    _call(spec, "discard_visual", "visual geoms stay")


def fuse_static(spec: Any) -> None:
    """Merge a model's fixed bodies into their parents; where MuJoCo cannot, they stay, with the same motion."""
    _call(spec, "fuse_static", "fixed bodies stay bodies of their own")


def _call(spec: Any, method: str, otherwise: str) -> None:
    if hasattr(spec, method):
        getattr(spec, method)()
    else:
        log.warning("model %r: MuJoCo %s has no %s, %s", spec.modelname, mujoco.__version__, method, otherwise)


def present(element: Any, *fields: str) -> list[str]:
    """Those of an element's fields that this version has."""
    return [field for field in fields if hasattr(element, field)]

"""Scaling keyframes: their numbers are in the order of the compiled model."""

from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from urlab.compile.blueprint import MUJOCO_ERRORS, compile_spec
from urlab.compile.scaling_coordinates import Coordinates
from urlab.compile.scaling_stretch import Array, Stretch
from urlab.errors import EditError

_FREE = int(mujoco.mjtJoint.mjJNT_FREE)
_PID = int(mujoco.mjtGain.mjGAIN_PID)
_INPUTS = tuple(int(getattr(mujoco.mjtCtrlInput, f"mjINPUT_{name}")) for name in ("POS", "VEL", "FF"))
_LENGTHY = ("qpos", "qvel", "act", "ctrl", "mpos", "plastic")


def scale_keyframes(spec: Any, whole: Stretch, coordinates: Coordinates) -> None:
    """Scale the lengths in every keyframe; call it first, because the layout comes from compiling ``spec``."""
    stated = [(key, name) for key in spec.keys for name in _LENGTHY if len(getattr(key, name))]
    if not stated:
        return
    try:
        model, _ = compile_spec(spec.copy())
    except MUJOCO_ERRORS as refused:
        raise EditError(f"a model that does not compile cannot be scaled: {refused}") from refused
    layout = _Layout(model, spec, whole, coordinates)
    for key, name in stated:
        setattr(key, name, np.array(list(getattr(key, name))) * getattr(layout, name)())


@dataclass(frozen=True)
class _Layout:
    """What each number of a keyframe is multiplied by; one method per field of a key."""

    model: Any
    spec: Any
    whole: Stretch
    coordinates: Coordinates

    def qpos(self) -> Array:
        return self._of_joints(self.model.nq, self.model.jnt_qposadr)

    def qvel(self) -> Array:
        return self._of_joints(self.model.nv, self.model.jnt_dofadr)

    def mpos(self) -> Array:
        """Mocap bodies are children of the world, so their places are along its axes."""
        return np.tile(self.whole.factors, self.model.nmocap)

    def act(self) -> Array:
        """An activation has the unit of the setpoint that it filters or integrates."""
        factors = np.ones(self.model.na)
        for index, actuator in self._actuators():
            start = int(self.model.actuator_actadr[index])
            factors[start : start + int(self.model.actuator_actnum[index])] = self.coordinates.of_setpoint(actuator)
        return factors

    def ctrl(self) -> Array:
        factors = np.ones(self.model.nu)
        for index, actuator in self._actuators():
            start, setpoint = int(self.model.actuator_ctrladr[index]), self.coordinates.of_setpoint(actuator)
            if int(actuator.gaintype) == _PID:
                given = [bit for bit in _INPUTS if int(self.model.actuator_ctrlspec[index]) & bit]
                factors[start : start + len(given)] = [1.0 if bit == _INPUTS[-1] else setpoint for bit in given]
            else:
                factors[start : start + int(self.model.actuator_ctrlnum[index])] = setpoint
        return factors

    def plastic(self) -> Array:
        """Where yielding springs have come to rest: one number per slide joint or hinge, two per tendon."""
        factors, model = np.ones(self.model.nplastic), self.model
        for joint, start in _placed(model.jnt_plasticadr):
            factors[start] = self.coordinates.of_joint(model.joint(joint).name)
        for tendon, start in _placed(model.tendon_plasticadr):
            factors[start : start + 2] = self.coordinates.of_tendon(model.tendon(tendon).name)
        return factors

    def _of_joints(self, size: int, addresses: NDArray[np.int32]) -> Array:
        """A free joint begins with a place along the world's axes."""
        factors = np.ones(size)
        for joint, start in _placed(addresses):
            if int(self.model.jnt_type[joint]) == _FREE:
                factors[start : start + 3] = self.whole.factors
            else:
                factors[start] = self.coordinates.of_joint(self.model.joint(joint).name)
        return factors

    def _actuators(self) -> list[tuple[int, Any]]:
        names = [self.model.actuator(index).name for index in range(self.model.nactuator)]
        return [(index, self.spec.actuator(name)) for index, name in enumerate(names)]


def _placed(addresses: NDArray[np.int32]) -> list[tuple[int, int]]:
    """Ids and addresses of those that have one."""
    return [(index, int(start)) for index, start in enumerate(addresses) if start >= 0]

"""How a simulation starts, as parameters: positions of joints and poses of objects, changed in an MjData at a reset.

Changes are those of `urlab.physics.parameters` with other kinds and fields: ``joint`` has ``qpos`` and ``qvel``;
``object`` (a free or a mocap body) has ``pos``, ``quat`` and ``yaw_deg``, a turn about the world's z axis.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import cos, radians, sin
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from urlab.errors import BadValue, did_you_mean, known
from urlab.physics.queries import compiled_name
from urlab_wire.ops.stepping import ModelChange

START_FIELDS: Mapping[str, Sequence[str]] = {"joint": ("qpos", "qvel"), "object": ("pos", "quat", "yaw_deg")}

_FREE, _BALL = int(mujoco.mjtJoint.mjJNT_FREE), int(mujoco.mjtJoint.mjJNT_BALL)


class StartState:
    """The parameters of a start, of one model and the data that stands at its start.

    The owner of the physics lock calls what reads or writes the data: `value` and `write`.
    """

    def __init__(self, model: Any, data: Any, prefixes: Iterable[str] = ()) -> None:
        self._model, self._data = model, data
        self._prefixes = tuple(prefixes)
        joints = [model.joint(index) for index in range(model.njnt)]
        self._joints = {one.name: one.id for one in joints if int(model.jnt_type[one.id]) != _FREE}
        bodies = [model.body(index) for index in range(model.nbody)]
        self._objects = {one.name: one.id for one in bodies if self._is_object(one.id)}

    def _is_object(self, body: int) -> bool:
        joint = int(self._model.body_jntadr[body])
        is_free = joint >= 0 and int(self._model.jnt_type[joint]) == _FREE
        return is_free or int(self._model.body_mocapid[body]) >= 0

    def names(self, kind: str, field: str) -> Sequence[str]:
        """The compiled names of joints that are not free, or of free and mocap bodies."""
        return tuple(self._ids(kind, field))

    def find(self, kind: str, name: str, field: str) -> str:
        """The compiled name that ``name`` means; BadValue lists those that exist."""
        words = "free or mocap body" if kind == "object" else "joint that is not free"
        return compiled_name(words, name, self._ids(kind, field), self._prefixes, BadValue)

    def width(self, kind: str, name: str, field: str) -> tuple[int, int]:
        """How many numbers the field takes, twice."""
        ids = self._ids(kind, field)
        if kind == "object":
            count = {"pos": 3, "quat": 4, "yaw_deg": 1}[field]
        else:
            is_ball = int(self._model.jnt_type[ids[name]]) == _BALL
            count = (4 if field == "qpos" else 3) if is_ball else 1
        return count, count

    def limits(self, kind: str, name: str, field: str) -> tuple[float, float]:
        """A joint's own range, where it is limited."""
        if (kind, field) == ("joint", "qpos"):
            joint = self._joints[name]
            if self._model.jnt_limited[joint] and int(self._model.jnt_type[joint]) != _BALL:
                low, high = self._model.jnt_range[joint].tolist()
                return low, high
        return -np.inf, np.inf

    def value(self, kind: str, name: str, field: str) -> list[float]:
        """The numbers that the data has now; of a turn, none yet: 0."""
        if field == "yaw_deg":
            return [0.0]
        numbers: list[float] = self._view(kind, name, field).tolist()
        return numbers

    def write(self, changes: Iterable[ModelChange]) -> None:
        """Put a start into the data, in the order of the changes; what follows from it is left to mj_forward."""
        for change in changes:
            name = self.find(change.kind, change.name, change.field)
            if change.field == "yaw_deg":
                quat, half = self._view("object", name, "quat"), radians(change.value[0]) / 2
                turned = np.empty(4)
                mujoco.mju_mulQuat(turned, np.array([cos(half), 0.0, 0.0, sin(half)]), quat)
                quat[:] = turned
            else:
                self._view(change.kind, name, change.field)[:] = change.value

    def _ids(self, kind: str, field: str) -> Mapping[str, int]:
        fields = START_FIELDS.get(kind, ())
        if field not in fields:
            raise BadValue(
                f"the start of {kind!r} has no {field!r}{did_you_mean(field, fields)}; there are: {known(fields)}"
            )
        return self._objects if kind == "object" else self._joints

    def _view(self, kind: str, name: str, field: str) -> NDArray[np.float64]:
        model, data = self._model, self._data
        view: NDArray[np.float64]
        if kind == "joint":
            joint = self._joints[name]
            where = (model.jnt_qposadr if field == "qpos" else model.jnt_dofadr)[joint]
            view = getattr(data, field)[where : where + self.width(kind, name, field)[0]]
            return view
        body, mocap = self._objects[name], int(model.body_mocapid[self._objects[name]])
        if mocap >= 0:
            view = (data.mocap_pos if field == "pos" else data.mocap_quat)[mocap]
            return view
        first = int(model.jnt_qposadr[model.body_jntadr[body]])
        view = data.qpos[first : first + 3] if field == "pos" else data.qpos[first + 3 : first + 7]
        return view

"""A model and one state of it, as a view is given it, and what follows from that state."""

import math
import threading
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import mujoco
import numpy as np
from numpy.typing import NDArray

from urlab.cameras import SceneCamera
from urlab.cameras.projection import camera_projection
from urlab.cameras.renderer import set_positions
from urlab.geometry import Quat, Vec3
from urlab.viewport.camera import ViewCamera

Array = NDArray[np.float64]

_ASPECT_PX = 1000
"""Of a picture whose proportions alone matter."""


class HeldBody(Protocol):
    """A body that a user pushes or drags: ``point`` is in its own frame, all else in the world's (m, N, N m)."""

    body_id: int
    point: Array
    force: Array | None
    torque: Array | None
    target: Array | None


@dataclass(frozen=True)
class PosedModel:
    """A model and one state of it. Views read, and never write, model and arrays.

    ``key`` is another one whenever the model is; ``sim_time`` is None while nothing plays. ``qpos`` is (nq,),
    ``mocap_pos`` (nmocap, 3) and ``mocap_quat`` (nmocap, 4), w first; ``qvel`` (nv,), ``act`` (na,), ``ctrl`` (nu,) and
    ``sensordata`` (nsensordata,) are 0 where None. ``actors`` has the ids of the bodies of each actor, ``cameras``
    those of the scene by name, and ``held`` what pushes and drags bodies.
    """

    key: Hashable
    model: Any
    qpos: Array
    mocap_pos: Array
    mocap_quat: Array
    sim_time: float | None = None
    selected_bodies: tuple[int, ...] = ()
    """Ids of the bodies of the selected actor."""

    qvel: Array | None = None
    act: Array | None = None
    ctrl: Array | None = None
    sensordata: Array | None = None
    actors: Mapping[str, frozenset[int]] = field(default_factory=dict)
    cameras: Mapping[str, SceneCamera] = field(default_factory=dict)
    held: Sequence[HeldBody] = ()


class PosedData:
    """An MjData for the positions of one posed model after another. Any thread may call it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._key: Hashable = None
        self._data: Any = None

    def of(self, posed: PosedModel) -> Any:
        """The data, as it follows from the state; it holds until the next call."""
        with self._lock:
            if self._data is None or self._key != posed.key:
                self._key, self._data = posed.key, mujoco.MjData(posed.model)
            set_positions(posed.model, self._data, posed)
            return self._data

    def free(self) -> None:
        """Give back the memory; the next call takes it anew."""
        with self._lock:
            self._key = self._data = None


def set_dynamics(model: Any, data: Any, posed: PosedModel) -> None:
    """Compute everything that follows from a state: contacts, forces, constraints, as ``mj_forward`` does.

    ``data`` is private, and has the positions already.
    """
    for array, values in ((data.qvel, posed.qvel), (data.act, posed.act), (data.ctrl, posed.ctrl)):
        array[:] = 0.0 if values is None else values
    data.xfrc_applied[:] = 0.0
    for one in posed.held:
        if one.force is not None:
            data.xfrc_applied[one.body_id, :3] += one.force
        if one.torque is not None:
            data.xfrc_applied[one.body_id, 3:] += one.torque
    mujoco.mj_forward(model, data)


def model_camera(posed: PosedModel, data: Any, camera: SceneCamera, aspect: float) -> ViewCamera:
    """What a camera of the model sees, in a picture of that aspect (width / height).

    The height of its view is the camera's own; a principal point beside the middle is not followed.
    """
    index = camera.slot.id
    right, up, back = data.cam_xmat[index].reshape(3, 3).T
    mujoco.mju_mat2Quat(quat := np.empty(4), np.column_stack([-back, -right, up]).ravel())
    projection = camera_projection(posed.model, index, (_ASPECT_PX, _ASPECT_PX))
    half_height = _ASPECT_PX / 2 / projection.fy
    fov_deg = math.degrees(2 * math.atan(aspect * half_height))
    return ViewCamera(_vec3(data.cam_xpos[index]), _quat(quat), fov_deg)


def _vec3(values: Array) -> Vec3:
    x, y, z = values.tolist()
    return x, y, z


def _quat(values: Array) -> Quat:
    w, x, y, z = values.tolist()
    return w, x, y, z

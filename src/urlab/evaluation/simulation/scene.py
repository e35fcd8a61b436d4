"""A task and a robot -> one compiled scene, and the cameras that a policy sees it through.

Its actors are "robot", "table", "floor", "cameras" and one per object of the task, under the object's name.
Physics runs at 480 Hz with elliptic friction cones and friction 30 times as stiff as contact (``impratio``): a block of
half a kilogram creeps 0.02 mm per second in a grasp. Noslip would stop that too, for half as much time again. With a
line search of 20 iterations instead of MuJoCo's 50 grasped blocks fly away.
The robot's links weigh nothing to its motors, as real arms compensate for their own weight.
Floor and walls are plain, and end: software takes half as long again for an endless, textured floor. Cameras see a wall
wherever they look, so depths are finite.

The protocol's cameras look along +X, with +Y to the left and +Z up; MuJoCo's look along -Z, with +X right and +Y up.
"""

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from urlab.cameras import Frame, RenderRequest, SceneRenderer
from urlab.cameras.renderer import DrawnState
from urlab.compile import CompiledScene, compile_scene
from urlab.compile.blueprint import Blueprint
from urlab.compile.library import Library
from urlab.evaluation.camera_config import CameraMount, CameraMounts
from urlab.evaluation.embodiments import Embodiment
from urlab.evaluation.settings import RENDER_PROFILE
from urlab.evaluation.tasks.objects import TABLE_NAME, TABLE_POSE_W, TABLE_SIZE_M, object_mjcf
from urlab.evaluation.tasks.task import Task
from urlab.geometry import Pose, Quat, multiply, normalised
from urlab.physics.snapshot import Snapshot
from urlab.robots import model_path
from urlab.scene.blueprint_record import file_record
from urlab.scene.level import Actor, Level
from urlab_wire.enums import CameraMode
from urlab_wire.pixels import pick_channels

ROBOT = "robot"
_CAMERAS = "cameras"
_FLOOR = "floor"

SUBSTEP_S = 1 / 480
_OPTIONS = {
    "timestep": SUBSTEP_S,
    "integrator": "implicitfast",
    "cone": "elliptic",
    "impratio": 30.0,
    "iterations": 100,
    "ls_iterations": 50,
    "noslip_iterations": 0,
}
_FRICTION = 0.7
_LEG_M = 0.06
_ROOM_M = 6.0
_WALL_M = 3.0
_PIXEL_M = 2.0**-18
"""The size of a pixel on the sensors; a power of two, so that intrinsics survive MuJoCo's single precision."""
_PROTOCOL_IN_MUJOCO: Quat = (0.5, -0.5, 0.5, 0.5)
_MUJOCO_IN_PROTOCOL: Quat = (0.5, 0.5, -0.5, -0.5)


def build_scene(task: Task, embodiment: Embodiment, *, cameras: bool) -> CompiledScene:
    """Compile the scene; the embodiment's cameras are in it if wanted. Nothing is left on disk."""
    mounts = embodiment.cameras if cameras else ()
    with tempfile.TemporaryDirectory(prefix="urlab-task-") as folder:
        return compile_scene(task_level(task, embodiment, Path(folder)), _TaskLibrary(mounts))


def task_level(task: Task, embodiment: Embodiment, folder: Path) -> Level:
    """What stands in the scene; the models of what is not the robot are written into ``folder``.

    Compiled by any library it has the same bodies, joints and motors as `build_scene`, in the same order.
    """
    robot = Actor(ROBOT, str(model_path(embodiment.model)), pose=Pose(embodiment.base_pos_w))
    others = tuple(Actor(name, str(file)) for name, file in _written(folder, _texts(task)).items())
    return Level(task.name, (robot, *others), options=_OPTIONS)


def _texts(task: Task) -> dict[str, str]:
    objects = {name: object_mjcf(spec) for name, spec in task.objects.items()}
    return {_FLOOR: room_mjcf(), TABLE_NAME: table_mjcf(), _CAMERAS: "<mujoco/>"} | objects


def _written(folder: Path, texts: Mapping[str, str]) -> dict[str, Path]:
    files = {name: folder / f"{name}.xml" for name in texts}
    for name, text in texts.items():
        files[name].write_text(text)
    return files


class _TaskLibrary(Library):
    """Loads models as any library does, and fits the robot and the world with cameras."""

    def __init__(self, mounts: Iterable[CameraMount]) -> None:
        super().__init__(file_record)
        self._mounts = tuple(mounts)

    def blueprint(self, actor: Actor) -> Blueprint:
        """The actor's model with what evaluation adds to it."""
        blueprint = super().blueprint(actor)
        if actor.name not in (ROBOT, _CAMERAS):
            return blueprint
        spec = blueprint.spec.copy()
        if actor.name == ROBOT:
            for body in spec.bodies[1:]:
                body.gravcomp = 1.0
            for camera in [one for one in spec.cameras if one.name in {mount.name for mount in self._mounts}]:
                spec.delete(camera)
        for mount in self._mounts:
            if (mount.body is None) == (actor.name == _CAMERAS):
                _mount(spec, mount)
        return replace(blueprint, spec=spec)


def _mount(spec: Any, mount: CameraMount) -> None:
    """A pinhole with the mount's intrinsics; MuJoCo counts the principal point from the middle, left and up."""
    body = spec.worldbody if mount.body is None else spec.body(mount.body)
    if body is None:
        raise ValueError(f"camera {mount.name!r} is mounted on {mount.body!r}, which the robot does not have")
    camera = body.add_camera(name=mount.name, pos=mount.pos_m, quat=mujoco_quat(mount.quat_wxyz))
    camera.resolution = [mount.width, mount.height]
    camera.sensor_size = [mount.width * _PIXEL_M, mount.height * _PIXEL_M]
    camera.focal_length = [mount.fx * _PIXEL_M, mount.fy * _PIXEL_M]
    camera.principal_length = [(mount.width / 2 - mount.cx) * _PIXEL_M, (mount.height / 2 - mount.cy) * _PIXEL_M]


def room_mjcf() -> str:
    """Floor, walls (for the eye only) and two lights beside MuJoCo's headlight."""
    half, high = _ROOM_M / 2, _WALL_M / 2
    sides = [(half, 0.0, 0.05, half), (-half, 0.0, 0.05, half), (0.0, half, half, 0.05), (0.0, -half, half, 0.05)]
    walls = "\n".join(_wall(number, *side, high) for number, side in enumerate(sides, 1))
    return f"""<mujoco model="floor">
  <worldbody>
    <body name="floor">
      <geom name="plane" type="plane" size="{half} {half} 0.05" rgba="0.42 0.45 0.49 1" friction="0.9 0.01 0.001"/>
{walls}
      <light name="sun" type="directional" pos="-1.8 -1.3 6" dir="0.35 0.25 -0.9" ambient="0.16 0.16 0.16"
             diffuse="0.46 0.46 0.44" specular="0.1 0.1 0.1"/>
      <light name="fill" type="directional" pos="0 0 6" dir="-0.6 -0.4 -0.5" diffuse="0.28 0.29 0.32"
             specular="0 0 0" castshadow="false"/>
    </body>
  </worldbody>
</mujoco>
"""


def table_mjcf() -> str:
    """The table where goals expect it, in world coordinates. It is fixed; the legs are for the eye only."""
    (x, y, thickness), (px, py, pz) = TABLE_SIZE_M, TABLE_POSE_W.pos
    legs = "\n".join(_leg(number, dx, dy, pz - thickness / 2) for number, (dx, dy) in enumerate(_corners(x, y), 1))
    return f"""<mujoco model="table">
  <asset>
    <material name="top" rgba="0.66 0.62 0.56 1" specular="0.1" shininess="0.2"/>
    <material name="leg" rgba="0.32 0.34 0.37 1" specular="0.3" shininess="0.4"/>
  </asset>
  <worldbody>
    <body name="table" pos="{px} {py} 0">
      <geom name="top" type="box" pos="0 0 {pz}" size="{x / 2} {y / 2} {thickness / 2}" material="top"
            friction="{_FRICTION} 0.01 0.0005" solref="0.006 1" solimp="0.95 0.99 0.001"/>
{legs}
    </body>
  </worldbody>
</mujoco>
"""


def _corners(x: float, y: float) -> list[tuple[float, float]]:
    return [(dx * (x - 2 * _LEG_M) / 2, dy * (y - 2 * _LEG_M) / 2) for dx in (-1, 1) for dy in (-1, 1)]


def _leg(number: int, x: float, y: float, height: float) -> str:
    return (
        f'      <geom name="leg_{number}" type="box" pos="{x} {y} {height / 2}" '
        f'size="{_LEG_M / 2} {_LEG_M / 2} {height / 2}" material="leg" contype="0" conaffinity="0"/>'
    )


def _wall(number: int, x: float, y: float, half_x: float, half_y: float, high: float) -> str:
    return (
        f'      <geom name="wall_{number}" type="box" pos="{x} {y} {high}" size="{half_x} {half_y} {high}" '
        f'rgba="0.74 0.76 0.79 1" contype="0" conaffinity="0"/>'
    )


def mujoco_quat(protocol_wxyz: Sequence[float]) -> Quat:
    """MuJoCo's orientation of a camera whose orientation the protocol gives; both w, x, y, z."""
    return multiply(normalised(protocol_wxyz), _MUJOCO_IN_PROTOCOL)


def protocol_quat(mujoco_wxyz: Sequence[float]) -> Quat:
    """The protocol's orientation of a camera whose orientation MuJoCo gives; both w, x, y, z, and w is not negative."""
    w, x, y, z = multiply(normalised(mujoco_wxyz), _PROTOCOL_IN_MUJOCO)
    return (w, x, y, z) if w >= 0 else (-w, -x, -y, -z)


class CameraView(TypedDict):
    """What one camera sees, and from where, as observations have it. The arrays may be read-only.

    ``rgb`` uint8 (height, width, 3); ``depth`` float32 (height, width), metres to the image plane, inf for nothing,
    not there if the camera draws none;
    ``intrinsics_matrix`` (3, 3) in pixels; ``p`` (3,) and ``q`` (4,) w, x, y, z in the world, along +X, with +Z up.
    """

    rgb: NDArray[np.uint8]
    depth: NotRequired[NDArray[np.float32]]
    intrinsics_matrix: NDArray[np.float64]
    p: NDArray[np.float64]
    q: NDArray[np.float64]


class CameraRig:
    """The mounted cameras of one compiled scene. Any thread may call it; drawing is done on the GL thread."""

    def __init__(self, scene: CompiledScene, mounts: CameraMounts) -> None:
        robots = [camera for robot in scene.articulations for camera in robot.cameras]
        slots = {camera.short: camera for camera in (*robots, *scene.global_cameras)}
        self._mounts = {mount.name: mount for mount in mounts}
        self._pictures = {name: RenderRequest(slots[name], CameraMode.REAL) for name in self._mounts}
        self._depths = {
            name: RenderRequest(slots[name], CameraMode.DEPTH) for name, mount in self._mounts.items() if mount.depth
        }
        self._renderer = SceneRenderer(scene, RENDER_PROFILE)

    def take(self, snapshot: Snapshot) -> dict[str, CameraView]:
        """All cameras' views of one state, by name; NoViewport when nothing can be drawn on this machine."""
        wanted = [(name, one) for name in self._mounts for one in (self._pictures[name], self._depths.get(name)) if one]
        frames = self._renderer.render([one for _, one in wanted], snapshot)
        views: dict[str, CameraView] = {}
        for (name, request), frame in zip(wanted, frames, strict=True):
            if request is self._pictures[name]:
                views[name] = _view(self._mounts[name], frame)
            else:
                views[name]["depth"] = frame.array()
        return views

    def picture(self, name: str, state: DrawnState) -> NDArray[np.uint8]:
        """What one camera sees, (height, width, 3) RGB."""
        (frame,) = self._renderer.render([self._pictures[name]], state)
        return pick_channels(frame.array(), "bgra")

    def close(self) -> None:
        """Give back the GL memory. May be called twice."""
        self._renderer.close()


def _view(mount: CameraMount, real: Frame) -> CameraView:
    return CameraView(
        rgb=pick_channels(real.array(), "bgra"),
        intrinsics_matrix=np.array([[mount.fx, 0.0, mount.cx], [0.0, mount.fy, mount.cy], [0.0, 0.0, 1.0]]),
        p=np.array(real.pos_w),
        q=np.array(protocol_quat(real.quat_wxyz)),
    )

"""A task and a robot -> one compiled scene.

Its actors are "robot", "table", "floor", "cameras" and one per object of the task, under the object's name.
Physics runs at 480 Hz with elliptic friction cones and friction 30 times as stiff as contact (``impratio``): a block of
half a kilogram creeps 0.02 mm per second in a grasp. Noslip would stop that too, for half as much time again. With a
line search of 20 iterations instead of MuJoCo's 50 grasped blocks fly away.
The robot's links weigh nothing to its motors, as real arms compensate for their own weight.
"""

import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from urlab.compile import CompiledScene, compile_scene
from urlab.compile.blueprint import Blueprint
from urlab.compile.library import Library
from urlab.evaluation.camera_axes import mujoco_quat
from urlab.evaluation.embodiments import CameraMount, Embodiment
from urlab.evaluation.room import room_mjcf, table_mjcf
from urlab.evaluation.tasks.objects import object_mjcf
from urlab.evaluation.tasks.table import TABLE_NAME
from urlab.evaluation.tasks.task import Task
from urlab.geometry import Pose
from urlab.robots import model_path
from urlab.scene.blueprint_record import file_record
from urlab.scene.level import Actor, Level

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
_PIXEL_M = 2.0**-18
"""The size of a pixel on the sensors; a power of two, so that intrinsics survive MuJoCo's single precision."""


def build_scene(task: Task, embodiment: Embodiment, *, cameras: bool) -> CompiledScene:
    """Compile the scene; the embodiment's cameras are in it if wanted. Nothing is left on disk."""
    mounts = embodiment.cameras if cameras else ()
    with tempfile.TemporaryDirectory(prefix="urlab-task-") as folder:
        files = {ROBOT: model_path(embodiment.model)} | _written(Path(folder), _texts(task))
        actors = tuple(_actor(name, file, embodiment) for name, file in files.items())
        level = Level(task.name, actors, options=_OPTIONS)
        return compile_scene(level, _Workshop(mounts))


def _texts(task: Task) -> dict[str, str]:
    objects = {name: object_mjcf(spec) for name, spec in task.objects.items()}
    return {_FLOOR: room_mjcf(), TABLE_NAME: table_mjcf(), _CAMERAS: "<mujoco/>"} | objects


def _written(folder: Path, texts: Mapping[str, str]) -> dict[str, Path]:
    files = {name: folder / f"{name}.xml" for name in texts}
    for name, text in texts.items():
        files[name].write_text(text)
    return files


def _actor(name: str, file: Path, embodiment: Embodiment) -> Actor:
    pose = Pose(embodiment.base_pos_w) if name == ROBOT else Pose()
    return Actor(name, str(file), pose=pose)


class _Workshop(Library):
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
            _relieve(spec)
        for mount in self._mounts:
            if (mount.body is None) == (actor.name == _CAMERAS):
                _mount(spec, mount)
        return replace(blueprint, spec=spec)


def _relieve(spec: Any) -> None:
    for body in spec.bodies[1:]:
        body.gravcomp = 1.0


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

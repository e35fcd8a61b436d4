"""What a view of the world shows: the running scene or the edited level as it would start, and where its actors are."""

import contextlib
import threading
import time
from dataclasses import replace
from typing import Any

import mujoco

from urlab.authoring.targets import HOME
from urlab.cameras.scene_camera import scene_cameras
from urlab.compile import CompiledScene, compile_scene
from urlab.compile.assemble import PlacedActor
from urlab.compile.library import Library
from urlab.errors import UrlabError
from urlab.geometry import Pose
from urlab.manager.articulation import go_to_start
from urlab.manager.manager import Manager
from urlab.manager.play import Play
from urlab.scene.blueprint_record import BlueprintRecord
from urlab.scene.level import Actor, Level
from urlab.scene.names import legal_name
from urlab.viewport import PosedModel
from urlab.viewport.model_pictures import PICTURE_LIGHT, light_for_picture

_LOOK_S = 0.3
"""How often a view looks whether meshes have been cut up."""


class ViewportSource:
    """Gives that model and state. Any thread may call it; an edited level is compiled once per edit.

    No view waits for a mesh that is being cut into convex hulls, or could not be: it is shown as scenery, and looks the
    same.
    """

    def __init__(self, play: Play) -> None:
        self._play = play
        self._lock = threading.Lock()
        self._edited: tuple[Level, CompiledScene, PosedModel] | None = None
        self._uncut: tuple[Actor, ...] = ()
        """Actors of that level whose meshes were not cut up yet."""
        self._look_due_s = 0.0
        self._running_actors: tuple[CompiledScene | None, dict[str, frozenset[int]]] = (None, {})

    def __call__(self) -> PosedModel:
        """The world as it is now; CompileError when the edited level cannot be compiled."""
        return self.shown()[1]

    def shown(self) -> tuple[CompiledScene, PosedModel]:
        """The same, after the scene that it is."""
        manager = self._play.running
        if manager is not None:
            return manager.scene, self._running(manager)
        with self._lock:
            level = self._play.world.level
            if self._edited is None or self._edited[0] is not level or self._has_news():
                self._uncut = _begin_to_cut(level, self._play.world.library)
                scenery = tuple(replace(one, quick_convert=None) if one in self._uncut else one for one in level.actors)
                scene = compile_scene(replace(level, actors=scenery), self._play.world.library)
                self._edited = (level, scene, _at_start(scene))
            _, scene, posed = self._edited
            return scene, replace(posed, selected_bodies=self._selected_bodies(scene))

    def _has_news(self) -> bool:
        """Whether another mesh of the level has been cut up."""
        if not self._uncut or time.monotonic() < self._look_due_s:
            return False
        self._look_due_s = time.monotonic() + _LOOK_S
        return any(_is_cut(one, self._play.world.library) for one in self._uncut)

    def _running(self, manager: Manager) -> PosedModel:
        engine, snapshot = manager.engine, manager.engine.snapshot
        if self._running_actors[0] is not manager.scene:
            self._running_actors = manager.scene, actor_bodies(manager.scene)
        return PosedModel(
            key=id(engine),
            model=engine.model,
            qpos=snapshot.qpos,
            mocap_pos=snapshot.mocap_pos,
            mocap_quat=snapshot.mocap_quat,
            sim_time=snapshot.sim_time,
            selected_bodies=self._selected_bodies(manager.scene),
            qvel=snapshot.qvel,
            act=snapshot.act,
            ctrl=snapshot.ctrl,
            sensordata=snapshot.sensordata,
            actors=self._running_actors[1],
            cameras=manager.capture.cameras,
            held=manager.perturbations,
        )

    def _selected_bodies(self, scene: CompiledScene) -> tuple[int, ...]:
        """Ids of the bodies of the actor that is selected, in that scene."""
        names = _body_names(scene, self._play.world.selected)
        return tuple(int(scene.model.body(name).id) for name in names)


def _begin_to_cut(level: Level, library: Library) -> tuple[Actor, ...]:
    """The actors whose meshes are not cut up yet, which is begun. Where it cannot be, the compiler will say why."""
    found = []
    for actor in level.actors:
        with contextlib.suppress(UrlabError):
            progress = library.conversion(actor)
            if progress is not None and progress.state == "waiting":
                library.prepare(actor)
            if progress is not None and progress.state != "ready":
                found.append(actor)
    return tuple(found)


def _is_cut(actor: Actor, library: Library) -> bool:
    progress = library.conversion(actor)
    return progress is None or progress.state == "ready"


def blueprint_at_start(record: BlueprintRecord) -> PosedModel:
    """A blueprint by itself, at its keyframe "home" or else in MuJoCo's start; ImportFailed or CompileError if not.

    It is read anew, and not kept: a list of blueprints shows many that are never used.
    """
    library = Library(lambda _: record)
    actor = Actor(legal_name(record.short_name), record.word)
    blueprint = library.blueprint(actor)
    if blueprint.is_articulation and any(key.name == HOME for key in blueprint.spec.keys):
        actor = replace(actor, keyframe=HOME)
    lights = () if blueprint.spec.lights else (PICTURE_LIGHT,)
    scene = compile_scene(Level(record.short_name, (actor,), lights=lights), library)
    light_for_picture(scene.model)
    return _at_start(scene)


def actor_bodies(scene: CompiledScene) -> dict[str, frozenset[int]]:
    """The ids of each actor's bodies, by its name."""
    return {
        placed.actor.name: frozenset(int(scene.model.body(name).id) for name in placed.body_names)
        for placed in scene.placed
    }


def _at_start(scene: CompiledScene) -> PosedModel:
    data: Any = mujoco.MjData(scene.model)
    for articulation in scene.articulations:
        go_to_start(articulation, scene.model, data)
    return PosedModel(
        key=id(scene.model),
        model=scene.model,
        qpos=data.qpos.copy(),
        mocap_pos=data.mocap_pos.copy(),
        mocap_quat=data.mocap_quat.copy(),
        sim_time=None,
        actors=actor_bodies(scene),
        cameras=scene_cameras(scene),
    )


def actor_poses(manager: Manager, state: Any = None) -> dict[str, Pose]:
    """The pose of every actor that can move as a whole: those whose first body is free or a mocap body.

    ``state`` has ``xpos`` and ``xquat`` of the bodies; None is now.
    """
    model, snapshot = manager.engine.model, manager.engine.snapshot if state is None else state
    poses = {}
    for placed in manager.scene.placed:
        root = _movable_root(model, placed)
        if root is not None:
            now = Pose(tuple(snapshot.xpos[root].tolist()), tuple(snapshot.xquat[root].tolist()))
            authored = Pose(tuple(model.body_pos[root].tolist()), tuple(model.body_quat[root].tolist()))
            root_in_actor = placed.actor.pose.inverse().apply(authored)
            poses[placed.actor.name] = now.apply(root_in_actor.inverse())
    return poses


def body_poses(manager: Manager, actor_name: str) -> dict[str, Pose]:
    """World poses of an actor's bodies, by their compiled names."""
    model, snapshot = manager.engine.model, manager.engine.snapshot
    ids = {name: int(model.body(name).id) for name in _body_names(manager.scene, actor_name)}
    return {name: Pose.of(snapshot.xpos[body], snapshot.xquat[body]) for name, body in ids.items()}


def _body_names(scene: CompiledScene, actor_name: str | None) -> tuple[str, ...]:
    return next((one.body_names for one in scene.placed if one.actor.name == actor_name), ())


def _movable_root(model: Any, placed: PlacedActor) -> int | None:
    if not placed.body_names:
        return None
    root = int(model.body(placed.body_names[0]).id)
    is_free = int(model.body_dofnum[root]) == 6 and int(model.body_jntnum[root]) == 1
    return root if is_free or int(model.body_mocapid[root]) >= 0 else None

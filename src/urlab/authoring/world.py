"""The world that is being edited: one open level, and what can be done to it."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from urlab.authoring.actor_index import ActorIndex, Placed
from urlab.authoring.history import EditHistory, LevelEdit, differ, with_words, without
from urlab.authoring.imports import Importer
from urlab.authoring.placement import Placement
from urlab.compile.blueprint import Blueprint
from urlab.compile.inspection import Inspection, inspect
from urlab.compile.library import Library
from urlab.errors import EditError, ImportFailed, UrlabError
from urlab.geometry import Pose, Vec3, euler_deg_from_wxyz
from urlab.scene.blueprint_record import IMPORTS_FOLDER, BlueprintKind, BlueprintRecord, undoubled, word_of
from urlab.scene.level import LEVELS_PACKAGE, UNIT_SCALE, Actor, Level, Light, QuickConvert
from urlab.scene.names import file_name_problem, level_name
from urlab.scene.project import Project
from urlab.scene.sidecar import check_config
from urlab_wire.enums import LightKind

_ASIDE: Vec3 = (1.0, 0.0, 0.0)
"""Where a copy stands from its original, unless the request says otherwise."""


@dataclass(frozen=True, slots=True)
class SpawnSpec:
    """The actor that a request asks for: its blueprint, its handle, its place, and what it has of its own."""

    blueprint: str
    actor_id: str = ""
    placement: Placement = field(default_factory=Placement)
    keyframe: str | None = None
    tags: tuple[str, ...] | None = None
    config: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Spawned:
    """An actor, its blueprint, and whether it had been there before."""

    actor: Actor
    record: BlueprintRecord
    was_existing: bool


@dataclass(frozen=True, slots=True)
class DestroyedAsset:
    """What went with a level or an import: ``actors`` of the open level by name. ``levels`` still name the import."""

    found: bool = False
    actors: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EditStatus:
    """Whether the open level differs from what was opened or saved last, and the labels of the edits to come.

    ``label`` is that of the edit that was just taken back, or made again.
    """

    unsaved_changes: bool
    can_undo: str | None
    can_redo: str | None
    label: str = ""


EMPTY_LEVEL = "Untitled"
LIGHT_CLASSES = {
    LightKind.DIRECTIONAL: "DirectionalLight",
    LightKind.POINT: "PointLight",
    LightKind.SPOT: "SpotLight",
}


_LEAST_MODELS = 200
"""So many models are kept, in the shapes that were asked for last, however few actors the level has."""


class World:
    """Owns the edited level. Methods may be called from any thread; each is done whole or not at all.

    Models are loaded before the lock is taken, as that may take seconds; inside they are found loaded. So who only
    looks at the level never waits for a model.
    """

    def __init__(
        self, project: Project, level: Level, library: Library, importer: Importer, *, from_project: bool = False
    ) -> None:
        self.project = project
        self.library = library
        self.importer = importer
        self.selected: str | None = None
        """The name of the selected actor, for every view and every list."""
        self._home: str | None = level.name if from_project else None
        """The project's level that is open; None for one that the project does not have yet."""
        self._index = ActorIndex(level)
        self._saved = level
        self._history = EditHistory()
        self._inspected: dict[tuple[int, str], tuple[Blueprint, Inspection]] = {}
        self._lock = threading.RLock()

    @property
    def level(self) -> Level:
        """The level as it is now."""
        with self._lock:
            return self._index.level

    def find(self, target: str, *, by_name: bool = False) -> Placed:
        """An actor or a light, by id or else by name; UnknownActor lists those that exist."""
        with self._lock:
            return self._index.find(target, by_name=by_name)

    def inspect(self, actor: Actor, *, converted: bool = True) -> Inspection:
        """What an actor's model holds, in its start pose; a mesh may be looked at before it is converted."""
        actor = actor if converted else _unconverted(actor)
        return self._inspection(self.library.blueprint(actor), actor.keyframe)

    # -- levels -------------------------------------------------------------------------------------------------

    def open(self, level: Level, *, from_project: bool = False) -> None:
        """Edit another level; what was not saved is gone. One from elsewhere never replaces a level of the project."""
        with self._lock:
            self._index = ActorIndex(level)
            self._home = level.name if from_project else None
            self.selected = None
            self._saved, self._history = level, EditHistory()

    def create_level(self, name: str, *, overwrite: bool = False) -> Level:
        """A new, empty, saved level, which is open from now on."""
        plain = level_name(name)
        if not overwrite and plain in self.project.level_names():
            raise EditError(f"level {plain!r} exists already; set force_overwrite to replace it")
        level = Level(plain)
        self.project.save_level(level)
        self.open(level, from_project=True)
        return level

    def load_level(self, name_or_path: str) -> Level:
        """Open a level of the project, as it was saved."""
        level = self.project.open_level(name_or_path)
        self.open(level, from_project=True)
        return level

    def save_level(self, name: str | None = None) -> Level:
        """Save the open level, and keep a copy of every model file that it uses where it stands.

        With another ``name`` it is that level from then on; EditError if there is one of that name.
        """
        other = None if name is None else level_name(name)
        if other is not None and other != self._home and other in self.project.level_names():
            raise EditError(f"level {other!r} exists already; save under another name, or load and change that one")
        kept = self._keep_files(self.level)
        with self._lock:
            rewritten = with_words(kept)
            level = rewritten(self._index.level)
            if other is not None:
                level = replace(level, name=other)
            elif self._home != level.name:
                level = replace(level, name=self.project.free_level_name(level.name))
            self.project.save_level(level)
            self._index, self._home, self._saved = ActorIndex(level), level.name, level
            if kept:
                self._history.rewrite(rewritten, level)
            return level

    def forget_files(self) -> None:
        """Read those models again that are files outside the imports: they may have changed."""
        self.importer.forget_files()
        self.library.forget_files()

    def ensure_manager(self) -> bool:
        """Put the manager into the level; whether it was there."""
        with self._lock:
            had_one = self._index.level.has_manager
            if not had_one:
                self._index = ActorIndex(replace(self._index.level, has_manager=True))
            return had_one

    def destroy_asset(self, asset_path: str) -> DestroyedAsset:
        """Delete a level or an import from the project, in use or not; nothing happens when there is none.

        The open level is left for an empty one; actors of an import go with it, also from the levels that `undo` and
        `redo` lead to: its files are gone for good. What is shipped cannot be deleted.
        """
        with self._lock:
            if asset_path.startswith(LEVELS_PACKAGE):
                return self._destroy_level(undoubled(asset_path.removeprefix(LEVELS_PACKAGE)))
            try:
                folder, _, name = word_of(asset_path).rpartition("/")
            except ImportFailed:
                return DestroyedAsset()  # no path that an import could have
            return self._destroy_import(name) if folder == IMPORTS_FOLDER else DestroyedAsset()

    # -- edits, taken back and made again -----------------------------------------------------------------------

    def edit_status(self) -> EditStatus:
        """What can be undone and redone, and whether there is something to save."""
        with self._lock:
            return self._edit_status()

    def undo(self) -> EditStatus:
        """Take back the last edit; EditError when there is none. The selection stays, if that actor is there."""
        with self._lock:
            return self._restore(*self._history.undo(self._index.level))

    def redo(self) -> EditStatus:
        """Make the edit again that was taken back last; EditError when there is none."""
        with self._lock:
            return self._restore(*self._history.redo(self._index.level))

    def _restore(self, level: Level, label: str) -> EditStatus:
        self._index = ActorIndex(level)
        if self.selected is not None and self.selected not in self._index:
            self.selected = None
        return self._edit_status(label)

    def _edit_status(self, label: str = "") -> EditStatus:
        unsaved = differ(self._index.level, self._saved)
        return EditStatus(unsaved, self._history.can_undo, self._history.can_redo, label)

    # -- actors -------------------------------------------------------------------------------------------------

    def spawn(self, wanted: SpawnSpec) -> Spawned:
        """Put an actor into the level, or bring the one of that id to the state that is wanted."""
        record = self.importer.resolve(wanted.blueprint)
        self._load(wanted, record)
        with self._edit() as edit:
            return self._spawn(edit, wanted, record)

    def spawn_grid(self, blueprint: str, cells: Sequence[tuple[str, SpawnSpec]]) -> list[Spawned]:
        """Spawn many of one kind. When one fails, those before it stay; the error says which one it was."""
        record, spawned = self.importer.resolve(blueprint), []
        good, refused = self._load_cells(cells, record)
        with self._edit() as edit:
            for cell, wanted in cells[:good]:
                with _named_cell(cell):
                    spawned.append(self._spawn(edit, wanted, record))
        if refused is not None:
            raise refused
        return spawned

    def _load_cells(
        self, cells: Sequence[tuple[str, SpawnSpec]], record: BlueprintRecord
    ) -> tuple[int, EditError | None]:
        """How many of the first cells can be spawned, and why the next one cannot."""
        for good, (cell, wanted) in enumerate(cells):
            try:
                with _named_cell(cell):
                    self._load(wanted, record)
            except EditError as refused:
                return good, refused
        return len(cells), None

    def spawn_light(self, wanted: Light) -> Light:
        """Put a light into the level, or change the one of that id. The name is given here."""
        with self._edit() as edit:
            existing = edit.index.with_id(wanted.actor_id)
            if existing is not None and not isinstance(existing, Light):
                raise EditError(f"actor_id {wanted.actor_id!r} belongs to {existing.name!r}, which is not a light")
            name = existing.name if existing is not None else edit.index.take_name(LIGHT_CLASSES[wanted.kind])
            light = replace(wanted, name=name)
            edit.put(light, "spawn" if existing is None else "change")
            return light

    def destroy(self, target: str, *, by_name: bool = False) -> None:
        """Take an actor or a light away."""
        with self._edit() as edit:
            doomed = edit.index.find(target, by_name=by_name)
            edit.remove(doomed, "delete")
            self._deselect(doomed)

    def move(self, target: str, placement: Placement, *, by_name: bool = False) -> Placed:
        """Change the pose of an actor or a light."""
        with self._edit() as edit:
            moved = _moved(edit.index.find(target, by_name=by_name), placement)
            edit.put(moved, "move")
            return moved

    def duplicate(self, target: str, actor_id: str, location: Vec3 | None, *, by_name: bool = False) -> Placed:
        """Copy an actor or a light, under an id that is free."""
        self._name_for(self.find(target, by_name=by_name))
        with self._edit() as edit:
            original = edit.index.find(target, by_name=by_name)
            if actor_id and edit.index.with_id(actor_id) is not None:
                raise EditError(f"actor_id {actor_id!r} is taken; choose another for the copy")
            aside = Pose(_ASIDE).apply(original.pose).pos if location is None else location
            name = edit.index.take_name(self._name_for(original))
            copy = replace(original, name=name, actor_id=actor_id, pose=Pose(aside, original.pose.quat_wxyz))
            edit.put(copy, "duplicate", original.name)
            return copy

    def select(self, target: str, *, by_name: bool = False) -> str:
        """Select an actor for every view; its name."""
        with self._lock:
            self.selected = self._index.find(target, by_name=by_name).name
            return self.selected

    def quick_convert(self, target: str, wanted: QuickConvert | None, *, by_name: bool = False) -> Actor:
        """Let a static mesh take part in physics, or (None) no longer."""
        changed = self._converted(self.find(target, by_name=by_name), wanted)
        if wanted is not None:
            self.library.prepare(changed)  # what cannot be converted is refused here
        with self._edit() as edit:
            changed = self._converted(edit.index.find(target, by_name=by_name), wanted)
            edit.put(changed, "stop converting" if wanted is None else "convert")
            return changed

    def _converted(self, actor: Placed, wanted: QuickConvert | None) -> Actor:
        if not isinstance(actor, Actor) or self.project.record(actor.blueprint).kind is not BlueprintKind.STATIC_MESH:
            raise EditError(f"{actor.name!r} is not a static mesh: only those are converted (.stl, .obj, .glb)")
        if wanted is None and actor.quick_convert is None:
            raise EditError(f"{actor.name!r} has not been converted")
        return replace(actor, quick_convert=wanted)

    def _destroy_level(self, name: str) -> DestroyedAsset:
        if file_name_problem(name) is not None:
            return DestroyedAsset()
        if not self.project.delete_level(name):
            if name in self.project.shipped_levels:
                raise EditError(f"level {name!r} is shipped with the server and cannot be deleted")
            return DestroyedAsset()
        if name == self._home:
            self.open(Level(EMPTY_LEVEL))
        return DestroyedAsset(found=True)

    def _destroy_import(self, name: str) -> DestroyedAsset:
        if not self.project.delete_import(name):
            return DestroyedAsset()
        word = f"{IMPORTS_FOLDER}/{name}"
        doomed = [actor for actor in self._index.level.actors if actor.blueprint == word]
        for actor in doomed:
            self._index.remove(actor)
            self._deselect(actor)
        self._history.rewrite(lambda level: without(level, word), self._index.level)
        names = tuple(actor.name for actor in doomed)
        return DestroyedAsset(found=True, actors=names, levels=tuple(self.project.levels_with(word)))

    # -- inside -------------------------------------------------------------------------------------------------

    @contextmanager
    def _edit(self) -> Iterator[LevelEdit]:
        """One edit, which can be undone; what it has done when it fails stays, and can be undone as well."""
        with self._lock:
            before, edit = self._index.level, LevelEdit(self._index)
            try:
                yield edit
            finally:
                self._history.record(before, self._index.level, edit.label)
                self._bound_models()

    def _deselect(self, gone: Placed) -> None:
        if self.selected == gone.name:
            self.selected = None

    def _name_for(self, original: Placed) -> str:
        if isinstance(original, Light):
            return LIGHT_CLASSES[original.kind]
        return self.library.blueprint(_unconverted(original)).model_name

    def _keep_files(self, level: Level) -> dict[str, str]:
        """Import what the level uses where it stands: file -> the import that replaces it."""
        words = dict.fromkeys(actor.blueprint for actor in level.actors)
        return {word: self.importer.import_file(word)[0].word for word in words if self._is_loose(word)}

    def _is_loose(self, word: str) -> bool:
        """Whether a level's word for a blueprint is a file that is used where it stands. What is missing is not."""
        try:
            return not self.project.record(word).content
        except ImportFailed:
            return False

    def _load(self, wanted: SpawnSpec, record: BlueprintRecord) -> None:
        """Have the model loaded that an actor will need, and checked; without the lock."""
        with self._lock:
            planned = self._planned(self._index, wanted, record)
        self._check(planned, record)

    def _spawn(self, edit: LevelEdit, wanted: SpawnSpec, record: BlueprintRecord) -> Spawned:
        existing = edit.index.with_id(wanted.actor_id) is not None
        actor = self._planned(edit.index, wanted, record)
        blueprint = self._check(actor, record)
        if not existing:
            actor = replace(actor, name=edit.index.take_name(blueprint.model_name))
        edit.put(actor, "change" if existing else "spawn")
        return Spawned(actor, record, existing)

    def _planned(self, index: ActorIndex, wanted: SpawnSpec, record: BlueprintRecord) -> Actor:
        """The actor as it is wanted: a new one, still without a name, or the one of that id."""
        existing = index.with_id(wanted.actor_id)
        if existing is None:
            return _updated(Actor("", record.word, wanted.actor_id), wanted)
        if isinstance(existing, Actor) and existing.blueprint == record.word:
            return _updated(existing, wanted)
        raise EditError(
            f"actor_id {wanted.actor_id!r} belongs to {existing.name!r}, which is not a {record.short_name}"
        )

    def _check(self, actor: Actor, record: BlueprintRecord) -> Blueprint:
        """The actor's model in the shape that it wants, if that can be had."""
        if actor.config:
            check_config(actor.config)
        blueprint = self.library.blueprint_from(record, _unconverted(actor))
        if actor.keyframe and not blueprint.is_articulation:
            raise EditError(f"{blueprint.model_name!r} is no robot, so it cannot start from a keyframe")
        if actor.keyframe:
            self._inspection(blueprint, actor.keyframe)
        return blueprint

    def _inspection(self, blueprint: Blueprint, keyframe: str) -> Inspection:
        key = (id(blueprint), keyframe)
        known = self._inspected.pop(key, None)
        if known is None or known[0] is not blueprint:
            known = (blueprint, inspect(blueprint, keyframe))
        self._inspected[key] = known  # the last now: those that come first are forgotten first
        return known[1]

    def _bound_models(self) -> None:
        """Forget models that were looked at long ago, beyond what the level can need: clients ask for any shape."""
        most = _LEAST_MODELS + 2 * self._index.actor_count
        self.library.bound(most)
        if len(self._inspected) > most:
            for key in list(self._inspected)[:-most]:
                self._inspected.pop(key, None)


@contextmanager
def _named_cell(cell: str) -> Iterator[None]:
    """What goes wrong inside is told of that cell of a grid."""
    try:
        yield
    except UrlabError as failed:
        raise EditError(f"cell {cell}: {failed.message}") from failed


def _unconverted(actor: Actor) -> Actor:
    """The actor as scenery, which needs no hulls to be cut first."""
    return replace(actor, quick_convert=None)


def _updated(actor: Actor, wanted: SpawnSpec) -> Actor:
    """The actor as wanted; a pose that is not stated is the origin, as for a new one."""
    return replace(
        actor,
        pose=wanted.placement.pose(Pose()),
        scale=wanted.placement.scale or UNIT_SCALE,
        keyframe=actor.keyframe if wanted.keyframe is None else wanted.keyframe,
        tags=actor.tags if wanted.tags is None else wanted.tags,
        config=actor.config if wanted.config is None else wanted.config,
    )


def _moved(one: Placed, placement: Placement) -> Placed:
    pose = placement.pose(one.pose)
    if isinstance(one, Light) and placement.quat_wxyz is not None:
        return replace(one, pose=pose, rotation_euler=euler_deg_from_wxyz(pose.quat_wxyz))
    return replace(one, pose=pose)

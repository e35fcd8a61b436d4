"""Authoring: levels, imports and actors. Locations are metres, ``rotation_quat`` is x, y, z, w."""

from typing import Any

import msgspec

from urlab_wire.envelope import Name, Reply, Request, Tags, TargetedRequest, Text
from urlab_wire.ops.outliner import ActorIdentity


class ImportXmlRequest(Request["ImportXmlReply"], tag="import_xml"):
    """Import a model file into the project."""

    path: Text
    force_reimport: bool | None = None


class ImportXmlReply(Reply, tag="import_xml_ok"):
    """The blueprint that spawn_actor takes."""

    blueprint_class_path: str
    blueprint_short_name: str
    imported_now: bool


MAX_UPLOAD_BYTES = 63 << 20
"""Of one upload: it is one request, which has at most 64 MiB."""


class UploadAssetRequest(Request["UploadAssetReply"], tag="upload_asset"):
    """Put a model file, or a zip file with a model and its files, into the project (extension).

    ``name`` is a plain file name; what was uploaded under it before is replaced. In JSON ``data`` is base64.
    """

    name: Name
    data: bytes


class UploadAssetReply(Reply, tag="upload_asset_ok"):
    """``path`` is what import_xml takes next; ``models`` are all models of a zip file, that one first."""

    path: str
    models: list[str]


class LevelReply(Reply):
    """What the ops about one level answer with: its path in the protocol."""

    level_path: str


class CreateLevelRequest(Request["CreateLevelReply"], tag="create_level"):
    """Create an empty level and open it."""

    name: Text
    force_overwrite: bool | None = None


class CreateLevelReply(LevelReply, tag="create_level_ok"):
    """The path of the new level."""


class LoadLevelRequest(Request["LoadLevelReply"], tag="load_level"):
    """Open a level; unsaved edits of the current one are discarded."""

    level_path: Text


class LoadLevelReply(LevelReply, tag="load_level_ok"):
    """The path of the open level."""


class SaveLevelRequest(Request["SaveLevelReply"], tag="save_level"):
    """Save the open level. ``name`` (extension) saves it under another one, which no level may have yet."""

    name: Name | None = None


class SaveLevelReply(LevelReply, tag="save_level_ok"):
    """The path of the saved level."""


class LevelBlock(msgspec.Struct):
    """A level that can be opened; ``shipped`` with the server, or of the project."""

    name: str
    level_path: str
    shipped: bool


class ListLevelsRequest(Request["ListLevelsReply"], tag="list_levels"):
    """Ask which levels there are (extension)."""


class ListLevelsReply(Reply, tag="list_levels_ok"):
    """The project's own first."""

    levels: list[LevelBlock]


class CurrentLevelRequest(Request["CurrentLevelReply"], tag="current_level"):
    """Ask which level is open."""


class CurrentLevelReply(LevelReply, tag="current_level_ok"):
    """The path of the open level.

    Extensions: whether its actors or lights differ from what was opened or saved last, and what `undo` and `redo`
    would do, as a short label ("move panda"), absent when there is nothing.
    """

    unsaved_changes: bool | None = None
    can_undo: str | None = None
    can_redo: str | None = None


class UndoRequest(Request["UndoReply"], tag="undo"):
    """Take back the last edit of the open level (extension)."""


class EditedReply(Reply):
    """What was taken back or made again, as a short label ("move panda"), and those of the next ones, if any."""

    label: str
    requires_pie_restart: bool
    can_undo: str | None = None
    can_redo: str | None = None


class UndoReply(EditedReply, tag="undo_ok"):
    """``label`` is the edit that was taken back."""


class RedoRequest(Request["RedoReply"], tag="redo"):
    """Make the edit again that was taken back last (extension)."""


class RedoReply(EditedReply, tag="redo_ok"):
    """``label`` is the edit that was made again."""


class EnsureManagerRequest(Request["EnsureManagerReply"], tag="ensure_manager"):
    """Put a manager into the level if it has none."""


class EnsureManagerReply(Reply, tag="ensure_manager_ok"):
    """The manager actor."""

    actor_name: str
    actor_path: str
    was_existing: bool


class DestroyAssetRequest(Request["DestroyAssetReply"], tag="destroy_asset"):
    """Delete a level or an import from the project, in use or not. The open level is left for an empty one."""

    asset_path: Text


class DestroyAssetReply(Reply, tag="destroy_asset_ok"):
    """Whether there was one.

    Extensions, absent when empty: the actors of the open level that went with it, and the saved levels that still
    name it.
    """

    asset_path: str
    was_found: bool
    destroyed_actors: list[str] | None = None
    affected_levels: list[str] | None = None


class SpawnActorRequest(Request["SpawnActorReply"], tag="spawn_actor"):
    """Put a blueprint into the level; with an actor_id that exists, move that actor.

    Extensions: ``blueprint`` may be the path of a model or mesh file, which is then imported; ``keyframe`` and
    ``tags`` are kept in the level, and so is ``config``, which replaces fields of the model's sidecar. With
    ``heightfield`` the actor is ground, and ``blueprint`` the name under which it is imported.
    """

    blueprint: Text
    actor_id: Name | None = None
    location: list[float] | None = None
    rotation_quat: list[float] | None = None
    rotation_euler: list[float] | None = None
    scale: list[float] | None = None
    keyframe: Name | None = None
    tags: Tags | None = None
    config: dict[str, Any] | None = None
    heightfield: "HeightfieldBlock | None" = None


class HeightfieldBlock(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Ground from rows of ``heights`` (any numbers; the first row is at -y) or from a grey ``image`` file.

    ``size`` is the length along x, the length along y, and the height from lowest to highest, in metres.
    """

    size: list[float]
    heights: list[list[float]] | None = None
    image: Text | None = None


class PlacedActorReply(Reply):
    """An actor that was put into the level, and whether it had been there before."""

    actor_id: str
    actor_name: str
    actor_path: str
    blueprint_class_path: str
    location: list[float]
    rotation_quat: list[float]
    was_existing: bool
    requires_pie_restart: bool


class SpawnActorReply(PlacedActorReply, tag="spawn_actor_ok"):
    """The actor that was spawned."""


class SpawnGridRequest(Request["SpawnGridReply"], tag="spawn_grid"):
    """Spawn count_x by count_y copies named ``<base>_<i>_<j>``."""

    blueprint: Text
    base_actor_id: Name
    count_x: int
    count_y: int
    spacing: list[float] | None = None
    origin: list[float] | None = None
    rotation_quat: list[float] | None = None
    rotation_euler: list[float] | None = None
    scale: list[float] | None = None


class GridActor(msgspec.Struct, kw_only=True):
    """One cell of a grid."""

    actor_id: str
    actor_name: str
    actor_path: str
    was_existing: bool
    location: list[float]


class SpawnGridReply(Reply, tag="spawn_grid_ok"):
    """The actors that were spawned, cell by cell."""

    count: int
    blueprint_class_path: str
    actors: list[GridActor]
    requires_pie_restart: bool


class SpawnLightRequest(Request["SpawnLightReply"], tag="spawn_light"):
    """Put a light into the level."""

    kind: Name | None = None
    actor_id: Name | None = None
    location: list[float] | None = None
    rotation_euler: list[float] | None = None
    intensity: float | None = None
    color: list[float] | None = None


class SpawnLightReply(Reply, tag="spawn_light_ok"):
    """The light that was spawned."""

    actor_id: str
    actor_name: str
    actor_path: str
    kind: str
    intensity: float
    color: list[float]
    location: list[float]
    rotation_euler: list[float]
    requires_pie_restart: bool


class DestroyActorRequest(TargetedRequest["DestroyActorReply"], tag="destroy_actor"):
    """Remove an actor from the level."""

    target: str
    target_by: str | None = None


class DestroyActorReply(Reply, tag="destroy_actor_ok"):
    """It was done; there is nothing more to say."""

    requires_pie_restart: bool


class SetActorTransformRequest(TargetedRequest["SetActorTransformReply"], tag="set_actor_transform"):
    """Move an actor."""

    location: list[float] | None = None
    rotation_quat: list[float] | None = None
    rotation_euler: list[float] | None = None


class SetActorTransformReply(Reply, tag="set_actor_transform_ok"):
    """The actor that moved."""

    target: str
    actor_name: str
    requires_pie_restart: bool


class DuplicateActorRequest(Request["DuplicateActorReply"], tag="duplicate_actor"):
    """Copy an actor; without a location, one metre along +X."""

    target: str
    new_actor_id: Name
    target_by: str | None = None
    location: list[float] | None = None


class DuplicateActorReply(PlacedActorReply, tag="duplicate_actor_ok"):
    """The actor that is the copy."""


class ActorHierarchyRequest(TargetedRequest["ActorHierarchyReply"], tag="actor_hierarchy"):
    """Ask for the elements of an actor as a tree."""

    target: str
    target_by: str | None = None


class HierarchyNode(msgspec.Struct, kw_only=True):
    """An actor or an element of its model: where it is in metres, and what is attached to it, bodies first.

    Classes are ``MjBody``, ``MjFreeJoint``, ``MjJoint``, ``MjGeom``, ``MjSite``, ``MjCamera``; and, below the actor
    itself and with its place, ``MjActuator`` and ``MjSensor``.
    """

    name: str
    class_: str = msgspec.field(name="class")
    location: list[float]
    children: list["HierarchyNode"]


class ActorHierarchyReply(Reply, tag="actor_hierarchy_ok"):
    """``root`` is the actor."""

    root: HierarchyNode


class SnapshotRequest(Request["SnapshotReply"], tag="snapshot"):
    """Ask for everything in the level."""


class ElementNames(msgspec.Struct, kw_only=True):
    """The short names of what an articulation has."""

    mj_class: str
    joints: list[str]
    actuators: list[str]
    sensors: list[str]
    cameras: list[str]


class SnapshotActor(ActorIdentity):
    """One actor of a snapshot; ``urlab`` is there for articulations."""

    tags: list[str]
    urlab: ElementNames | None = None


class SnapshotReply(Reply, tag="snapshot_ok"):
    """All actors with tags and, for articulations, their element names."""

    actors: list[SnapshotActor]
    in_pie: bool
    level_path: str

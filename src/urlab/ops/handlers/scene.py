"""Authoring over the wire: levels, imports and actors."""

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from urlab.authoring import EditStatus, Placed, Placement, Spawned, SpawnSpec, World
from urlab.authoring.outliner_rows import ActorRow, class_name
from urlab.authoring.placement import vector
from urlab.compile.inspection import BodyNode
from urlab.errors import BadValue, InvalidCount, TooManyCells
from urlab.geometry import Pose, Vec3, wxyz_from_euler_deg, xyzw_from_wxyz
from urlab.manager.scene_view import body_poses
from urlab.numbers import finite_number
from urlab.ops.context import Context, handler
from urlab.ops.handlers.outliner import shown_level
from urlab.ops.parsing import by_name, one_of
from urlab.scene.level import DEFAULT_INTENSITY, LEVELS_PACKAGE, MANAGER_NAME, Actor, Light
from urlab_wire.enums import LightKind
from urlab_wire.ops import scene as wire

AnyEditedReply = TypeVar("AnyEditedReply", bound=wire.EditedReply)

MAX_CELLS = 1024
MAX_CONFIG_BYTES = 64 << 10
_SPACING: Vec3 = (1.0, 1.0, 0.0)
_ORIGIN: Vec3 = (0.0, 0.0, 0.0)
_WHITE: Vec3 = (1.0, 1.0, 1.0)
_PLAYED = "UEDPIE_0_"
"""What the original puts before the name of a level that is being played."""


@handler("import_xml")
def import_xml(context: Context, request: wire.ImportXmlRequest) -> wire.ImportXmlReply:
    """Bring a model, mesh or heightfield into the project."""
    record, now = context.world.importer.import_file(request.path, force=bool(request.force_reimport))
    return wire.ImportXmlReply(
        blueprint_class_path=record.class_path, blueprint_short_name=record.short_name, imported_now=now
    )


@handler("upload_asset")
def upload_asset(context: Context, request: wire.UploadAssetRequest) -> wire.UploadAssetReply:
    """Take a client's file into the project, to be imported."""
    upload = context.world.importer.upload(request.name, request.data, context.caller.name)
    for folder in upload.forgotten:
        context.record("deleted", op="upload_asset", path=str(folder))
    return wire.UploadAssetReply(path=str(upload.path), models=[str(model) for model in upload.models])


@handler("create_level")
def create_level(context: Context, request: wire.CreateLevelRequest) -> wire.CreateLevelReply:
    """A new, empty level."""
    level = context.world.create_level(request.name, overwrite=bool(request.force_overwrite))
    return wire.CreateLevelReply(level_path=level.path)


@handler("load_level")
def load_level(context: Context, request: wire.LoadLevelRequest) -> wire.LoadLevelReply:
    """Edit another level."""
    return wire.LoadLevelReply(level_path=context.world.load_level(request.level_path).path)


@handler("save_level")
def save_level(context: Context, request: wire.SaveLevelRequest) -> wire.SaveLevelReply:
    """Keep the open level."""
    return wire.SaveLevelReply(level_path=context.world.save_level(request.name).path)


@handler("list_levels")
def list_levels(context: Context, request: wire.ListLevelsRequest) -> wire.ListLevelsReply:  # noqa: ARG001 - no fields
    """Every level that can be opened."""
    project = context.world.project
    own = set(project.own_level_names())
    names = project.level_names()
    return wire.ListLevelsReply(
        levels=[wire.LevelBlock(name, f"{LEVELS_PACKAGE}{name}", name not in own) for name in names]
    )


@handler("current_level")
def current_level(context: Context, request: wire.CurrentLevelRequest) -> wire.CurrentLevelReply:  # noqa: ARG001
    """Which level is open, and what has been done to it."""
    level, edits = context.world.level, context.world.edit_status()
    return wire.CurrentLevelReply(
        level_path=level.path,
        unsaved_changes=edits.unsaved_changes,
        can_undo=edits.can_undo,
        can_redo=edits.can_redo,
    )


@handler("undo")
def undo(context: Context, request: wire.UndoRequest) -> wire.UndoReply:  # noqa: ARG001 - no fields
    """Take back the last edit of the level."""
    return _edited(wire.UndoReply, context.world.undo(), context)


@handler("redo")
def redo(context: Context, request: wire.RedoRequest) -> wire.RedoReply:  # noqa: ARG001 - no fields
    """Make the edit again that was taken back last."""
    return _edited(wire.RedoReply, context.world.redo(), context)


@handler("ensure_manager")
def ensure_manager(context: Context, request: wire.EnsureManagerRequest) -> wire.EnsureManagerReply:  # noqa: ARG001
    """Mark the level as one that simulates."""
    existed = context.world.ensure_manager()
    path = context.world.level.path_of(MANAGER_NAME)
    return wire.EnsureManagerReply(actor_name=MANAGER_NAME, actor_path=path, was_existing=existed)


@handler("destroy_asset")
def destroy_asset(context: Context, request: wire.DestroyAssetRequest) -> wire.DestroyAssetReply:
    """Delete a level or an import, in use or not."""
    gone = context.world.destroy_asset(request.asset_path)
    return wire.DestroyAssetReply(
        asset_path=request.asset_path,
        was_found=gone.found,
        destroyed_actors=list(gone.actors) or None,
        affected_levels=list(gone.levels) or None,
    )


@handler("spawn_actor")
def spawn_actor(context: Context, request: wire.SpawnActorRequest) -> wire.SpawnActorReply:
    """Put an actor into the level."""
    wanted = SpawnSpec(
        blueprint=_blueprint(context, request),
        actor_id=request.actor_id or "",
        placement=Placement.read(request.location, request.rotation_quat, request.rotation_euler, request.scale),
        keyframe=request.keyframe,
        tags=None if request.tags is None else tuple(request.tags),
        config=_bounded(request.config),
    )
    spawned = context.world.spawn(wanted)
    return wire.SpawnActorReply(**_spawned(context, spawned), requires_pie_restart=context.play.is_playing)


@handler("spawn_grid")
def spawn_grid(context: Context, request: wire.SpawnGridRequest) -> wire.SpawnGridReply:
    """Put many actors into the level."""
    if request.count_x <= 0 or request.count_y <= 0:
        raise InvalidCount(f"a grid has at least one cell, but {request.count_x} x {request.count_y} were asked for")
    if request.count_x * request.count_y > MAX_CELLS:
        raise TooManyCells(
            f"a grid has at most {MAX_CELLS} cells, but {request.count_x} x {request.count_y} were asked for"
        )
    spawned = context.world.spawn_grid(request.blueprint, list(_cells(request)))
    path_of = context.world.level.path_of
    return wire.SpawnGridReply(
        count=len(spawned),
        blueprint_class_path=spawned[0].record.class_path,
        actors=[
            wire.GridActor(
                actor_id=one.actor.actor_id,
                actor_name=one.actor.name,
                actor_path=path_of(one.actor.name),
                was_existing=one.was_existing,
                location=list(one.actor.pose.pos),
            )
            for one in spawned
        ],
        requires_pie_restart=context.play.is_playing,
    )


@handler("spawn_light")
def spawn_light(context: Context, request: wire.SpawnLightRequest) -> wire.SpawnLightReply:
    """Put a light into the level."""
    light = context.world.spawn_light(_light(request))
    return wire.SpawnLightReply(
        actor_id=light.actor_id,
        actor_name=light.name,
        actor_path=context.world.level.path_of(light.name),
        kind=light.kind,
        intensity=light.intensity,
        color=list(light.color),
        location=list(light.pose.pos),
        rotation_euler=list(light.rotation_euler),
        requires_pie_restart=context.play.is_playing,
    )


@handler("destroy_actor")
def destroy_actor(context: Context, request: wire.DestroyActorRequest) -> wire.DestroyActorReply:
    """Take an actor out of the level."""
    context.world.destroy(request.target, by_name=by_name(request.target_by))
    return wire.DestroyActorReply(requires_pie_restart=context.play.is_playing)


@handler("set_actor_transform")
def set_actor_transform(context: Context, request: wire.SetActorTransformRequest) -> wire.SetActorTransformReply:
    """Move an actor."""
    placement = Placement.read(request.location, request.rotation_quat, request.rotation_euler)
    moved = context.world.move(request.target, placement, by_name=by_name(request.target_by))
    return wire.SetActorTransformReply(
        target=request.target, actor_name=moved.name, requires_pie_restart=context.play.is_playing
    )


@handler("duplicate_actor")
def duplicate_actor(context: Context, request: wire.DuplicateActorRequest) -> wire.DuplicateActorReply:
    """Copy an actor."""
    location = None if request.location is None else vector("location", request.location)
    copy = context.world.duplicate(request.target, request.new_actor_id, location, by_name=by_name(request.target_by))
    return wire.DuplicateActorReply(
        actor_id=copy.actor_id,
        actor_name=copy.name,
        actor_path=context.world.level.path_of(copy.name),
        blueprint_class_path=_class_path(context, copy),
        **_pose(copy.pose),
        was_existing=False,
        requires_pie_restart=context.play.is_playing,
    )


@handler("actor_hierarchy")
def actor_hierarchy(context: Context, request: wire.ActorHierarchyRequest) -> wire.ActorHierarchyReply:
    """The elements of an actor as a tree, in the running scene if there is one."""
    shown = shown_level(context)
    actor = shown.find(request.target, by_name=by_name(request.target_by))
    place, children = list(shown.pose_of(actor).pos), list[wire.HierarchyNode]()
    if isinstance(actor, Actor):
        now = body_poses(context.play.manager, actor.name) if shown.in_pie else {}
        has = context.world.inspect(actor)
        tree = has.tree(actor.pose)
        children = [*(_node(body, actor.name, now) for body in tree.children), *_elements(tree, tree.pose_w)]
        on_no_body = [("MjActuator", has.actuators), ("MjSensor", has.sensors)]
        children += [_leaf(name, word, place) for word, names in on_no_body for name in names]
    kind = class_name(context.world, actor)
    root = wire.HierarchyNode(name=actor.name, class_=kind, location=place, children=children)
    return wire.ActorHierarchyReply(root=root)


@handler("snapshot")
def snapshot(context: Context, request: wire.SnapshotRequest) -> wire.SnapshotReply:  # noqa: ARG001 - no fields
    """Everything, of the running scene if there is one."""
    shown = shown_level(context)
    path = f"{LEVELS_PACKAGE}{_PLAYED}{shown.level.name}" if shown.in_pie else shown.level.path
    rows = [_snapshot_actor(context.world, row) for row in shown.rows()]
    return wire.SnapshotReply(actors=rows, in_pie=shown.in_pie, level_path=path)


def _bounded(config: dict[str, Any] | None) -> dict[str, Any] | None:
    """The config of an actor, which the level keeps."""
    length_bytes = 0 if config is None else len(repr(config))
    if length_bytes > MAX_CONFIG_BYTES:
        raise BadValue(f"config has {length_bytes} bytes as text; an actor's has at most {MAX_CONFIG_BYTES}")
    return config


def _blueprint(context: Context, request: wire.SpawnActorRequest) -> str:
    """What to spawn; a heightfield is imported first."""
    ground = request.heightfield
    if ground is None:
        return request.blueprint
    size = vector("heightfield.size", ground.size)
    if (ground.heights is None) == (ground.image is None):
        raise BadValue("heightfield takes either heights or an image")
    if ground.heights is not None:
        return context.world.importer.import_heights(request.blueprint, ground.heights, size).class_path
    return context.world.importer.import_image(request.blueprint, ground.image or "", size).class_path


def _cells(request: wire.SpawnGridRequest) -> Iterator[tuple[str, SpawnSpec]]:
    spacing = _SPACING if request.spacing is None else vector("spacing", request.spacing)
    origin = _ORIGIN if request.origin is None else vector("origin", request.origin)
    shared = Placement.read(None, request.rotation_quat, request.rotation_euler, request.scale)
    for j in range(request.count_y):
        for i in range(request.count_x):
            where = (origin[0] + spacing[0] * i, origin[1] + spacing[1] * j, origin[2])
            placement = Placement(where, shared.quat_wxyz, shared.scale)
            yield f"({i},{j})", SpawnSpec(request.blueprint, f"{request.base_actor_id}_{i}_{j}", placement)


def _light(request: wire.SpawnLightRequest) -> Light:
    euler = _ORIGIN if request.rotation_euler is None else vector("rotation_euler", request.rotation_euler)
    intensity = DEFAULT_INTENSITY if request.intensity is None else finite_number("intensity", request.intensity)
    color = _WHITE if request.color is None else vector("color", request.color)
    if intensity < 0 or min(color) < 0 or max(color) > 1:
        raise BadValue(f"a light has an intensity of at least 0 and a color in 0..1, not {intensity} and {list(color)}")
    where = _ORIGIN if request.location is None else vector("location", request.location)
    return Light(
        name="",
        kind=one_of("kind", LightKind, request.kind or LightKind.DIRECTIONAL),
        actor_id=request.actor_id or "",
        pose=Pose(where, wxyz_from_euler_deg(euler)),
        rotation_euler=euler,
        intensity=intensity,
        color=color,
    )


def _edited(kind: type[AnyEditedReply], edits: EditStatus, context: Context) -> AnyEditedReply:
    return kind(
        label=edits.label,
        can_undo=edits.can_undo,
        can_redo=edits.can_redo,
        requires_pie_restart=context.play.is_playing,
    )


def _spawned(context: Context, spawned: Spawned) -> dict[str, Any]:
    actor = spawned.actor
    return {
        "actor_id": actor.actor_id,
        "actor_name": actor.name,
        "actor_path": context.world.level.path_of(actor.name),
        "blueprint_class_path": spawned.record.class_path,
        "was_existing": spawned.was_existing,
        **_pose(actor.pose),
    }


def _pose(pose: Pose) -> dict[str, list[float]]:
    return {"location": list(pose.pos), "rotation_quat": list(xyzw_from_wxyz(pose.quat_wxyz))}


def _class_path(context: Context, one: Placed) -> str:
    if isinstance(one, Light):
        return f"/Script/Engine.{class_name(context.world, one)}"
    return context.world.project.record(one.blueprint).class_path


def _snapshot_actor(world: World, row: ActorRow) -> wire.SnapshotActor:
    """An actor with its tags and, for a robot, the names of what it has."""
    return wire.SnapshotActor(
        name=row.name,
        label=row.label,
        class_=row.classes[0],
        actor_id=row.actor_id,
        **_pose(row.pose),
        tags=list(row.tags),
        selected=row.name == world.selected,
        urlab=None if row.robot is None else _element_names(world, row.robot),
    )


def _element_names(world: World, robot: Actor) -> wire.ElementNames:
    has = world.inspect(robot)
    return wire.ElementNames(
        mj_class="articulation",
        joints=list(has.joints),
        actuators=list(has.actuators),
        sensors=list(has.sensors),
        cameras=list(has.cameras),
    )


def _node(node: BodyNode, actor_name: str, now: dict[str, Pose]) -> wire.HierarchyNode:
    """A body: its children, then its elements. ``now`` has the poses of a running scene, by compiled names."""
    pose = now.get(f"{actor_name}_{node.name}", now.get(actor_name, node.pose_w))
    children = [*(_node(child, actor_name, now) for child in node.children), *_elements(node, pose)]
    return wire.HierarchyNode(name=node.name, class_="MjBody", location=list(pose.pos), children=children)


def _elements(node: BodyNode, pose: Pose) -> list[wire.HierarchyNode]:
    return [_leaf(one.name, ELEMENT_CLASSES[one.kind], pose.apply(Pose(one.position)).pos) for one in node.elements]


def _leaf(name: str, word: str, place: Sequence[float]) -> wire.HierarchyNode:
    return wire.HierarchyNode(name=name, class_=word, location=list(place), children=[])


ELEMENT_CLASSES = {
    "free joint": "MjFreeJoint", "joint": "MjJoint", "geom": "MjGeom", "site": "MjSite", "camera": "MjCamera",
}  # fmt: skip

"""Looking through the level, and quick convert, over the wire."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field

from urlab.authoring import Placed, World
from urlab.authoring.actor_index import ActorIndex
from urlab.authoring.outliner_rows import CLASS_OF_KIND, ROBOT_CLASS, ActorRow, rows
from urlab.authoring.placement import vector
from urlab.compile.bounds import Aabb
from urlab.compile.hulls import HullProgress
from urlab.errors import BadValue, EditError, NoBounds
from urlab.geometry import Pose, xyzw_from_wxyz
from urlab.manager.scene_view import actor_poses, blueprint_at_start
from urlab.numbers import finite_number
from urlab.ops.context import Context, handler
from urlab.ops.parsing import by_name
from urlab.scene.blueprint_record import BlueprintRecord
from urlab.scene.level import MAX_THRESHOLD, MIN_THRESHOLD, Actor, Level, QuickConvert
from urlab.viewport.model_pictures import PICTURE_SIZE
from urlab_wire.ops import outliner as wire

_DEFAULT = QuickConvert()


@dataclass(frozen=True)
class ShownLevel:
    """A level to look at: the running one with its actors where they are now, or the edited one."""

    world: World
    level: Level
    in_pie: bool
    poses: Mapping[str, Pose] = field(default_factory=dict)

    def rows(self) -> Iterator[ActorRow]:
        """A row per actor of the level."""
        return rows(self.world, self.level, self.poses)

    def find(self, target: str, *, by_name: bool) -> Placed:
        """One actor or light; UnknownActor lists those that exist."""
        return ActorIndex(self.level).find(target, by_name=by_name)

    def pose_of(self, one: Placed) -> Pose:
        """Where it is now."""
        return self.poses.get(one.name, one.pose)


def shown_level(context: Context, *, in_pie: bool = True) -> ShownLevel:
    """The running level, if there is one and it is wanted; else the edited one."""
    if in_pie and context.play.is_playing:
        manager = context.play.manager
        return ShownLevel(context.world, context.play.level, in_pie=True, poses=actor_poses(manager))
    return ShownLevel(context.world, context.world.level, in_pie=False)


@handler("list_actors")
def list_actors(context: Context, request: wire.ListActorsRequest) -> wire.ListActorsReply:  # noqa: ARG001
    """Every actor of the edited level."""
    found = [_list_row(context, row) for row in shown_level(context, in_pie=False).rows()]
    return wire.ListActorsReply(actors=found, in_pie=context.play.is_playing)


@handler("find_actors")
def find_actors(context: Context, request: wire.FindActorsRequest) -> wire.FindActorsReply:
    """The actors that match every filter."""
    shown = shown_level(context, in_pie=bool(request.in_pie))
    found = [_list_row(context, row, tags=list(row.tags)) for row in shown.rows() if _matches(row, request)]
    return wire.FindActorsReply(actors=found, in_pie=shown.in_pie)


@handler("list_blueprints")
def list_blueprints(context: Context, request: wire.ListBlueprintsRequest) -> wire.ListBlueprintsReply:  # noqa: ARG001
    """Everything that can be spawned."""
    return wire.ListBlueprintsReply(blueprints=[_blueprint(one) for one in context.world.project.records()])


@handler("blueprint_picture")
def blueprint_picture(context: Context, request: wire.BlueprintPictureRequest) -> wire.BlueprintPictureReply:
    """A picture of a blueprint by itself."""
    record = context.world.project.record_named(request.blueprint_path)
    width = PICTURE_SIZE[0] if request.width is None else request.width
    height = PICTURE_SIZE[1] if request.height is None else request.height
    png = context.parts.pictures.png(record.content, lambda: blueprint_at_start(record), width, height)
    return wire.BlueprintPictureReply(width=width, height=height, png=png)


@handler("get_actor_bounds")
def get_actor_bounds(context: Context, request: wire.GetActorBoundsRequest) -> wire.GetActorBoundsReply:
    """The box around an actor of the edited level, in its start pose."""
    actor = context.world.find(request.target, by_name=by_name(request.target_by))
    box = bounds(context, actor, colliding_only=bool(request.components_only))
    return wire.GetActorBoundsReply(
        actor_name=actor.name,
        min=list(box.lower),
        max=list(box.upper),
        center=list(box.center),
        extents=list(box.half_size),
    )


@handler("select_actor")
def select_actor(context: Context, request: wire.SelectActorRequest) -> wire.SelectActorReply:
    """Mark an actor in every view."""
    return wire.SelectActorReply(actor_name=context.world.select(request.target, by_name=by_name(request.target_by)))


@handler("add_quick_convert")
def add_quick_convert(context: Context, request: wire.AddQuickConvertRequest) -> wire.AddQuickConvertReply:
    """Let a static mesh take part in physics."""
    wanted = _quick_convert(request)
    actor = context.world.quick_convert(request.target, wanted, by_name=by_name(request.target_by))
    return wire.AddQuickConvertReply(
        actor_name=actor.name,
        static=wanted.static,
        complex_mesh=wanted.complex_mesh,
        coacd_threshold=wanted.coacd_threshold,
        driven_by_unreal=wanted.driven,
        requires_pie_restart=context.play.is_playing,
    )


@handler("remove_quick_convert")
def remove_quick_convert(context: Context, request: wire.RemoveQuickConvertRequest) -> wire.RemoveQuickConvertReply:
    """Take a static mesh out of physics again."""
    actor = context.world.quick_convert(request.target, None, by_name=by_name(request.target_by))
    return wire.RemoveQuickConvertReply(actor_name=actor.name, requires_pie_restart=context.play.is_playing)


def bounds(context: Context, actor: Placed, *, colliding_only: bool = False) -> Aabb:
    """The box around an actor; NoBounds when it has no geometry."""
    box = None
    if isinstance(actor, Actor):
        box = context.world.inspect(actor, converted=colliding_only).aabb(actor.pose, colliding_only=colliding_only)
    if box is None:
        raise NoBounds(f"{actor.name!r} has no {'colliding ' if colliding_only else ''}geometry of finite size")
    return box


def _matches(row: ActorRow, request: wire.FindActorsRequest) -> bool:
    return (
        (not request.class_filter or row.is_a(request.class_filter))
        and (not request.tag or request.tag in row.tags)
        and (not request.name_prefix or row.name.startswith(request.name_prefix))
    )


def _list_row(context: Context, row: ActorRow, tags: list[str] | None = None) -> wire.ActorBlock:
    return wire.ActorBlock(
        name=row.name,
        label=row.label,
        class_=row.classes[0],
        actor_id=row.actor_id,
        location=list(row.pose.pos),
        rotation_quat=list(xyzw_from_wxyz(row.pose.quat_wxyz)),
        selected=row.name == context.world.selected,
        is_articulation=row.robot is not None,
        is_static_mesh_actor=row.is_static_mesh,
        is_light=row.is_light,
        has_quick_convert=row.quick_convert is not None,
        problem=row.problem,
        quick_convert=None if row.quick_convert is None else _quick_convert_block(row.quick_convert, row.conversion),
        tags=tags,
    )


def _quick_convert_block(quick: QuickConvert, conversion: HullProgress | None) -> wire.QuickConvertBlock:
    return wire.QuickConvertBlock(
        static=quick.static,
        complex_mesh=quick.complex_mesh,
        coacd_threshold=quick.coacd_threshold,
        driven_by_unreal=quick.driven,
        friction=list(quick.friction),
        conversion=None if conversion is None else wire.ConversionBlock(**asdict(conversion)),
    )


def _blueprint(record: BlueprintRecord) -> wire.BlueprintBlock:
    return wire.BlueprintBlock(
        blueprint_class_path=record.class_path,
        blueprint_short_name=record.short_name,
        package_path=record.package_path,
        parent_class=CLASS_OF_KIND.get(record.kind, ROBOT_CLASS),
    )


def _quick_convert(request: wire.AddQuickConvertRequest) -> QuickConvert:
    threshold = _DEFAULT.coacd_threshold
    if request.coacd_threshold is not None:
        threshold = finite_number("coacd_threshold", request.coacd_threshold)
    if not MIN_THRESHOLD <= threshold <= MAX_THRESHOLD:
        raise BadValue(f"coacd_threshold is from {MIN_THRESHOLD} to {MAX_THRESHOLD}, not {threshold}")
    friction = _DEFAULT.friction if request.friction is None else vector("friction", request.friction)
    if min(friction) < 0:
        raise BadValue(f"friction must not be negative, but is {list(friction)}")
    if request.static and request.driven_by_unreal:
        raise EditError("a body is static or driven, not both")
    return QuickConvert(
        static=bool(request.static),
        complex_mesh=bool(request.complex_mesh),
        coacd_threshold=threshold,
        driven=bool(request.driven_by_unreal),
        friction=friction,
    )

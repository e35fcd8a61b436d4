"""Looking through the level, and quick convert."""

import msgspec

from urlab_wire.envelope import Reply, Request, TargetedRequest, Text


class ActorIdentity(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What every listing tells of an actor; metres, x, y, z, w. ``selected`` (extension) is there when it is true."""

    name: str
    label: str
    class_: str = msgspec.field(name="class")
    actor_id: str
    location: list[float]
    rotation_quat: list[float]
    selected: bool = False


class ConversionBlock(msgspec.Struct, kw_only=True):
    """How far the decomposition of a mesh is (extension)."""

    state: str
    elapsed_s: float
    message: str


class QuickConvertBlock(msgspec.Struct, kw_only=True, omit_defaults=True):
    """How a static mesh takes part in physics."""

    static: bool
    complex_mesh: bool
    coacd_threshold: float
    driven_by_unreal: bool
    friction: list[float]
    conversion: ConversionBlock | None = None


class ActorBlock(ActorIdentity):
    """One actor of a list. ``problem`` (extension) says why it cannot be played; ``tags`` come with find_actors."""

    is_articulation: bool
    is_static_mesh_actor: bool
    is_light: bool
    has_quick_convert: bool
    problem: str | None = None
    quick_convert: QuickConvertBlock | None = None
    tags: list[str] | None = None


class ListActorsRequest(Request["ListActorsReply"], tag="list_actors"):
    """Ask for all actors."""


class ListActorsReply(Reply, tag="list_actors_ok"):
    """All actors; ``in_pie`` says whether a simulation runs."""

    actors: list[ActorBlock]
    in_pie: bool


class BlueprintBlock(msgspec.Struct, kw_only=True):
    """One blueprint of the project."""

    blueprint_class_path: str
    blueprint_short_name: str
    package_path: str
    parent_class: str


class ListBlueprintsRequest(Request["ListBlueprintsReply"], tag="list_blueprints"):
    """Ask for all blueprints."""


class ListBlueprintsReply(Reply, tag="list_blueprints_ok"):
    """All blueprints, sorted by short name."""

    blueprints: list[BlueprintBlock]


class BlueprintPictureRequest(Request["BlueprintPictureReply"], tag="blueprint_picture"):
    """Ask for a picture of a blueprint by itself (extension). Pixels; 256 x 192 when the size is left out."""

    blueprint_path: Text
    width: int | None = None
    height: int | None = None


class BlueprintPictureReply(Reply, tag="blueprint_picture_ok"):
    """``png`` is the whole PNG file."""

    width: int
    height: int
    png: bytes


class FindActorsRequest(Request["FindActorsReply"], tag="find_actors"):
    """Ask for the actors that match every given filter."""

    class_filter: str | None = None
    tag: str | None = None
    name_prefix: str | None = None
    in_pie: bool | None = None


class FindActorsReply(Reply, tag="find_actors_ok"):
    """The matches; ``in_pie`` says which world was searched."""

    actors: list[ActorBlock]
    in_pie: bool


class GetActorBoundsRequest(TargetedRequest["GetActorBoundsReply"], tag="get_actor_bounds"):
    """Ask for the axis-aligned box around an actor."""

    components_only: bool | None = None


class GetActorBoundsReply(Reply, tag="get_actor_bounds_ok"):
    """Metres; ``extents`` are half sizes."""

    actor_name: str
    min: list[float]
    max: list[float]
    center: list[float]
    extents: list[float]


class SelectActorRequest(TargetedRequest["SelectActorReply"], tag="select_actor"):
    """Select an actor in every view."""

    target: str
    target_by: str | None = None


class SelectActorReply(Reply, tag="select_actor_ok"):
    """The selected actor."""

    actor_name: str


class AddQuickConvertRequest(TargetedRequest["AddQuickConvertReply"], tag="add_quick_convert"):
    """Make a static-mesh actor a MuJoCo body."""

    static: bool | None = None
    complex_mesh: bool | None = None
    coacd_threshold: float | None = None
    driven_by_unreal: bool | None = None
    friction: list[float] | None = None


class AddQuickConvertReply(Reply, tag="add_quick_convert_ok"):
    """The settings in force."""

    actor_name: str
    static: bool
    complex_mesh: bool
    coacd_threshold: float
    driven_by_unreal: bool
    requires_pie_restart: bool


class RemoveQuickConvertRequest(TargetedRequest["RemoveQuickConvertReply"], tag="remove_quick_convert"):
    """Undo add_quick_convert."""

    target: str
    target_by: str | None = None


class RemoveQuickConvertReply(Reply, tag="remove_quick_convert_ok"):
    """It was done; there is nothing more to say."""

    actor_name: str
    requires_pie_restart: bool

"""Looking through the level, and quick convert."""

from typing import Any

import msgspec

from urlab_wire.envelope import Reply, Request


class ListActorsRequest(Request, tag="list_actors"):
    """Ask for all actors."""


class ListActorsReply(Reply, tag="list_actors_ok"):
    """All actors; ``in_pie`` says whether a simulation runs."""

    actors: list[dict[str, Any]]
    in_pie: bool


class BlueprintBlock(msgspec.Struct, kw_only=True):
    """One blueprint of the project."""

    blueprint_class_path: str
    blueprint_short_name: str
    package_path: str
    parent_class: str


class ListBlueprintsRequest(Request, tag="list_blueprints"):
    """Ask for all blueprints."""


class ListBlueprintsReply(Reply, tag="list_blueprints_ok"):
    """All blueprints, sorted by short name."""

    blueprints: list[BlueprintBlock]


class FindActorsRequest(Request, tag="find_actors"):
    """Ask for the actors that match every given filter."""

    class_filter: str | None = None
    tag: str | None = None
    name_prefix: str | None = None
    in_pie: bool | None = None


class FindActorsReply(Reply, tag="find_actors_ok"):
    """The matches; ``in_pie`` says which world was searched."""

    actors: list[dict[str, Any]]
    in_pie: bool


class GetActorBoundsRequest(Request, tag="get_actor_bounds"):
    """Ask for the axis-aligned box around an actor."""

    target: str
    target_by: str | None = None
    components_only: bool | None = None


class GetActorBoundsReply(Reply, tag="get_actor_bounds_ok"):
    """Metres; ``extents`` are half sizes."""

    actor_name: str
    min: list[float]
    max: list[float]
    center: list[float]
    extents: list[float]


class SelectActorRequest(Request, tag="select_actor"):
    """Select an actor in every view."""

    target: str
    target_by: str | None = None


class SelectActorReply(Reply, tag="select_actor_ok"):
    """The selected actor."""

    actor_name: str


class AddQuickConvertRequest(Request, tag="add_quick_convert"):
    """Make a static-mesh actor a MuJoCo body."""

    target: str
    target_by: str | None = None
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


class RemoveQuickConvertRequest(Request, tag="remove_quick_convert"):
    """Undo add_quick_convert."""

    target: str
    target_by: str | None = None


class RemoveQuickConvertReply(Reply, tag="remove_quick_convert_ok"):
    """Done."""

    actor_name: str
    requires_pie_restart: bool

"""What there is in a level. Locations are metres, ``rotation_quat`` is x, y, z, w."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from urlab_client.types.reading import IDENTITY_XYZW, Vec3, Vec4, flags, vec3, vec4, words


@dataclass
class ActorInfo:
    """One actor. The fields from ``static`` on describe its quick convert, and are None without one."""

    name: str
    actor_class: str
    actor_id: str
    is_articulation: bool
    has_quick_convert: bool
    location: Vec3
    rotation_quat: Vec4
    is_static_mesh_actor: bool = False
    is_light: bool = False
    static: bool | None = None
    complex_mesh: bool | None = None
    coacd_threshold: float | None = None
    driven_by_unreal: bool | None = None
    friction: Vec3 | None = None
    label: str = ""

    @classmethod
    def from_wire(cls, block: Mapping[str, Any]) -> "ActorInfo":
        """Read one actor."""
        return cls(
            **_named(block),
            **flags(block, "is_articulation", "has_quick_convert", "is_static_mesh_actor", "is_light"),
            **_quick_convert(block.get("quick_convert") if block.get("has_quick_convert") else None),
        )


@dataclass
class BlueprintInfo:
    """One blueprint of the project."""

    class_path: str
    short_name: str

    @classmethod
    def from_wire(cls, block: Mapping[str, Any]) -> "BlueprintInfo":
        """Read one blueprint."""
        return cls(str(block.get("blueprint_class_path") or ""), str(block.get("blueprint_short_name") or ""))


@dataclass
class ActorBounds:
    """Axis-aligned box around an actor; ``extents`` are half sizes."""

    actor_name: str
    min: Vec3
    max: Vec3
    center: Vec3
    extents: Vec3

    @classmethod
    def from_wire(cls, reply: Mapping[str, Any]) -> "ActorBounds":
        """Read a get_actor_bounds reply."""
        corners = (vec3(reply.get(key)) for key in ("min", "max", "center", "extents"))
        return cls(str(reply.get("actor_name") or ""), *corners)


@dataclass
class SceneSnapshotActor:
    """One actor of a snapshot; ``urlab`` lists the element names of an articulation."""

    name: str
    actor_class: str
    actor_id: str
    label: str
    location: Vec3
    rotation_quat: Vec4
    tags: list[str] = field(default_factory=list)
    urlab: dict[str, Any] | None = None

    @classmethod
    def from_wire(cls, block: Mapping[str, Any]) -> "SceneSnapshotActor":
        """Read one actor."""
        return cls(**_named(block), tags=list(block.get("tags") or ()), urlab=block.get("urlab"))


@dataclass
class SceneSnapshot:
    """Everything in the level."""

    level_path: str
    in_pie: bool
    actors: list[SceneSnapshotActor] = field(default_factory=list)

    @classmethod
    def from_wire(cls, reply: Mapping[str, Any]) -> "SceneSnapshot":
        """Read a snapshot reply."""
        actors = [SceneSnapshotActor.from_wire(block) for block in reply.get("actors") or ()]
        return cls(str(reply.get("level_path") or ""), bool(reply.get("in_pie")), actors)


@dataclass
class ActorHierarchyNode:
    """A part of an actor and the parts attached to it."""

    name: str
    actor_class: str
    location: Vec3
    children: list["ActorHierarchyNode"] = field(default_factory=list)

    @classmethod
    def from_wire(cls, block: Mapping[str, Any]) -> "ActorHierarchyNode":
        """Read one node and everything below it."""
        children = [cls.from_wire(child) for child in block.get("children") or ()]
        name, kind = str(block.get("name") or ""), str(block.get("class") or "")
        return cls(name, kind, vec3(block.get("location")), children)


def _named(block: Mapping[str, Any]) -> dict[str, Any]:
    pose = {
        "location": vec3(block.get("location")),
        "rotation_quat": vec4(block.get("rotation_quat"), IDENTITY_XYZW),
    }
    return {**words(block, "name", "actor_id", "label"), "actor_class": str(block.get("class") or ""), **pose}


def _quick_convert(block: Mapping[str, Any] | None) -> dict[str, Any]:
    if not block:
        return {}
    known = ("static", "complex_mesh", "coacd_threshold", "driven_by_unreal")
    settings = {key: block[key] for key in known if key in block}
    return {**settings, "friction": vec3(block["friction"])} if block.get("friction") else settings

"""What authoring takes and returns. Locations are metres, ``rotation_quat`` is x, y, z, w, euler angles degrees."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from urlab_client.types.reading import IDENTITY_XYZW, Vec3, Vec4, flags, vec3, vec4, words

if TYPE_CHECKING:
    from urlab_client.client import URLabClient
    from urlab_client.handles.articulation import URLabArticulation


@dataclass
class URLabAsset:
    """One actor of ``scene.apply_scene``: a model file (absolute path on the server's machine) and its pose."""

    actor_id: str
    xml: str
    location: Sequence[float] = (0, 0, 0)
    rotation_quat: Sequence[float] | None = None
    rotation_euler: Sequence[float] | None = None
    scale: Sequence[float] = (1, 1, 1)


@dataclass
class URLabBlueprint:
    """An imported model, ready to spawn. ``imported_now`` says that this call imported it."""

    class_path: str
    short_name: str
    imported_now: bool

    @classmethod
    def from_wire(cls, reply: Mapping[str, Any]) -> "URLabBlueprint":
        """Read an import_xml reply."""
        path, name = reply.get("blueprint_class_path"), reply.get("blueprint_short_name")
        return cls(str(path or ""), str(name or ""), bool(reply.get("imported_now")))


@dataclass
class URLabSpawnHandle:
    """An actor of the level."""

    actor_id: str
    actor_name: str
    actor_path: str
    blueprint_class_path: str
    location: Vec3 = (0.0, 0.0, 0.0)
    rotation_quat: Vec4 = IDENTITY_XYZW
    was_existing: bool = False
    requires_pie_restart: bool = False

    def runtime(self, client: "URLabClient") -> "URLabArticulation | None":
        """The running articulation of this actor, or None while it is not simulated."""
        by_id = client.articulations_by_id.get(self.actor_id) if self.actor_id else None
        return by_id or client.articulations.get(self.actor_name)

    @classmethod
    def from_wire(cls, reply: Mapping[str, Any], **shared: Any) -> "URLabSpawnHandle":
        """Read a spawn reply; ``shared`` holds what a grid says once for all its cells."""
        block = {**shared, **reply}
        return cls(
            **words(block, "actor_id", "actor_name", "actor_path", "blueprint_class_path"),
            location=vec3(block.get("location")),
            rotation_quat=vec4(block.get("rotation_quat"), IDENTITY_XYZW),
            **flags(block, "was_existing", "requires_pie_restart"),
        )


@dataclass
class URLabLightHandle:
    """A light of the level."""

    actor_id: str
    actor_name: str
    actor_path: str
    kind: str
    location: Vec3 = (0.0, 0.0, 0.0)
    rotation_euler: Vec3 = (0.0, 0.0, 0.0)
    intensity: float = 5000.0
    color: Vec3 = (1.0, 1.0, 1.0)
    requires_pie_restart: bool = False

    @classmethod
    def from_wire(cls, reply: Mapping[str, Any]) -> "URLabLightHandle":
        """Read a spawn_light reply."""
        return cls(
            **words(reply, "actor_id", "actor_name", "actor_path", "kind"),
            location=vec3(reply.get("location")),
            rotation_euler=vec3(reply.get("rotation_euler")),
            intensity=float(reply.get("intensity", 5000.0)),
            color=vec3(reply.get("color"), (1.0, 1.0, 1.0)),
            **flags(reply, "requires_pie_restart"),
        )

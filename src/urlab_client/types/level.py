"""The level that is edited: assets, blueprints, what was spawned, actors and their parts.

Lengths are metres; ``rotation_quat`` is x, y, z, w, euler angles are degrees.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from urlab_client.results import IDENTITY_XYZW, ShortRepr, Vec3, Vec4
from urlab_wire.ops.outliner import ConversionBlock

if TYPE_CHECKING:
    from urlab_client.client import URLabClient
    from urlab_client.handles.articulation import URLabArticulation


@dataclass(repr=False)
class URLabAsset(ShortRepr):
    """One actor of ``scene.apply_scene``: a model file (absolute path on the server's machine) and its pose."""

    actor_id: str
    xml: str
    location: Sequence[float] = (0, 0, 0)
    rotation_quat: Sequence[float] | None = None
    rotation_euler: Sequence[float] | None = None
    scale: Sequence[float] = (1, 1, 1)


@dataclass(repr=False)
class URLabBlueprint(ShortRepr):
    """An imported model, ready to spawn. ``imported_now`` says that this call imported it."""

    class_path: str
    short_name: str
    imported_now: bool


@dataclass(repr=False)
class URLabSpawnHandle(ShortRepr):
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


@dataclass(repr=False)
class URLabLightHandle(ShortRepr):
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


@dataclass(repr=False)
class EditStep(ShortRepr):
    """An edit of the level that was taken back, or made again, and the labels of those that come next, if any."""

    label: str
    can_undo: str | None = None
    can_redo: str | None = None
    requires_pie_restart: bool = False


@dataclass(repr=False)
class LevelInfo(ShortRepr):
    """A level that can be opened; ``shipped`` with the server, or of the project. An extension of ours."""

    name: str
    level_path: str
    shipped: bool


@dataclass(repr=False)
class LevelStatus(ShortRepr):
    """The open level. ``can_undo`` and ``can_redo`` are labels of edits, or None.

    ``unsaved_changes`` is None when the server does not tell (it is an extension of ours, as the labels are).
    """

    level_path: str
    unsaved_changes: bool | None = None
    can_undo: str | None = None
    can_redo: str | None = None


@dataclass(repr=False)
class UploadedAsset(ShortRepr):
    """A file that was uploaded: ``path`` is what `scene.import_xml` takes, ``models`` all models of a zip file."""

    path: str
    models: list[str] = field(default_factory=list)


@dataclass(repr=False)
class ActorInfo(ShortRepr):
    """One actor. The fields from ``static`` on describe its quick convert, and are None without one.

    ``conversion`` (extension) says how far a mesh is that is being cut into hulls.
    """

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
    selected: bool = False
    conversion: ConversionBlock | None = None


@dataclass(repr=False)
class BlueprintInfo(ShortRepr):
    """One blueprint of the project."""

    class_path: str
    short_name: str


@dataclass(repr=False)
class ActorBounds(ShortRepr):
    """Axis-aligned box around an actor; ``extents`` are half sizes."""

    actor_name: str
    min: Vec3
    max: Vec3
    center: Vec3
    extents: Vec3


@dataclass(repr=False)
class SceneSnapshotActor(ShortRepr):
    """One actor of a snapshot; ``urlab`` lists the element names of an articulation."""

    name: str
    actor_class: str
    actor_id: str
    label: str
    location: Vec3
    rotation_quat: Vec4
    tags: list[str] = field(default_factory=list)
    urlab: dict[str, Any] | None = None
    selected: bool = False


@dataclass(repr=False)
class SceneSnapshot(ShortRepr):
    """Everything in the level."""

    level_path: str
    in_pie: bool
    actors: list[SceneSnapshotActor] = field(default_factory=list)


@dataclass(repr=False)
class ActorHierarchyNode(ShortRepr):
    """A part of an actor and the parts attached to it."""

    name: str
    actor_class: str
    location: Vec3
    children: list["ActorHierarchyNode"] = field(default_factory=list)

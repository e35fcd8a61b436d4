"""Results of the runtime and viewport namespaces. Lengths are metres, ``quat`` is w, x, y, z."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from urlab_client.types.reading import IDENTITY_WXYZ, IDENTITY_XYZW, Vec3, Vec4, Vec6, vec3, vec4, vec6, words


@dataclass
class SimOptions:
    """The physics options in force on the server, SI units; None where the server did not echo a field."""

    timestep: float | None = None
    gravity: Vec3 | None = None
    wind: Vec3 | None = None
    magnetic: Vec3 | None = None
    density: float | None = None
    viscosity: float | None = None
    impratio: float | None = None
    tolerance: float | None = None
    iterations: int | None = None
    ls_iterations: int | None = None
    integrator: str | None = None
    cone: str | None = None
    solver: str | None = None
    noslip_iterations: int | None = None
    noslip_tolerance: float | None = None
    ccd_iterations: int | None = None
    ccd_tolerance: float | None = None
    enable_multiccd: bool | None = None
    enable_sleep: bool | None = None
    sleep_tolerance: float | None = None
    disableflags: int | None = None
    enableflags: int | None = None
    num_worker_threads: int | None = None

    @classmethod
    def from_wire(cls, options: Mapping[str, Any]) -> "SimOptions":
        """Read an ``options`` map; unknown fields are left out."""
        known = {one.name for one in fields(cls)} & options.keys()
        read: dict[str, Any] = {name: options[name] for name in known}
        read |= {name: vec3(value) for name, value in read.items() if isinstance(value, list)}
        return cls(**read)


@dataclass
class MocapPose:
    """World pose of a mocap body."""

    body: str
    pos: Vec3
    quat: Vec4

    @classmethod
    def from_wire(cls, reply: Mapping[str, Any]) -> "MocapPose":
        """Read a mocap reply."""
        return cls(str(reply.get("body") or ""), vec3(reply.get("pos")), vec4(reply.get("quat"), IDENTITY_WXYZ))


@dataclass
class Contact:
    """One contact. ``force`` is (fx, fy, fz, tx, ty, tz) in the contact frame; ``dist`` < 0 penetrates."""

    geom1: str
    geom2: str
    body1: str
    body2: str
    pos: Vec3
    normal: Vec3
    dist: float
    force: Vec6

    @classmethod
    def from_wire(cls, block: Mapping[str, Any]) -> "Contact":
        """Read one contact."""
        return cls(
            **words(block, "geom1", "geom2", "body1", "body2"),
            pos=vec3(block.get("pos")),
            normal=vec3(block.get("normal")),
            dist=float(block.get("dist") or 0.0),
            force=vec6(block.get("force")),
        )


@dataclass
class ContactsResult:
    """The contacts that were asked for; ``truncated`` says that there were more."""

    n_contacts: int
    truncated: bool
    contacts: list[Contact] = field(default_factory=list)

    @classmethod
    def from_wire(cls, reply: Mapping[str, Any]) -> "ContactsResult":
        """Read a get_contacts reply."""
        contacts = [Contact.from_wire(block) for block in reply.get("contacts") or ()]
        return cls(int(reply.get("n_contacts", len(contacts))), bool(reply.get("truncated")), contacts)


@dataclass
class KeyframeInfo:
    """One keyframe; arrays are those of the compiled model, flat."""

    name: str
    time: float
    qpos: list[float] = field(default_factory=list)
    qvel: list[float] = field(default_factory=list)
    ctrl: list[float] = field(default_factory=list)
    mocap_pos: list[float] = field(default_factory=list)
    mocap_quat: list[float] = field(default_factory=list)

    @classmethod
    def from_wire(cls, block: Mapping[str, Any]) -> "KeyframeInfo":
        """Read one keyframe."""
        arrays = (list(block.get(key) or ()) for key in ("qpos", "qvel", "ctrl", "mocap_pos", "mocap_quat"))
        return cls(str(block.get("name") or ""), float(block.get("time") or 0.0), *arrays)


@dataclass
class CameraPose:
    """The viewport camera. ``rotation_quat`` is x, y, z, w; euler in degrees; ``fov`` horizontal degrees."""

    location: Vec3
    rotation_quat: Vec4
    rotation_euler: Vec3
    fov: float

    @classmethod
    def from_wire(cls, reply: Mapping[str, Any]) -> "CameraPose":
        """Read a reply of the viewport's camera ops."""
        return cls(
            vec3(reply.get("location")),
            vec4(reply.get("rotation_quat"), IDENTITY_XYZW),
            vec3(reply.get("rotation_euler")),
            float(reply.get("fov") or 0.0),
        )

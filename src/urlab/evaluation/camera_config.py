"""The cameras that policies see through, as TOML files: one file per robot, the shipped ones in ``configs/cameras``.

```toml
embodiment = "franka_panda"

[cameras.obs_camera]
resolution = [640, 480]       # width, height
fovy_deg = 56.0               # or focal_px = [450, 450], and center_px if that is not the middle
pos = [0.65, 0.0, 1.85]       # metres, in the world, or in the frame of `body`
look_at = [0.0, 0.0, 1.0]     # a point in the same frame; or quat_wxyz, looking along +X with +Z up
body = "hand"                 # a body of the robot; left out, the camera stands in the world
depth = true                  # false draws no depth, and takes less time
```

Every error is about the file, a line and a field.
"""

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import msgspec

from urlab.errors import FileError, did_you_mean
from urlab.geometry import Quat, Vec3, multiply, normalised, wxyz_from_axis_angle
from urlab.toml_tables import TomlTable

SHIPPED_CAMERAS = Path(__file__).resolve().parent / "configs" / "cameras"

_Pixels = Annotated[int, msgspec.Meta(ge=16, le=4096)]
_Focal = Annotated[float, msgspec.Meta(gt=0, le=100_000)]
_Metres = Annotated[float, msgspec.Meta(ge=-100, le=100)]
_SHORTEST = 1e-6
_BodiesOf = Callable[[str], Collection[str]]


class CameraConfigError(FileError):
    """A file of cameras that cannot be used: the message has the file, the line, the field and what is allowed."""


@dataclass(frozen=True)
class CameraMount:
    """A camera that policies see through: a pinhole with its intrinsics in pixels.

    The pose is in the frame of ``body`` (None is the world), in axes that look along +X with +Z up. Without ``depth``
    its views have no depth.
    """

    name: str
    body: str | None
    pos_m: Vec3
    quat_wxyz: Quat
    fx: float
    fy: float
    cx: float = 320.0
    cy: float = 240.0
    width: int = 640
    height: int = 480
    depth: bool = True

    def resized(self, width: int, height: int) -> "CameraMount":
        """The same camera with other pixels: as much is seen from top to bottom, the aspect decides the rest."""
        scale = height / self.height
        return replace(
            self,
            fx=self.fx * scale,
            fy=self.fy * scale,
            cx=width / 2 + (self.cx - self.width / 2) * scale,
            cy=self.cy * scale,
            width=width,
            height=height,
        )


CameraMounts = tuple[CameraMount, ...]


@dataclass(frozen=True)
class CameraChoice:
    """The cameras of a run. ``rigs`` replace the shipped ones, by embodiment.

    ``wanted`` are the cameras that are drawn, and their sizes (width, height; None is the rig's own); None is all of
    them as they are. A name that a robot's rig does not have is none of that robot's. Without ``depth`` none has depth.
    """

    rigs: dict[str, CameraMounts] = field(default_factory=dict)
    wanted: dict[str, tuple[int, int] | None] | None = None
    depth: bool = True

    def mounts(self, embodiment: str, default: CameraMounts) -> CameraMounts:
        """The cameras of that robot, in the order of its rig; ``default`` is what it has if no rig replaces it."""
        rig = self.rigs.get(embodiment, default)
        wanted = {one.name: None for one in rig} if self.wanted is None else self.wanted
        chosen = (_sized(one, wanted[one.name]) for one in rig if one.name in wanted)
        return tuple(one if self.depth else replace(one, depth=False) for one in chosen)


def _sized(mount: CameraMount, size: tuple[int, int] | None) -> CameraMount:
    return mount if size is None else mount.resized(*size)


@dataclass(frozen=True)
class CameraRigFile:
    """The cameras of one robot, as a file has them."""

    embodiment: str
    mounts: CameraMounts


def shipped_cameras(embodiment: str) -> CameraMounts:
    """The cameras that the robot has unless a file says otherwise."""
    return load_cameras(SHIPPED_CAMERAS / f"{embodiment}.toml").mounts


def load_cameras(path: Path, bodies: _BodiesOf | None = None) -> CameraRigFile:
    """The cameras in a file; CameraConfigError says what is wrong with it.

    ``bodies`` gives the names of a robot's bodies, or raises KeyError for an unknown robot; without it neither is
    checked here.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as unreadable:
        raise CameraConfigError(f"{path}: cannot be read: {unreadable.strerror}") from unreadable
    except UnicodeDecodeError as unreadable:
        raise CameraConfigError(f"{path}: cannot be read: {unreadable}") from unreadable
    return parse_cameras(text, source=str(path), bodies=bodies)


def parse_cameras(text: str, *, source: str, bodies: _BodiesOf | None = None) -> CameraRigFile:
    """The cameras in TOML text; ``source`` is what messages call it. ``bodies`` as for `load_cameras`."""
    file = TomlTable.parse(text, source=source, error=CameraConfigError)
    head = file.convert(_File)
    tables = file.table("cameras")
    if not tables.content:
        file.fail("a file of cameras needs at least one", "cameras")
    known = _known_bodies(file, head.embodiment, bodies)
    mounts = tuple(_mount(name, tables.table(name), known) for name in tables.content)
    return CameraRigFile(head.embodiment, mounts)


class _File(msgspec.Struct, forbid_unknown_fields=True):
    embodiment: str
    cameras: dict[str, dict[str, object]]


class _Camera(msgspec.Struct, forbid_unknown_fields=True):
    resolution: tuple[_Pixels, _Pixels]
    pos: tuple[_Metres, _Metres, _Metres]
    quat_wxyz: tuple[float, float, float, float] | None = None
    look_at: tuple[_Metres, _Metres, _Metres] | None = None
    fovy_deg: Annotated[float, msgspec.Meta(ge=1, le=170)] | None = None
    focal_px: tuple[_Focal, _Focal] | None = None
    center_px: tuple[float, float] | None = None
    body: str | None = None
    depth: bool = True


def _known_bodies(file: TomlTable, embodiment: str, bodies: _BodiesOf | None) -> Collection[str] | None:
    if bodies is None:
        return None
    try:
        return bodies(embodiment)
    except KeyError as unknown:
        file.fail(f"there is no robot {embodiment!r}; {unknown.args[0]}", "embodiment")


def _mount(name: str, table: TomlTable, bodies: Collection[str] | None) -> CameraMount:
    if not name.isidentifier():
        table.fail("a camera's name has letters, digits and _")
    camera = table.convert(_Camera)
    if bodies is not None and camera.body is not None and camera.body not in bodies:
        table.fail(
            f"the robot has no body {camera.body!r}{did_you_mean(camera.body, bodies)}; it has: {', '.join(bodies)}",
            "body",
        )
    width, height = camera.resolution
    fx, fy = _focal(table, camera)
    cx, cy = camera.center_px or (width / 2, height / 2)
    quat = _orientation(table, camera)
    return CameraMount(name, camera.body, camera.pos, quat, fx, fy, cx, cy, width, height, camera.depth)


def _focal(table: TomlTable, camera: _Camera) -> tuple[float, float]:
    if (camera.fovy_deg is None) == (camera.focal_px is None):
        table.fail("needs either fovy_deg or focal_px", "fovy_deg")
    if camera.focal_px is not None:
        return camera.focal_px
    focal = camera.resolution[1] / 2 / math.tan(math.radians(camera.fovy_deg or 0.0) / 2)
    return focal, focal


def _orientation(table: TomlTable, camera: _Camera) -> Quat:
    if (camera.quat_wxyz is None) == (camera.look_at is None):
        table.fail("needs either quat_wxyz or look_at", "quat_wxyz")
    if camera.quat_wxyz is not None:
        if not all(map(math.isfinite, camera.quat_wxyz)) or math.hypot(*camera.quat_wxyz) < _SHORTEST:
            table.fail("is no rotation", "quat_wxyz")
        return camera.quat_wxyz
    x, y, z = (there - here for there, here in zip(camera.look_at or (), camera.pos, strict=True))
    if math.hypot(x, y, z) < _SHORTEST:
        table.fail("is where the camera is", "look_at")
    yaw = wxyz_from_axis_angle((0.0, 0.0, 1.0), math.atan2(y, x))
    pitch = wxyz_from_axis_angle((0.0, 1.0, 0.0), -math.atan2(z, math.hypot(x, y)))
    return normalised(multiply(yaw, pitch))

"""One camera of a running scene: what it is asked for, when it is due, what it saw last."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from urlab.cameras.renderer import Frame
from urlab.compile.compiled_scene import CameraSlot, CompiledScene
from urlab.errors import BadValue, known
from urlab.physics.snapshot import Snapshot
from urlab_wire.enums import CameraMode
from urlab_wire.pixels import MAX_BYTES_PER_PIXEL

DEFAULT_RATE_HZ = 30.0
DEMAND_S = 1.0
"""For so long a camera that was asked for is kept fresh."""

_GLOBAL = "global"
_AT_ONCE = 0.0


@dataclass(eq=False)
class SceneCamera:
    """``name`` is ``prefix/short``, or the bare name of a camera that no robot owns.

    ``subscribed`` is for publishers to fill: each tells whether it has a subscriber, at once and without locking.
    ``rendered`` counts pictures that were drawn for this camera; turns that drawing could not keep up with are left
    out. `Capture` owns the rest and changes it under its lock; times are of its clock.
    """

    name: str
    slot: CameraSlot
    topic: str
    mode: CameraMode
    streaming: bool = False
    rate_hz: float = DEFAULT_RATE_HZ
    subscribed: list[Callable[[], bool]] = field(default_factory=list)
    rendered: int = 0
    muted: bool = False
    """Whether its frames go to no subscriber, as all streams were switched off."""

    frame: Frame | None = None
    source: Snapshot | None = None
    taken_s: float = -math.inf
    """When the state of the newest frame was the newest one."""

    drawing_s: float = 0.0
    """From then until that frame was there."""

    failure: str | None = None
    asked_until_s: float = -math.inf
    next_due_s: float = _AT_ONCE

    @property
    def is_global(self) -> bool:
        """Whether no robot owns it."""
        return self.name == self.slot.name

    @property
    def owner(self) -> str:
        """The prefix of the robot that owns it, or nothing."""
        return "" if self.is_global else self.name.partition("/")[0]

    @property
    def key(self) -> str:
        """What it is called beside its owner: in the handshake, and in the names of files."""
        return self.name if self.is_global else self.slot.short

    @property
    def frame_bytes(self) -> int:
        """Room for a picture, whatever the mode."""
        width, height = self.slot.resolution
        return MAX_BYTES_PER_PIXEL * width * height

    @property
    def is_streamed(self) -> bool:
        """Whether its frames go out: it is switched on or has a subscriber, and streams are not switched off."""
        return not self.muted and (self.streaming or any(listens() for listens in self.subscribed))

    def shows(self, oldest_frame_id: int) -> bool:
        """Whether the newest frame is of that state or a newer one."""
        return self.frame is not None and self.frame.frame_id >= oldest_frame_id

    def is_recent(self, now_s: float) -> bool:
        """Whether the newest frame is no older than the stream's period and one drawing."""
        return now_s - self.taken_s <= 1 / self.rate_hz + self.drawing_s

    def is_wanted(self, now_s: float) -> bool:
        """Whether it is to be drawn at its rate."""
        return now_s < self.asked_until_s or self.is_streamed

    def due_in(self, now_s: float) -> float | None:
        """Seconds until it is due, 0 when it is; None while it is not wanted."""
        if not self.is_wanted(now_s):
            self.failure = None
            self.due_at_once()
            return None
        return max(0.0, self.next_due_s - now_s)

    def take_turn(self, now_s: float) -> None:
        """It is being drawn now. Turns are at multiples of the period, so that cameras of one rate show one state."""
        self.next_due_s = (math.floor(now_s * self.rate_hz) + 1) / self.rate_hz

    def due_at_once(self) -> None:
        """Be drawn as soon as possible."""
        self.next_due_s = _AT_ONCE

    def put_off(self, now_s: float) -> None:
        """Drawing failed: do not try again before a while."""
        self.next_due_s = now_s + DEMAND_S

    def keep(self, frame: Frame, source: Snapshot, taken_s: float, now_s: float) -> bool:
        """Remember the newest frame; False when the mode has changed since it was asked for.

        ``taken_s`` is when ``source`` was the newest state.
        """
        self.rendered += 1
        if frame.mode is not self.mode:
            return False
        self.failure = None
        if self.frame is None or frame.frame_id >= self.frame.frame_id:
            self.frame, self.source = frame, source
            self.taken_s, self.drawing_s = taken_s, now_s - taken_s
        return True

    def forget(self) -> None:
        """What it saw is of no use any more."""
        self.frame = self.source = self.failure = None
        self.due_at_once()


def scene_cameras(scene: CompiledScene) -> dict[str, SceneCamera]:
    """Every camera of a scene, by its name; those of robots come first."""
    return {camera.name: camera for camera in _each_camera(scene)}


def resolve_camera(cameras: Mapping[str, SceneCamera], name: str) -> SceneCamera:
    """The camera of that name: ``prefix/short``, or the bare name where only one camera has it; else BadValue.

    A robot's camera goes before one that no robot owns, whose full name is its own.
    """
    if name in cameras:
        return cameras[name]
    called = [camera for camera in cameras.values() if camera.slot.short == name]
    bare = [camera for camera in called if not camera.is_global] or called
    if len(bare) > 1:
        raise BadValue(f"several cameras are called {name!r}: {known(camera.name for camera in bare)}")
    if not bare:
        raise BadValue(f"there is no camera {name!r}; there are: {known(cameras)}")
    return bare[0]


def _each_camera(scene: CompiledScene) -> Iterator[SceneCamera]:
    for robot in scene.articulations:
        for slot in robot.cameras:
            topic = f"{robot.prefix}/camera/{slot.short}"
            yield SceneCamera(f"{robot.prefix}/{slot.short}", slot, topic, slot.mode)
    for slot in scene.global_cameras:
        yield SceneCamera(slot.name, slot, f"{_GLOBAL}/camera/{slot.name}", slot.mode)

"""The viewport: its camera, its mode, its pictures."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from urlab.cameras import GlThread, shared_gl
from urlab.errors import BadValue
from urlab.geometry import Pose, Quat, Vec3
from urlab.overlay import MAX_REACH_M, Drawings, Overlay
from urlab.viewport.camera import DEFAULT_OFFSET_M, ActorTracker, ViewCamera
from urlab.viewport.renderer import PosedModel, ViewportRenderer
from urlab.viewport.texts import png_with_texts
from urlab.viewport.view_mode import STYLES, ViewMode
from urlab_wire.pixels import Bytes

VIEW = "viewport"
DEFAULT_SIZE = (1280, 720)
MIN_PIXELS, MAX_PIXELS = 16, 4096

_START = ViewCamera((-3.0, -3.0, 2.0), (1.0, 0.0, 0.0, 0.0)).looking_at((0.0, 0.0, 0.0))


@dataclass(frozen=True, slots=True)
class Screenshot:
    """A picture as a PNG file, and what it shows. ``sim_time`` is None while nothing plays."""

    png: bytes
    width: int
    height: int
    mode: ViewMode
    sim_time: float | None


class Viewport:
    """Shows what ``posed_model`` returns, and what is drawn over it. Any thread may call it.

    It keeps a state of its own for drawing, and never touches the one that is stepped.
    """

    def __init__(
        self,
        posed_model: Callable[[], PosedModel],
        overlay: Overlay,
        *,
        gl: GlThread | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._posed_model = posed_model
        self._overlay = overlay
        self._gl = gl or shared_gl()
        self._clock = clock
        self._lock = threading.RLock()
        self._camera = _START
        self._tracker: ActorTracker | None = None
        self.mode = ViewMode.LIT
        """How the world is shown; `set_mode` changes it."""

        self._aspect = DEFAULT_SIZE[0] / DEFAULT_SIZE[1]
        self._renderer = ViewportRenderer()
        self._gl.adopt(self._renderer)
        overlay.add_view(VIEW)

    def set_mode(self, word: str) -> ViewMode:
        """Show the world in another way; InvalidMode lists the words."""
        self.mode = ViewMode.of(word)
        return self.mode

    @property
    def camera(self) -> ViewCamera:
        """Where the camera is now."""
        with self._lock:
            if self._tracker is not None:
                self._camera = self._tracker.follow(self._camera, self._clock())
            return self._camera

    def set_camera(self, location: Vec3, quat_wxyz: Quat | None = None, fov_deg: float | None = None) -> ViewCamera:
        """Place the camera; what is left out stays. Ends tracking."""
        if max(map(abs, location)) > MAX_REACH_M:
            raise BadValue(f"location must be within {MAX_REACH_M:g} m of the origin, but is {list(location)}")
        if fov_deg is not None and not 0 < fov_deg < 180:
            raise BadValue(f"fov must be between 0 and 180 degrees, but is {fov_deg}")
        with self._lock:
            now = self.camera
            self._tracker = None
            self._camera = ViewCamera(location, quat_wxyz or now.quat_wxyz, fov_deg or now.fov_deg)
            return self._camera

    def frame(self, lower: Vec3, upper: Vec3) -> ViewCamera:
        """Move the camera so that a box (two opposite corners, metres) fills a picture of the last size asked for.

        It looks in the same direction as before. Ends tracking.
        """
        with self._lock:
            camera = self.camera.framing(lower, upper, self._aspect)
            return self.set_camera(camera.location)

    def track(
        self,
        actor_pose: Callable[[], Pose | None],
        offset: Vec3 | None = None,
        smoothing: float = 0.0,
    ) -> None:
        """Follow an actor from ``offset`` (its frame, metres), looking at it, instead of the one before.

        ``smoothing`` in [0, 1): 0 follows at once. ``actor_pose`` is called by `camera`, on the thread that reads it.
        """
        if not 0 <= smoothing < 1:
            raise BadValue(f"smoothing must be at least 0 and below 1, but is {smoothing}")
        with self._lock:
            self._camera = self.camera
            self._tracker = ActorTracker(actor_pose, offset or DEFAULT_OFFSET_M, smoothing, self._clock())

    def untrack(self) -> bool:
        """Stop following, where the camera is now; whether it did follow."""
        with self._lock:
            self._camera = self.camera
            was_tracking, self._tracker = self._tracker is not None, None
            return was_tracking

    def screenshot(self, width: int = DEFAULT_SIZE[0], height: int = DEFAULT_SIZE[1]) -> Screenshot:
        """A picture of what the viewport shows, drawings and texts included; NoViewport when there is no GL."""
        _check_size(width, height)
        posed, mode = self._posed_model(), self.mode
        with self._lock:
            self._aspect = width / height
            camera = self.camera

        def draw() -> tuple[Bytes, Drawings]:
            drawings = self._overlay.take(VIEW)
            return self._renderer.draw(posed, camera, STYLES[mode], drawings.items, width, height), drawings

        pixels, drawings = self._gl.run(draw)
        return Screenshot(png_with_texts(pixels, camera, drawings), width, height, mode, posed.sim_time)

    def close(self) -> None:
        """Give back what the pictures needed; the next one makes it anew."""
        self._overlay.remove_view(VIEW)
        if self._renderer.is_in_use:
            self._gl.run(self._renderer.free)


def _check_size(width: int, height: int) -> None:
    for name, pixels in (("width", width), ("height", height)):
        if not MIN_PIXELS <= pixels <= MAX_PIXELS:
            raise BadValue(f"{name} must be between {MIN_PIXELS} and {MAX_PIXELS} pixels, but is {pixels}")

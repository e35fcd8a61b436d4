"""The viewport: its camera, its mode, its pictures."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from urlab.cameras import GlThread, rendering, shared_gl
from urlab.cameras.profile import effective_profile
from urlab.cameras.scene_camera import resolve_camera
from urlab.compile.bounds import Aabb
from urlab.config import RenderProfile
from urlab.errors import BadValue, NoBounds, UrlabError
from urlab.geometry import Pose, Quat, Vec3
from urlab.overlay import MAX_REACH_M, Drawings, Overlay, VisualFlags
from urlab.viewport.camera import DEFAULT_OFFSET_M, ActorTracker, ViewCamera
from urlab.viewport.framing import box_of_actor, box_of_scene
from urlab.viewport.posed_model import PosedData, PosedModel, model_camera
from urlab.viewport.remote_view import RemoteView, RemoteViews
from urlab.viewport.renderer import ViewportRenderer, ViewRequest, check_size
from urlab.viewport.texts import png_with_texts
from urlab.viewport.view_mode import STYLES, ViewMode, ViewStyle
from urlab_wire.pixels import Bytes

VIEW = "viewport"
REMOTE_VIEW = "remote"
DEFAULT_SIZE = (1280, 720)

_START = ViewCamera((-3.0, -3.0, 2.0), (1.0, 0.0, 0.0, 0.0)).looking_at((0.0, 0.0, 0.0))
_SMALLEST_BOX_M = 0.05
"""A fresh view comes no nearer than for something of this size."""


@dataclass(frozen=True, slots=True)
class Screenshot:
    """A picture as a PNG file, and what it shows. ``sim_time`` is None while nothing plays.

    ``rendering`` is how it was drawn, as `urlab.cameras.rendering` says it.
    """

    png: bytes
    width: int
    height: int
    mode: ViewMode
    sim_time: float | None
    rendering: Mapping[str, str]


class Viewport:
    """Shows what ``posed_model`` returns, and what is drawn over it. Any thread may call it.

    It keeps a state of its own for drawing, and never touches the one that is stepped. Until its camera is placed, it
    frames the scene. The selected actor is outlined.
    """

    def __init__(
        self,
        posed_model: Callable[[], PosedModel],
        overlay: Overlay,
        *,
        profile: RenderProfile = RenderProfile.AUTO,
        gl: GlThread | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._posed_model = posed_model
        self._overlay = overlay
        self._profile = profile
        self._gl = gl or shared_gl()
        self._clock = clock
        self._lock = threading.RLock()
        self._camera = _START
        self._is_placed = False
        self._fresh: tuple[object, ViewCamera] = (None, _START)
        self._tracker: ActorTracker | None = None
        self._through: str | None = None
        self.mode = ViewMode.LIT
        """How the world is shown; `set_mode` changes it."""

        self._flags = VisualFlags()
        self._aspect = DEFAULT_SIZE[0] / DEFAULT_SIZE[1]
        self._posed_data = PosedData()
        self._remote_views = RemoteViews()
        self._renderer = ViewportRenderer()
        self._gl.adopt(self._renderer)
        overlay.add_view(VIEW)

    # -- what is shown ------------------------------------------------------------------------------------------

    def set_mode(self, word: str) -> ViewMode:
        """Show the world in another way; InvalidMode lists the words."""
        self.mode = ViewMode.of(word)
        return self.mode

    def set_overlays(self, changes: Mapping[str, bool | str]) -> dict[str, bool | str]:
        """Switch what MuJoCo draws over the model, all that is named or nothing; returns what is in force."""
        with self._lock:
            self._flags = self._flags.changed(changes)
            return self._flags.in_force()

    # -- the camera ---------------------------------------------------------------------------------------------

    @property
    def camera(self) -> ViewCamera:
        """Where the camera is now."""
        with self._lock:
            if self._through is None and (self._tracker is not None or self._is_placed):
                return self._moved()
            try:
                return self._moved(self._posed_model())
            except UrlabError:  # a level that does not compile is no reason to have no camera
                return self._camera

    @property
    def overlays(self) -> dict[str, bool | str]:
        """Every overlay by its word: whether it is drawn, or at which kind of element."""
        return self._flags.in_force()

    @property
    def is_tracking(self) -> bool:
        """Whether the camera follows an actor."""
        return self._tracker is not None

    @property
    def looks_through(self) -> str | None:
        """The camera of the model that it looks through, as it was named, if it does."""
        return self._through

    def _moved(self, posed: PosedModel | None = None) -> ViewCamera:
        """The camera where it is for that state; the caller holds the lock."""
        if self._through is not None and posed is not None:
            camera = self._model_camera(posed, self._through)
            if camera is not None:
                return camera
        if self._tracker is not None:
            self._camera = self._tracker.follow(self._camera)
        elif not self._is_placed and posed is not None:
            self._camera = self._framing(posed)
        return self._camera

    def _model_camera(self, posed: PosedModel, name: str) -> ViewCamera | None:
        try:
            found = resolve_camera(posed.cameras, name)
        except BadValue:  # it is gone with its scene; it may come back
            return None
        return model_camera(posed, self._posed_data.of(posed), found, self._aspect)

    def _framing(self, posed: PosedModel) -> ViewCamera:
        """What a fresh view of that model sees: the same until it is another model, or another shape of picture."""
        key = posed.key, self._aspect
        if self._fresh[0] != key:
            box = box_of_scene(posed.model, self._posed_data.of(posed))
            framed = _START if box is None else _START.framing(*_not_too_small(box), self._aspect)
            self._fresh = key, framed
        return self._fresh[1]

    def set_camera(self, location: Vec3, quat_wxyz: Quat | None = None, fov_deg: float | None = None) -> ViewCamera:
        """Place the camera; what is left out stays. Ends tracking, and looking through another camera."""
        if max(map(abs, location)) > MAX_REACH_M:
            raise BadValue(f"location must be within {MAX_REACH_M:g} m of the origin, but is {list(location)}")
        if fov_deg is not None and not 0 < fov_deg < 180:
            raise BadValue(f"fov must be between 0 and 180 degrees, but is {fov_deg}")
        with self._lock:
            now = self.camera
            self._tracker = self._through = None
            self._is_placed = True
            self._camera = ViewCamera(location, quat_wxyz or now.quat_wxyz, fov_deg or now.fov_deg)
            return self._camera

    def look_through(self, name: str) -> ViewCamera:
        """See what a camera of the model sees, wherever it goes, until `untrack`; BadValue lists the cameras."""
        posed = self._posed_model()
        resolve_camera(posed.cameras, name)
        with self._lock:
            self._through = name
            return self._moved(posed)

    def frame(self, lower: Vec3, upper: Vec3) -> ViewCamera:
        """Move the camera so that a box (two opposite corners, metres) fills a picture of the last size asked for.

        It looks in the same direction as before. Ends tracking.
        """
        with self._lock:
            camera = self.camera.framing(lower, upper, self._aspect)
            return self.set_camera(camera.location)

    def frame_actor(self, name: str) -> ViewCamera:
        """Frame an actor where it is now: what moves of it, and not the floor that it brought; else NoBounds."""
        posed = self._posed_model()
        box = box_of_actor(posed, self._posed_data.of(posed), name)
        if box is None:
            raise NoBounds(f"{name!r} has no geometry that a view could frame")
        return self.frame(box.lower, box.upper)

    def track(
        self,
        actor_pose: Callable[[], Pose | None],
        offset: Vec3 | None = None,
        smoothing: float = 0.0,
        clock: Callable[[], float] | None = None,
        states: Callable[[], Callable[[Any], Pose | None]] | None = None,
    ) -> None:
        """Follow an actor from ``offset`` (its frame, metres), looking at it, instead of the one before.

        ``smoothing`` in [0, 1): 0 follows at once. ``actor_pose`` is called by `camera`, on the thread that reads it,
        and so is ``clock``, in whose seconds the camera moves. ``states``, as in `ActorTracker`, is for films; without
        it they do not follow.
        """
        if not 0 <= smoothing < 1:
            raise BadValue(f"smoothing must be at least 0 and below 1, but is {smoothing}")
        with self._lock:
            self._camera = self.camera
            self._is_placed, self._through = True, None
            self._tracker = ActorTracker(
                actor_pose, offset or DEFAULT_OFFSET_M, smoothing, clock or self._clock, states=states
            )

    def untrack(self) -> bool:
        """Stop following, where the camera is now, or go back from a camera of the model; whether it did either."""
        with self._lock:
            if self._through is not None:
                self._through = None
                return True
            self._camera = self.camera
            was_tracking, self._tracker = self._tracker is not None, None
            return was_tracking

    # -- viewers elsewhere ----------------------------------------------------------------------------------------

    def read(self, known_model: str | None, *, as_file: bool = False) -> tuple[RemoteView, ViewCamera, Drawings]:
        """What a viewer draws by itself: the world as it is now, the camera there, and what is drawn over it.

        The model comes with it, or a file that has it, unless ``known_model`` is its word. A drawing for one picture
        goes to the viewer that reads first.
        """
        posed = self._posed_model()
        with self._lock:
            camera = self._moved(posed)
        view = self._remote_views.view(posed, known_model, as_file=as_file)
        return view, camera, self._overlay.take(REMOTE_VIEW)

    def prepare_file(self) -> None:
        """Make the file with the model before a viewer asks for it."""
        self._remote_views.view(self._posed_model(), None, as_file=True)

    # -- pictures -----------------------------------------------------------------------------------------------

    def screenshot(self, width: int = DEFAULT_SIZE[0], height: int = DEFAULT_SIZE[1]) -> Screenshot:
        """A picture of what the viewport shows, drawings and texts included; NoViewport when there is no GL."""
        check_size(width, height)
        posed, mode = self._posed_model(), self.mode
        outlined = frozenset(posed.selected_bodies)
        with self._lock:
            self._aspect = width / height
            camera, flags = self._moved(posed), self._flags

        def draw() -> tuple[Bytes, Drawings]:
            drawings = self._overlay.take(VIEW)
            request = ViewRequest(posed, camera, STYLES[mode], width, height, flags, outlined, drawings.items)
            return self._renderer.draw(request, effective_profile(self._profile, self._gl.gl_name())), drawings

        pixels, drawings = self._gl.run(draw)
        png = png_with_texts(pixels, camera, drawings)
        return Screenshot(png, width, height, mode, posed.sim_time, rendering(self._profile, self._gl))

    def pictures(self, width: int, height: int) -> "ViewPictures":
        """For pictures of other states, in this mode and with these overlays.

        They are seen through the camera where it is now; if it follows an actor, it does so in these states.
        """
        check_size(width, height)
        posed = self._posed_model()
        with self._lock:
            self._aspect = width / height
            camera, flags, tracker = self._moved(posed), self._flags, self._tracker
        follow = None if tracker is None else _StateTracker.of(tracker)
        return ViewPictures(self._gl, self._profile, camera, STYLES[self.mode], flags, (width, height), follow)

    def close(self) -> None:
        """Give back what the pictures needed; the next one makes it anew."""
        self._overlay.remove_view(VIEW)
        self._overlay.remove_view(REMOTE_VIEW)
        self._posed_data.free()
        self._remote_views.close()
        if self._renderer.is_in_use:
            self._gl.run(self._renderer.free)


class _StateTracker:
    """Lets a camera follow an actor through states of one scene, in their own time."""

    def __init__(self, tracker: ActorTracker, pose_in: Callable[[Any], Pose | None]) -> None:
        self._tracker, self._pose_in = tracker, pose_in
        self._data = PosedData()

    @classmethod
    def of(cls, tracker: ActorTracker) -> "_StateTracker | None":
        """None if the actor's place in other states is not known."""
        return None if tracker.states is None else cls(replace(tracker, seen_at_s=None), tracker.states())

    def follow(self, camera: ViewCamera, posed: PosedModel) -> ViewCamera:
        """The camera for that state."""
        return self._tracker.follow_to(camera, self._pose_in(self._data.of(posed)), posed.sim_time or 0.0)


class ViewPictures:
    """Pictures of one state after another, as a viewport shows them. For one thread; drawn on the GL thread."""

    def __init__(
        self,
        gl: GlThread,
        profile: RenderProfile,
        camera: ViewCamera,
        style: ViewStyle,
        flags: VisualFlags,
        size: tuple[int, int],
        tracker: _StateTracker | None = None,
    ) -> None:
        self._gl, self._profile, self._tracker = gl, profile, tracker
        self._camera, self._style, self._flags = camera, style, flags
        self.size = size
        """(width, height) in pixels."""

        self._renderer = ViewportRenderer()
        gl.adopt(self._renderer)

    def draw(self, posed: PosedModel) -> Bytes:
        """The picture of a state, RGB (height, width, 3), without drawings and outlines; NoViewport without GL."""
        if self._tracker is not None:
            self._camera = self._tracker.follow(self._camera, posed)
        request = ViewRequest(posed, self._camera, self._style, *self.size, self._flags)
        return self._gl.run(lambda: self._renderer.draw(request, effective_profile(self._profile, self._gl.gl_name())))

    def close(self) -> None:
        """Give back the GL memory."""
        if self._renderer.is_in_use:
            self._gl.run(self._renderer.free)


def _not_too_small(box: Aabb) -> tuple[Vec3, Vec3]:
    grow = max(0.0, _SMALLEST_BOX_M - max(box.half_size))
    x, y, z = (low - grow for low in box.lower)
    to_x, to_y, to_z = (high + grow for high in box.upper)
    return (x, y, z), (to_x, to_y, to_z)

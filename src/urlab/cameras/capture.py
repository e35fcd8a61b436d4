"""The cameras of a running scene: frames on request, and frames that keep coming."""

import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass

from urlab.cameras.gl_thread import GlThread
from urlab.cameras.renderer import Frame, RenderRequest, SceneRenderer, rendering
from urlab.cameras.scene_camera import DEMAND_S, SceneCamera, resolve_camera, scene_cameras
from urlab.compile.compiled_scene import CompiledScene
from urlab.config import RenderProfile
from urlab.errors import BadValue, NoViewport, OpTimeout, UrlabError, known
from urlab.physics.snapshot import Snapshot
from urlab_wire.enums import CameraMode

log = logging.getLogger("urlab.cameras")

Listener = Callable[[SceneCamera, Frame], None]

MAX_RATE_HZ = 1000.0
_FRAME_WAIT_S = 2.0
_JOIN_S = 2.0


@dataclass(frozen=True, slots=True)
class DrawnAhead:
    """Frames of a state that were begun before they were asked for; ``begun`` has one per camera."""

    cameras: Sequence[SceneCamera]
    snapshot: Snapshot
    taken_s: float
    begun: "Future[list[Frame]]"


class Capture:
    """Draws the cameras of one scene, on request and as streams. Any thread may call it, once `start` was called.

    ``snapshot`` gives the newest state. The capture thread draws a camera at its rate while it is switched on, while
    it has a subscriber, and for a second after `latest` was asked for it; otherwise it sleeps. Functions in
    ``on_frame`` are called on that thread with every frame that goes out; they must not block. A state that was drawn
    already is not drawn again, but its frame goes out again, so that frames keep coming while nothing moves.
    """

    def __init__(
        self,
        scene: CompiledScene,
        snapshot: Callable[[], Snapshot],
        profile: RenderProfile,
        *,
        gl: GlThread | None = None,
    ) -> None:
        self.cameras: Mapping[str, SceneCamera] = scene_cameras(scene)
        self._model = scene.model
        self._profile, self._gl = profile, gl
        self.renderer = SceneRenderer(scene, profile, gl)
        self.on_frame: list[Listener] = []
        self._snapshot = snapshot
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closing = False
        self._logged: set[str] = set()
        self._ahead: DrawnAhead | None = None
        self._stepped_id = -1
        """The state of the last request for frames of steps."""

    def fovy(self, camera: SceneCamera) -> float:
        """The vertical field of view that a camera has now, in degrees."""
        return float(self._model.cam_fovy[camera.slot.id])

    # -- life ---------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the capture thread; a scene without cameras has none."""
        if self.cameras and self._thread is None:
            self._thread = threading.Thread(target=self._run, name="urlab-capture", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """End the thread and give back the GL memory; no frame comes afterwards. May be called twice."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(_JOIN_S)
        self.renderer.close()

    def wake(self) -> None:
        """Look again which cameras are wanted; for a publisher, when a subscriber arrives."""
        with self._changed:
            self._changed.notify_all()

    def rendering(self) -> dict[str, str]:
        """How cameras are drawn: ``profile`` and ``renderer``, or ``problem`` if nothing can be; {} without cameras."""
        return rendering(self._profile, self._gl) if self.cameras else {}

    # -- switches -----------------------------------------------------------------------------------------------

    def resolve(self, name: str) -> SceneCamera:
        """The camera of that name, or of that bare name where only one camera has it; BadValue lists them."""
        return resolve_camera(self.cameras, name)

    def set_mode(self, name: str, mode: CameraMode) -> None:
        """Let a camera's pixels mean something else, from its next frame on."""
        camera = self.resolve(name)
        with self._changed:
            if camera.mode is not mode:
                camera.mode = mode
                camera.forget()
                self._changed.notify_all()

    def set_streaming(self, name: str, on: bool | None, rate_hz: float | None = None) -> None:
        """Switch a camera on, or back to being drawn on demand only; what is None stays as it is."""
        camera = self.resolve(name)
        self.check_rate(name, rate_hz)
        with self._changed:
            if on is not None:
                camera.streaming, camera.muted = on, False
            camera.rate_hz = camera.rate_hz if rate_hz is None else float(rate_hz)
            camera.due_at_once()
            self._changed.notify_all()

    def set_all_streaming(self, on: bool) -> None:
        """Switch every camera on; or off, so that its frames go to no subscriber either."""
        with self._changed:
            for camera in self.cameras.values():
                camera.streaming, camera.muted = on, not on
                camera.due_at_once()
            self._changed.notify_all()

    def check_rate(self, name: str, rate_hz: float | None) -> None:
        """BadValue unless a camera can be drawn so often."""
        if rate_hz is not None and not (math.isfinite(rate_hz) and 0 < rate_hz <= MAX_RATE_HZ):
            raise BadValue(f"rate_hz of camera {name!r} is {rate_hz}; it must be above 0 and at most {MAX_RATE_HZ:g}")

    # -- frames -------------------------------------------------------------------------------------------------

    def sync(self, names: Iterable[str], snapshot: Snapshot) -> dict[str, Frame]:
        """Fresh frames of exactly this state, by the names as asked. Blocks until they are drawn."""
        asked = {name: self.resolve(name) for name in names}
        taken = self._draw(list(dict.fromkeys(asked.values())), snapshot)
        return {name: taken[camera] for name, camera in asked.items()}

    def latest(self, names: Iterable[str], snapshot: Snapshot, oldest_frame_id: int = 0) -> dict[str, Frame]:
        """The newest frames of a scene that runs by itself, by the names as asked; kept fresh for the next second.

        Each shows ``snapshot``, the state of now, or one that is no older than its stream's period and one drawing,
        and never one from before ``oldest_frame_id``. What is older is waited for, 2 s at most, then OpTimeout.
        """
        asked = {name: self.resolve(name) for name in names}
        now_s = time.monotonic()

        def is_good(camera: SceneCamera) -> bool:
            return camera.shows(snapshot.frame_id) or (camera.shows(oldest_frame_id) and camera.is_recent(now_s))

        with self._changed:
            self._want(asked.values(), now_s)
            if old := [camera for camera in asked.values() if not is_good(camera)]:
                for camera in old:
                    if camera.failure is None:
                        camera.due_at_once()
                self._changed.notify_all()
                self._changed.wait_for(
                    lambda: all(is_good(one) or one.failure is not None for one in old) or self._closing, _FRAME_WAIT_S
                )
            return {name: self._newest(camera, is_good(camera)) for name, camera in asked.items()}

    def latest_of_steps(self, names: Iterable[str], snapshot: Snapshot, oldest_frame_id: int) -> dict[str, Frame]:
        """The newest frames of a scene that its client steps, by the names as asked.

        None is older than ``oldest_frame_id``, the state of the request before: a frame at hand will do, else
        ``snapshot``, the state of now, is drawn. A client that asks with every step gets the frames of the step
        before; those of this one are begun, and drawn while the client thinks and the next step runs.
        """
        asked = {name: self.resolve(name) for name in names}
        cameras = list(dict.fromkeys(asked.values()))
        self._take_ahead(oldest_frame_id)
        with self._changed:
            frames = {one: one.frame for one in cameras if one.frame is not None and one.shows(oldest_frame_id)}
            asks_each_step, self._stepped_id = self._stepped_id == oldest_frame_id, snapshot.frame_id
        frames |= self._draw([camera for camera in cameras if camera not in frames], snapshot)
        if asks_each_step:
            self._draw_ahead(cameras, snapshot)
        return {name: frames[camera] for name, camera in asked.items()}

    def _draw(self, cameras: Sequence[SceneCamera], snapshot: Snapshot) -> dict[SceneCamera, Frame]:
        """Draw a state now, and keep the frames; each is of the mode that its camera had."""
        taken_s = time.monotonic()
        frames = self.renderer.render([RenderRequest(one.slot, one.mode) for one in cameras], snapshot)
        taken = dict(zip(cameras, frames, strict=True))
        self._keep(taken, snapshot, taken_s)
        return taken

    def _keep(self, taken: Mapping[SceneCamera, Frame], snapshot: Snapshot, taken_s: float) -> None:
        with self._changed:
            for camera, frame in taken.items():
                camera.keep(frame, snapshot, taken_s, time.monotonic())

    def _draw_ahead(self, cameras: Sequence[SceneCamera], snapshot: Snapshot) -> None:
        """Begin what the next request will want, unless it is there already."""
        with self._changed:
            missing = [camera for camera in cameras if not camera.shows(snapshot.frame_id)]
            if missing and self._ahead is None:
                requests = [RenderRequest(one.slot, one.mode) for one in missing]
                begun = self.renderer.begin(requests, snapshot)
                self._ahead = DrawnAhead(missing, snapshot, time.monotonic(), begun)

    def _take_ahead(self, oldest_frame_id: int) -> None:
        """Keep the frames that were begun, if they are new enough; else they are given up."""
        with self._changed:
            ahead, self._ahead = self._ahead, None
        if ahead is None:
            return
        if ahead.snapshot.frame_id < oldest_frame_id:
            ahead.begun.cancel()
            return
        with suppress(NoViewport, TimeoutError):  # then they are drawn anew, which says what is wrong
            frames = ahead.begun.result(_FRAME_WAIT_S)
            self._keep(dict(zip(ahead.cameras, frames, strict=True)), ahead.snapshot, ahead.taken_s)

    def _want(self, cameras: Iterable[SceneCamera], now_s: float) -> None:
        is_news = False
        for camera in cameras:
            is_news = is_news or not camera.is_wanted(now_s)
            camera.asked_until_s = now_s + DEMAND_S
        if is_news:
            self._changed.notify_all()

    def _newest(self, camera: SceneCamera, is_good: bool) -> Frame:
        if is_good and camera.frame is not None:
            return camera.frame
        if camera.failure is not None:
            raise NoViewport(f"camera {camera.name!r} has no frame: {camera.failure}")
        if self._closing:
            raise NoViewport(f"camera {camera.name!r} has no frame, and the scene is closing")
        raise OpTimeout(f"camera {camera.name!r} gave no frame within {_FRAME_WAIT_S:g} s")

    # -- the capture thread -------------------------------------------------------------------------------------

    def _run(self) -> None:
        while due := self._wait_for_due():
            taken_s = time.monotonic()
            try:
                snapshot = self._snapshot()
            except Exception as failed:  # noqa: BLE001 - no state now may be a state later
                self._fail(due, failed)
                continue
            for camera in due:
                self._serve(camera, snapshot, taken_s)

    def _wait_for_due(self) -> list[SceneCamera]:
        """The cameras that are due, as soon as there are any; none when it is time to end."""
        with self._changed:
            while not self._closing:
                now_s = time.monotonic()
                waits = {camera: camera.due_in(now_s) for camera in self.cameras.values()}
                due = [camera for camera, wait in waits.items() if wait == 0.0]
                if due:
                    for camera in due:
                        camera.take_turn(now_s)
                    return due
                self._changed.wait(min((wait for wait in waits.values() if wait is not None), default=None))
            return []

    def _serve(self, camera: SceneCamera, snapshot: Snapshot, taken_s: float) -> None:
        try:
            frame = self._frame_of(camera, snapshot, taken_s)
        except Exception as failed:  # noqa: BLE001 - one camera's trouble is not the others'
            self._fail([camera], failed)
            return
        if frame is not None and camera.is_streamed and not self._closing:
            self._send(camera, frame)

    def _send(self, camera: SceneCamera, frame: Frame) -> None:
        for listener in self.on_frame:
            try:
                listener(camera, frame)
            except Exception as failed:  # noqa: BLE001 - what a listener raises is not known beforehand
                self._log_once(f"a frame of camera {camera.name!r} was not delivered: {failed!r}")

    def _frame_of(self, camera: SceneCamera, snapshot: Snapshot, taken_s: float) -> Frame | None:
        """The camera's frame of a state; None when its mode was changed meanwhile."""
        with self._changed:
            if camera.frame is not None and camera.source is snapshot:
                camera.taken_s = taken_s
                return camera.frame
            request = RenderRequest(camera.slot, camera.mode)
        (frame,) = self.renderer.render([request], snapshot)
        with self._changed:
            is_kept = camera.keep(frame, snapshot, taken_s, time.monotonic())
            self._changed.notify_all()
        return frame if is_kept else None

    def _fail(self, cameras: Sequence[SceneCamera], failed: Exception) -> None:
        reason = failed.message if isinstance(failed, UrlabError) else repr(failed)
        with self._changed:
            for camera in cameras:
                camera.failure = reason
                camera.put_off(time.monotonic())
            self._changed.notify_all()
        self._log_once(f"no frames of {known(camera.name for camera in cameras)}: {reason}")

    def _log_once(self, message: str) -> None:
        """Log a failure when it comes up for the first time."""
        if not self._closing and message not in self._logged:
            self._logged.add(message)
            log.error(message)

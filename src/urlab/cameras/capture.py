"""The cameras of a running scene: frames on request, and frames that keep coming."""

import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from urlab.cameras.gl_thread import GlThread
from urlab.cameras.renderer import Frame, RenderRequest, SceneRenderer
from urlab.cameras.scene_camera import DEMAND_S, SceneCamera, scene_cameras
from urlab.compile.compiled_scene import CompiledScene
from urlab.config import RenderProfile
from urlab.errors import BadValue, NoViewport, OpTimeout, UrlabError, known
from urlab.physics.snapshot import Snapshot
from urlab_wire.enums import CameraMode

log = logging.getLogger("urlab.cameras")

Listener = Callable[[SceneCamera, Frame], None]

MAX_RATE_HZ = 1000.0
_FIRST_FRAME_S = 2.0
_JOIN_S = 2.0


class Capture:
    """Draws the cameras of one scene, on request and as streams. Any thread may call it, once `start` was called.

    ``snapshot`` gives the newest state. The capture thread draws a camera at its rate while it is switched on, while
    it has a subscriber, and for a second after it was asked for; otherwise it sleeps. Functions in ``on_frame`` are
    called on that thread with every frame that goes out; they must not block. A state that was drawn already is not
    drawn again, but its frame goes out again, so that frames keep coming while nothing moves.
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
        self.renderer = SceneRenderer(scene, profile, gl)
        self.on_frame: list[Listener] = []
        self._snapshot = snapshot
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closing = False
        self._logged: set[str] = set()

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
        if not self.cameras:
            return {}
        try:
            return {"profile": self.renderer.profile.value, "renderer": self.renderer.gl_name}
        except NoViewport as dark:
            return {"profile": RenderProfile.AUTO.value, "problem": dark.message}

    # -- switches -----------------------------------------------------------------------------------------------

    def resolve(self, name: str) -> SceneCamera:
        """The camera of that name: ``prefix/short``, or the bare name where only one camera has it.

        A robot's camera goes before one that no robot owns, whose full name is its own.
        """
        if name in self.cameras:
            return self.cameras[name]
        called = [camera for camera in self.cameras.values() if camera.slot.short == name]
        bare = [camera for camera in called if not camera.is_global] or called
        if len(bare) > 1:
            raise BadValue(f"several cameras are called {name!r}: {known(camera.name for camera in bare)}")
        if not bare:
            raise BadValue(f"there is no camera {name!r}; there are: {known(self.cameras)}")
        return bare[0]

    def set_mode(self, name: str, mode: CameraMode) -> None:
        """Let a camera's pixels mean something else, from its next frame on."""
        camera = self.resolve(name)
        with self._changed:
            if camera.mode is not mode:
                camera.mode = mode
                camera.forget()
                self._changed.notify_all()

    def set_streaming(self, name: str, on: bool, rate_hz: float | None = None) -> None:
        """Switch a camera on, or back to being drawn on demand only; without a rate it keeps the one that it has."""
        camera = self.resolve(name)
        self.check_rate(name, rate_hz)
        with self._changed:
            camera.streaming = on
            camera.rate_hz = camera.rate_hz if rate_hz is None else float(rate_hz)
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
        distinct = list(dict.fromkeys(asked.values()))
        frames = self.renderer.render([RenderRequest(one.slot, one.mode) for one in distinct], snapshot)
        taken = dict(zip(distinct, frames, strict=True))
        with self._changed:
            for camera, frame in taken.items():
                camera.keep(frame, snapshot)
        return {name: taken[camera] for name, camera in asked.items()}

    def latest(self, names: Iterable[str]) -> dict[str, Frame]:
        """The newest frames at hand, by the names as asked; they are kept fresh for the next second.

        A camera's first frame (of its mode) is waited for, 2 s at most, then OpTimeout; afterwards this never blocks.
        """
        asked = {name: self.resolve(name) for name in names}
        with self._changed:
            self._want(asked.values())
            self._changed.wait_for(lambda: all(map(_is_settled, asked.values())) or self._closing, _FIRST_FRAME_S)
            return {name: self._newest(camera) for name, camera in asked.items()}

    def _want(self, cameras: Iterable[SceneCamera]) -> None:
        now_s, is_news = time.monotonic(), False
        for camera in cameras:
            is_news = is_news or not camera.is_wanted(now_s)
            camera.asked_until_s = now_s + DEMAND_S
        if is_news:
            self._changed.notify_all()

    def _newest(self, camera: SceneCamera) -> Frame:
        if camera.frame is not None:
            return camera.frame
        if camera.failure is not None:
            raise NoViewport(f"camera {camera.name!r} has no frame: {camera.failure}")
        if self._closing:
            raise NoViewport(f"camera {camera.name!r} has no frame, and the scene is closing")
        raise OpTimeout(f"camera {camera.name!r} gave no frame within {_FIRST_FRAME_S:g} s")

    # -- the capture thread -------------------------------------------------------------------------------------

    def _run(self) -> None:
        while due := self._wait_for_due():
            try:
                snapshot = self._snapshot()
            except Exception as failed:  # noqa: BLE001 - no state now may be a state later
                self._fail(due, failed)
                continue
            for camera in due:
                self._serve(camera, snapshot)

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

    def _serve(self, camera: SceneCamera, snapshot: Snapshot) -> None:
        try:
            frame = self._frame_of(camera, snapshot)
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

    def _frame_of(self, camera: SceneCamera, snapshot: Snapshot) -> Frame | None:
        """The camera's frame of a state; None when its mode was changed meanwhile."""
        with self._changed:
            if camera.frame is not None and camera.source is snapshot:
                return camera.frame
            request = RenderRequest(camera.slot, camera.mode)
        (frame,) = self.renderer.render([request], snapshot)
        with self._changed:
            is_kept = camera.keep(frame, snapshot)
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


def _is_settled(camera: SceneCamera) -> bool:
    return camera.frame is not None or camera.failure is not None

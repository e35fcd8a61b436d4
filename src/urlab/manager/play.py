"""The play lifecycle: from a level to a running scene and back."""

import gc
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from urlab.authoring import World
from urlab.compile import CompiledScene, compile_scene
from urlab.compile.export import save_debug_files
from urlab.config import RenderProfile
from urlab.errors import CompileError, NoActiveManager, OpTimeout, UrlabError, shortage
from urlab.manager.manager import Manager, StepCounter
from urlab.paths import FileRoots
from urlab.physics import NO_CALLBACKS, QUICK_STEP_S, StepCallbacks, give_memory_back
from urlab.recording import ReplayPosition
from urlab.scene.level import Level
from urlab_wire.enums import ControlSource, PIEState, StepMode

log = logging.getLogger("urlab.play")

DEFAULT_TIMEOUT_S = 30.0

_COLLECT_BYTES = 4 << 20
"""So much of models that have ended is collected at once. The parts of a scene refer to each other, and each scene has
copies of its model; the collector's own rule counts objects, of which a large model is few."""


@dataclass(frozen=True, slots=True)
class PlayStatus:
    """Where the lifecycle stands; ``compile_error`` is empty unless the last compilation failed.

    ``seed`` is that of the last reset that named one; ``control_source`` is by prefix; ``physics_error`` is why the
    last step failed. ``replay`` is where a replay stands while one is active, and ``replay_plays`` whether its frames
    follow one another by themselves.
    """

    state: PIEState
    compile_error: str = ""
    sim_time: float | None = None
    mode: StepMode | None = None
    paused: bool | None = None
    speed_percent: float | None = None
    seed: int | None = None
    control_source: Mapping[str, ControlSource] | None = None
    physics_error: str | None = None
    replay: ReplayPosition | None = None
    replay_plays: bool = False


class Play:
    """Owns the running scene. ``level`` is what is played, or was last. Methods may be called from any thread."""

    def __init__(
        self,
        world: World,
        roots: FileRoots,
        *,
        pinned_mode: StepMode | None = None,
        render_profile: RenderProfile = RenderProfile.AUTO,
        save_debug: bool = False,
        callbacks: StepCallbacks = NO_CALLBACKS,
    ) -> None:
        self.world = world
        self.roots = roots
        self.level = world.level
        self.counter = StepCounter()
        self.on_start: list[Callable[[Manager], None]] = []
        self.on_stop: list[Callable[[Manager], None]] = []
        self._pinned_mode = pinned_mode
        self._render_profile = render_profile
        self._save_debug = save_debug
        self._callbacks = callbacks
        self._manager: Manager | None = None
        self._ended_bytes = 0
        self._state = PIEState.OFF
        self._compile_error = ""
        self._lock = threading.Lock()
        self.cameras_switched: bool | None = None
        """How the streams of all cameras were switched last; None when they never were."""

    @property
    def manager(self) -> Manager:
        """The running scene; NoActiveManager when nothing plays."""
        manager = self._manager
        if manager is None:
            raise NoActiveManager("no simulation is running: call begin_pie (client.sim.start()) first")
        return manager

    @property
    def running(self) -> Manager | None:
        """The running scene, if there is one."""
        return self._manager

    def seconds_per_step(self) -> float:
        """What an mj_step of the running scene has cost of late, for all that is known."""
        manager = self._manager
        return manager.engine.seconds_per_step if manager is not None else QUICK_STEP_S

    @property
    def is_playing(self) -> bool:
        """Whether a scene runs."""
        return self._manager is not None

    def status(self) -> PlayStatus:
        """State of the play lifecycle, level, mode, pause and simulated time."""
        manager = self._manager
        if manager is None:
            return PlayStatus(self._state, self._compile_error)
        return PlayStatus(
            self._state,
            self._compile_error,
            sim_time=manager.engine.sim_time,
            mode=manager.mode,
            paused=manager.loop.paused,
            speed_percent=manager.loop.speed_percent,
            seed=manager.seed,
            control_source={prefix: one.staged.source for prefix, one in manager.articulations.items()},
            physics_error=manager.engine.failure or None,
            replay=manager.record_replay.position,
            replay_plays=manager.plays_replay,
        )

    def switch_cameras(self, on: bool) -> None:
        """Switch the streams of all cameras, those of scenes to come included."""
        self.cameras_switched = on
        if self._manager is not None:
            self._manager.capture.set_all_streaming(on)

    def begin(
        self, level_path: str | None = None, *, timeout_s: float = DEFAULT_TIMEOUT_S, mode: StepMode | None = None
    ) -> PlayStatus:
        """Compile and start. Without a level_path a running scene is left as it is.

        Compilation goes on in the background when it takes longer than ``timeout_s``; status() then tells.
        """
        deadline = time.monotonic() + timeout_s
        if level_path is None and self._state is PIEState.READY:
            return self.status()
        try:
            level = None if level_path is None else self.world.project.open_level(level_path)
        except UrlabError as missing:
            if not self.is_playing:  # a level that cannot be opened ends nothing that runs
                self._fail(missing.message)
            return PlayStatus(PIEState.COMPILE_FAILED, missing.message)
        if not self._lock.acquire(timeout=timeout_s):
            return PlayStatus(PIEState.TIMEOUT, f"another start has been compiling for more than {timeout_s:g} s")
        if level_path is None and self._state is PIEState.READY:
            self._lock.release()
            return self.status()
        finished, before = threading.Event(), (self._state, self._compile_error)
        self._state, self._compile_error = PIEState.COMPILING, ""
        work = (level, mode, finished)
        try:
            threading.Thread(target=self._begin, args=work, name="urlab-compile", daemon=True).start()
        except RuntimeError as refused:
            self._state, self._compile_error = before
            self._lock.release()
            reason = f"the level cannot be compiled, as this process gets no more threads or memory: {refused}"
            return PlayStatus(PIEState.COMPILE_FAILED, reason)
        if not finished.wait(max(0.0, deadline - time.monotonic())):
            return PlayStatus(PIEState.TIMEOUT, f"still compiling after {timeout_s:g} s; ask pie_status")
        return self.status()

    def stop(self, timeout_s: float = 10.0) -> None:
        """End the running scene, if there is one; OpTimeout when a compilation does not give way.

        One that waits for a mesh to be cut up does: that is given up.
        """
        if self._state is PIEState.COMPILING:
            self.world.library.cancel_conversions()
        if not self._lock.acquire(timeout=timeout_s):
            raise OpTimeout(f"a level has been compiling for more than {timeout_s:g} s")
        try:
            self._end()
            self._state, self._compile_error = PIEState.OFF, ""
        finally:
            self._lock.release()

    def _begin(self, level: Level | None, mode: StepMode | None, finished: threading.Event) -> None:
        try:
            self._end()
            if level is not None:
                self.world.open(level, from_project=True)
            self.world.ensure_manager()
            self.level = self.world.level
            self._start(self._compile(), mode or StepMode.LIVE)
            self._state = PIEState.READY
        except UrlabError as failed:
            self._fail(failed.message)
        except Exception as crashed:
            words = shortage(crashed)
            if not words:
                log.exception("starting level %r failed", self.level.name)
            self._fail(f"starting it {words}" if words else f"{type(crashed).__name__}: {crashed}")
        finally:
            self._lock.release()
            finished.set()

    def _fail(self, message: str) -> None:
        self._state, self._compile_error = PIEState.COMPILE_FAILED, message
        log.error("level %r cannot be played: %s", self.level.name, message)

    def _compile(self) -> CompiledScene:
        if not self.level.actors:
            log.info("level %r is empty", self.level.name)
        self.world.forget_files()
        scene = compile_scene(self.level, self.world.library)
        for note in scene.notes:
            log.warning("level %r: %s", self.level.name, note)
        if self._save_debug:
            for path in save_debug_files(scene, self.world.project.saved_dir):
                log.info("wrote %s", path)
        return scene

    def _start(self, scene: CompiledScene, mode: StepMode) -> None:
        try:
            manager = Manager(
                scene,
                replays_dir=self.world.project.replays_dir,
                roots=self.roots,
                counter=self.counter,
                pinned_mode=self._pinned_mode,
                render_profile=self._render_profile,
                callbacks=self._callbacks,
                journal_dir=self.world.project.journal_dir,
                level_path=self.level.path,
                randomize=self.level.randomize,
            )
        except UrlabError as failed:
            raise CompileError(failed.message) from failed
        self.counter.restart()
        with manager.engine.locked():
            manager.engine.set_worker_threads(self.level.options.get("num_worker_threads", 0))
        if self.cameras_switched is not None:
            manager.capture.set_all_streaming(self.cameras_switched)
        try:
            manager.start(mode)
            self._manager = manager
            _notify(self.on_start, manager)
        except BaseException:
            self._manager = manager
            self._end()
            raise

    def _end(self) -> None:
        manager, self._manager = self._manager, None
        if manager is not None:
            _notify(self.on_stop, manager)
            manager.stop()
            self._ended_bytes += int(manager.scene.model.nbuffer)
            del manager
            if self._ended_bytes > _COLLECT_BYTES:
                gc.collect()
                self._ended_bytes = 0
            give_memory_back()


def _notify(listeners: list[Callable[[Manager], None]], manager: Manager) -> None:
    for listener in listeners:
        listener(manager)

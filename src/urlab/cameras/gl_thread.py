"""The one thread that talks to GL, and its context, which needs no screen: EGL, or OSMesa where there is none.

A context belongs to the thread that made it. Nothing of GL or MuJoCo is imported before it is needed.

A process that is forked from one that draws has neither that thread nor the driver's, and draws on an EGL display of
its own; what the parent made stays the parent's.
"""

import atexit
import contextlib
import importlib
import os
import queue
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from urlab.errors import NoViewport, OpTimeout
from urlab.monitoring.watchdog import Turns
from urlab_wire.catalogue import PICTURE_LIMIT_S

T = TypeVar("T")

GL_BACKENDS = ("egl", "osmesa")
GL_PACKAGES = ("libegl1", "libegl-mesa0", "libgl1-mesa-dri", "libopengl0", "libosmesa6")
GL_INSTALL_LINE = f"apt-get install -y --no-install-recommends {' '.join(GL_PACKAGES)}"
_OFF_WORDS = ("disable", "disabled", "off", "false", "0")
_CHOICE = "MUJOCO_GL"
_PLATFORM = "PYOPENGL_PLATFORM"
_NOTHING = """
<mujoco><visual><global offwidth="16" offheight="16"/><quality shadowsize="0" offsamples="0"/></visual></mujoco>
"""
_WINDOW_SIZE = (16, 16)
"""Of the context's own buffer, which is never used: pictures are drawn into buffers of their own size."""

_NICENESS = 5
"""Of the driver's threads. More of it does not help physics, and beside busy programs nothing is drawn any more."""
_DRIVER_THREADS = "llvmpipe"
"""What the names of threads begin with that draw where there is no GPU."""

_CLOSE_LIMIT_S = 5.0
_FORK_LIMIT_S = 5.0
_SURFACELESS = 0x31DD
"""EGL_PLATFORM_SURFACELESS_MESA."""


class GlResource(Protocol):
    """Something that holds memory of the GL context."""

    def free(self) -> None:
        """Give it back; called on the GL thread, possibly twice."""


class GlThread:
    """Runs work with a GL context current, one piece at a time. Any thread may ask.

    Thread and context come with the first piece of work. When there can be no context, the reason is kept and
    every further call answers it at once.
    """

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._name = ""
        self._context: GlContext | None = None
        self._refusal = ""
        self._resources: weakref.WeakSet[GlResource] = weakref.WeakSet()
        self._working = threading.Lock()
        self._rests = False
        _all.add(self)

    def run(self, work: Callable[[], T], *, timeout_s: float = PICTURE_LIMIT_S) -> T:
        """Do a piece of work on the GL thread and return what it returns; NoViewport when there is no GL.

        OpTimeout when it takes longer; it is then left to end by itself.
        """
        if threading.current_thread() is self._thread:
            return work()
        future = self.post(work)
        try:
            return future.result(timeout_s)
        except TimeoutError:
            if future.cancel() or not future.done():
                raise OpTimeout(f"the picture was not drawn within {timeout_s:g} s") from None
            return future.result()  # it has just ended, or it is the work itself that timed out

    def post(self, work: Callable[[], T]) -> Future[T]:
        """Have a piece of work done on the GL thread in its turn, and do not wait; NoViewport when there is no GL."""
        future: Future[T] = Future()
        with self._lock:
            if self._refusal:
                raise NoViewport(self._refusal)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="urlab-gl", daemon=True)
                self._thread.start()
            self._jobs.put((future, work))
        return future

    def gl_name(self) -> str:
        """What draws here, for example ``llvmpipe (LLVM 15.0.6, 256 bits)``; NoViewport when nothing does."""
        return self.run(lambda: self._name)

    def adopt(self, resource: GlResource) -> None:
        """See to it that a resource is freed before the context goes, if its owner has not done so."""
        self._resources.add(resource)

    def close(self) -> None:
        """Free everything and end the thread; afterwards nothing can be drawn with it."""
        with self._lock:
            self._refusal = self._refusal or "nothing can be drawn any more: the server is closing"
            thread = self._thread
            self._jobs.put(None)
        if thread is not None and thread is not threading.current_thread():
            thread.join(_CLOSE_LIMIT_S)
        atexit.unregister(self.close)

    def _run(self) -> None:
        try:
            context = open_context()
        except NoViewport as none:
            self._give_up(none)
            return
        _let_drawing_give_way()
        self._name = context.renderer
        self._context = context
        atexit.register(self.close)
        watched = Turns("urlab-gl").open()
        while (job := self._jobs.get()) is not None:
            watched.busy()
            with self._working:
                _complete(*job)
            watched.idle()
            del job  # or it would live until the next one comes
        watched.close()
        for resource in list(self._resources):
            resource.free()
        context.handle.free()

    def rest(self) -> None:
        """Wait until no work is being done, for as long as a fork may wait, and let none begin before `go_on`."""
        self._rests = self._thread is not threading.current_thread() and self._working.acquire(timeout=_FORK_LIMIT_S)

    def go_on(self) -> None:
        """Let work begin again."""
        if self._rests:
            self._rests = False
            self._working.release()

    def leave_to_parent(self) -> bool:
        """In a forked process: refuse all work, free nothing. Whether the parent has a context."""
        atexit.unregister(self.close)
        self._lock = threading.Lock()
        self._refusal = (
            f"this scene belongs to process {os.getppid()}, from which this process was forked: launch one here"
        )
        had_context, self._thread = self._context is not None, None
        if self._context is not None:
            self._context.handle._context = None  # its destructor would call a driver whose threads are gone
        return had_context

    def _give_up(self, none: NoViewport) -> None:
        with self._lock:
            self._refusal = none.message
        while not self._jobs.empty():
            job = self._jobs.get()
            if job is not None and job[0].set_running_or_notify_cancel():
                job[0].set_exception(NoViewport(none.message))


def _let_drawing_give_way() -> None:
    """Let physics come before the driver's own threads.

    Not before the GL thread: one that waits for a processor while it holds Python's lock stops all others, for seconds
    where other programs keep the processors busy.
    """
    for thread in Path("/proc/self/task").glob("*"):  # there is no such folder but on Linux
        with contextlib.suppress(OSError):
            if (thread / "comm").read_text().startswith(_DRIVER_THREADS):
                os.setpriority(os.PRIO_PROCESS, int(thread.name), os.getpriority(os.PRIO_PROCESS, 0) + _NICENESS)


def _complete(future: Future[T], work: Callable[[], T]) -> None:
    """Do the work, unless it was cancelled; what it raises is for the thread that waits for it."""
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = work()
    except BaseException as failed:  # noqa: BLE001 - it belongs to the thread that asked
        future.set_exception(failed)
        del future  # its failure's traceback holds this frame: no cycle
    else:
        future.set_result(result)


_all: weakref.WeakSet[GlThread] = weakref.WeakSet()
_shared = GlThread()


def shared_gl() -> GlThread:
    """The GL thread that all views of this process share."""
    return _shared


# -- forked processes ------------------------------------------------------------------------------------------------

_contexts_left = 0
"""How many processes above this one had a context when they forked."""


def _before_fork() -> None:
    for gl in list(_all):
        gl.rest()


def _in_parent() -> None:
    for gl in list(_all):
        gl.go_on()


def _in_child() -> None:
    global _contexts_left, _shared
    had_context = [gl.leave_to_parent() for gl in list(_all)]
    if any(had_context):
        _contexts_left += 1
        _forget_display()
    _all.clear()
    _shared = GlThread()


def _forget_display() -> None:
    """Leave the EGL display to the parent: to end it, as is done at exit, is to wait for the parent's threads."""
    egl: Any = sys.modules.get("mujoco.egl")
    if egl is not None:
        for terminate in (egl.EGL.eglTerminate, getattr(egl, "_terminate_display", None)):  # of MuJoCo 3, of MuJoCo 4
            if terminate is not None:
                atexit.unregister(terminate)
        egl.EGL_DISPLAY = None


def _use_display_of_its_own(backend: str) -> None:
    """In a forked process: the driver's threads for the parent's display are gone, so open another one."""
    if backend != "egl" or _contexts_left > 1:
        raise NoViewport(
            "this process was forked from one that draws, and can only draw with EGL, one fork deep: start it with "
            "multiprocessing's spawn or forkserver instead, or fork before the first picture"
        )
    egl: Any = importlib.import_module("mujoco.egl")
    display = egl.EGL.eglGetPlatformDisplayEXT(_SURFACELESS, None, None)
    egl.EGL.eglInitialize(display, None, None)
    egl.EGL_DISPLAY = display


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)


# -- the context -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GlContext:
    """A context that works. ``renderer`` is what draws, as the driver calls it; ``handle.free()`` ends it."""

    backend: str
    renderer: str
    handle: Any


def open_context() -> GlContext:
    """Make a context that is current on this thread, and stays there; NoViewport says why there is none.

    ``MUJOCO_GL`` chooses egl or osmesa, or switches drawing off; its other words need a screen and choose nothing.
    """
    reasons = []
    for backend in _wanted():
        try:
            with _one_platform():
                return _open(backend)
        except Exception as refused:  # noqa: BLE001 - what a driver raises is not known beforehand
            reasons.append(f"{backend}: {type(refused).__name__}: {refused}")
    raise NoViewport(
        f"nothing can be drawn on this machine, as no GL without a screen works ({'; '.join(reasons)}). "
        f"`urlab doctor` looks into it; on Debian: {GL_INSTALL_LINE}"
    )


def _wanted() -> tuple[str, ...]:
    word = os.environ.get(_CHOICE, "").strip().lower()
    if word in _OFF_WORDS:
        raise NoViewport(f"nothing can be drawn, as MUJOCO_GL={word} switches drawing off; unset it or set it to egl")
    return (word,) if word in GL_BACKENDS else GL_BACKENDS


def _open(backend: str) -> GlContext:
    if _contexts_left:
        _use_display_of_its_own(backend)
    handle = importlib.import_module(f"mujoco.{backend}").GLContext(*_WINDOW_SIZE)
    handle.make_current()
    _let_mujoco_draw(backend)
    gl: Any = importlib.import_module("OpenGL.GL")
    return GlContext(backend, gl.glGetString(gl.GL_RENDERER).decode(), handle)


def _let_mujoco_draw(backend: str) -> None:
    """MuJoCo looks up GL's functions once, when it first draws, where the variable says; it must be the same GL."""
    mujoco: Any = importlib.import_module("mujoco")
    chosen = os.environ.get(_CHOICE)
    os.environ[_CHOICE] = backend
    try:
        mujoco.MjrContext(mujoco.MjModel.from_xml_string(_NOTHING), mujoco.mjtFontScale.mjFONTSCALE_50.value).free()
    finally:
        _restore(_CHOICE, chosen)


@contextmanager
def _one_platform() -> Iterator[None]:
    """Let PyOpenGL bind itself to a platform; should that fail, let the next one have a chance.

    It does so once and for all when it is imported, after a variable that our own child processes must not inherit.
    """
    modules, platform = set(sys.modules), os.environ.get(_PLATFORM)
    try:
        yield
    except Exception:
        for name in [name for name in sys.modules if name not in modules and _is_gl(name)]:
            del sys.modules[name]
        raise
    finally:
        _restore(_PLATFORM, platform)


def _restore(variable: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(variable, None)
    else:
        os.environ[variable] = value


def _is_gl(module: str) -> bool:
    return module.split(".")[0] == "OpenGL" or module.startswith(tuple(f"mujoco.{backend}" for backend in GL_BACKENDS))

"""The one thread that talks to GL: a context belongs to the thread that made it."""

import atexit
import contextlib
import os
import queue
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from urlab.cameras.errand import Errand
from urlab.cameras.gl_context import open_context
from urlab.errors import NoViewport, OpTimeout

T = TypeVar("T")

_NICENESS = 15
"""Set before the context is made, so that the driver's own threads inherit it: pictures give way to physics."""

_CLOSE_LIMIT_S = 5.0


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
        self._jobs: queue.SimpleQueue[Errand[Any] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._name = ""
        self._refusal = ""
        self._resources: weakref.WeakSet[GlResource] = weakref.WeakSet()

    def run(self, work: Callable[[], T], *, timeout_s: float = 60.0) -> T:
        """Do a piece of work on the GL thread and return what it returns; NoViewport when there is no GL.

        OpTimeout when it takes longer; it is then left to end by itself.
        """
        if threading.current_thread() is self._thread:
            return work()
        errand = self.post(work)
        if not errand.wait(timeout_s):
            errand.give_up()
            raise OpTimeout(f"the picture was not drawn within {timeout_s:g} s")
        return errand.result(timeout_s)

    def post(self, work: Callable[[], T]) -> Errand[T]:
        """Have a piece of work done on the GL thread in its turn, and do not wait; NoViewport when there is no GL."""
        errand = Errand(work)
        with self._lock:
            self._refuse()
            self._start()
            self._jobs.put(errand)
        return errand

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

    def _refuse(self) -> None:
        if self._refusal:
            raise NoViewport(self._refusal)

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._live, name="urlab-gl", daemon=True)
            self._thread.start()

    def _live(self) -> None:
        _give_way()
        try:
            context = open_context()
        except NoViewport as none:
            self._give_up(none)
            return
        self._name = context.renderer
        atexit.register(self.close)
        self._serve()
        for resource in list(self._resources):
            resource.free()
        context.handle.free()

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            job.run()
            del job

    def _give_up(self, none: NoViewport) -> None:
        with self._lock:
            self._refusal = none.message
        while not self._jobs.empty():
            job = self._jobs.get()
            if job is not None:
                job.fail(NoViewport(none.message))


def _give_way() -> None:
    if sys.platform == "linux":  # elsewhere it would slow down the whole process
        with contextlib.suppress(OSError):
            os.nice(_NICENESS)


_shared = GlThread()


def shared_gl() -> GlThread:
    """The GL thread that all views of this process share."""
    return _shared

"""One mesh that is to be cut, from the wish to the hulls."""

import threading
import time
from dataclasses import dataclass, field
from typing import Literal

from urlab.compile.decomposition.child_run import ChildRun
from urlab.compile.decomposition.hull import Hull
from urlab.errors import UrlabError

State = Literal["waiting", "running", "ready", "failed"]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a decomposition is. CoACD does not tell how much is left, so there is the time that it took so far.

    ``elapsed_s`` stands still when the work has ended; ``message`` is one line for people.
    """

    state: State
    elapsed_s: float
    message: str


@dataclass(eq=False)
class Job:
    """``mesh`` is the content of the file called ``name``.

    One worker thread moves it on; everybody else waits for ``done`` and then reads ``hulls`` or ``failure``.
    """

    key: str
    name: str
    suffix: str
    threshold: float
    mesh: bytes
    done: threading.Event = field(default_factory=threading.Event)
    run: ChildRun | None = None
    hulls: list[Hull] = field(default_factory=list)
    failure: UrlabError | None = None
    _started_s: float | None = None
    _elapsed_s: float = 0.0

    def begin(self) -> None:
        """The clock runs from here."""
        self._started_s = time.monotonic()

    def finish(self, hulls: list[Hull], failure: UrlabError | None = None) -> None:
        """The last change of all; the mesh is let go."""
        self._elapsed_s, self._started_s = self.elapsed_s, None
        self.hulls, self.failure, self.run, self.mesh = hulls, failure, None, b""
        self.done.set()

    @property
    def elapsed_s(self) -> float:
        """Since it began to run."""
        started_s = self._started_s
        return self._elapsed_s if started_s is None else time.monotonic() - started_s

    def progress(self) -> Progress:
        """How far it is."""
        if not self.done.is_set():
            running = self._started_s is not None
            words = f"cutting up {self.name}" if running else f"{self.name} waits for others to be cut up"
            return Progress("running" if running else "waiting", self.elapsed_s, words)
        if self.failure is not None:
            return Progress("failed", self.elapsed_s, self.failure.message)
        return Progress("ready", self.elapsed_s, f"{self.name}: {len(self.hulls)} hulls")

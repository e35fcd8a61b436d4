"""The world as it is now, read at display rate while a page is open.

One thread reads views, keeps a model and data of its own, and calls those who draw; the simulation never waits for it.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any

import mujoco

from urlab.editor.server_link import FAILURES, ServerLink, reason
from urlab_client.namespaces.viewport import WorldView
from urlab_client.types import PIEStatus
from urlab_wire.errors import ErrorCode

log = logging.getLogger("urlab.editor")

RATE_HZ = 30.0
_STATUS_PERIOD_S = 0.2
_FAST, _LESS_OFTEN = 2.0, 2.0
"""From this real-time factor on a client steps as fast as it can. What is read takes time from it where cores are
scarce, and so fast a scene does not look smoother with more of it: all is read so many times less often."""

_RETRY_S = 0.5
_EMPTY = WorldView("", False, b"", (-3.0, 0.0, 2.0), (0.0, 0.25, 0.0, 0.97), 70.0, False, "lit", {})
"""What is shown before anything was."""


@dataclass
class ShownWorld:
    """What is shown now. ``data`` has the kinematics of ``view``; ``problem`` says why nothing new comes, if so."""

    view: WorldView
    model: Any
    data: Any
    actors: Mapping[str, Sequence[int]]
    status: PIEStatus | None = None
    realtime_factor: float = 0.0
    problem: str | None = None


@dataclass
class _Pace:
    """Simulated against wall time, over the last second or so."""

    marks: list[tuple[float, float]] = field(default_factory=list)

    def factor(self, sim_time: float | None) -> float:
        now = time.monotonic()
        if sim_time is None or (self.marks and sim_time < self.marks[-1][1]):
            self.marks.clear()
        if sim_time is None:
            return 0.0
        self.marks.append((now, sim_time))
        while len(self.marks) > 2 and now - self.marks[0][0] > 1.0:
            self.marks.pop(0)
        (began_s, first), (ended_s, last) = self.marks[0], self.marks[-1]
        return (last - first) / (ended_s - began_s) if ended_s > began_s else 0.0


def read_world(link: ServerLink, known_model: str | None = None) -> tuple[WorldView, Any]:
    """What there is to see now, and its model, which is loaded; None for that if it is the one that is known."""
    view = link.read(lambda client: client.viewport.read(known_model, as_file=True))
    return loaded(link, view) if view.has_model else (view, None)


def loaded(link: ServerLink, view: WorldView) -> tuple[WorldView, Any]:
    """A view and its model. Where its file is gone, the server has another model by now: that one."""
    try:
        return view, view.load_model()
    except ValueError:
        newer = link.read(lambda client: client.viewport.read())
        return newer, newer.load_model()


class WorldFeed:
    """Reads the world while ``is_watched`` says that a page is open, and once before: the first page is on its way.

    ``first`` is what `read_world` gives, where it was called already. ``on_model`` is called with another model,
    ``on_state`` with every view, ``on_status`` a few times a second; all on the feed's thread.
    """

    def __init__(
        self,
        link: ServerLink,
        *,
        first: Future[tuple[WorldView, Any]] | None = None,
        is_watched: Callable[[], bool],
        on_model: Callable[[ShownWorld], None],
        on_state: Callable[[ShownWorld], None],
        on_status: Callable[[ShownWorld], None],
    ) -> None:
        self._link = link
        self._first = first
        self._is_watched = is_watched
        self._on_model, self._on_state, self._on_status = on_model, on_state, on_status
        self.world: ShownWorld | None = None
        self._is_shown = False
        """Whether all who draw have got the model."""
        self._pace = _Pace()
        self._status_due_s = 0.0
        self._wake = threading.Event()
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="urlab-editor-feed", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def wake(self) -> None:
        """Look at once: a page was opened, or the world was changed."""
        self._status_due_s = 0.0
        self._wake.set()

    def close(self) -> None:
        """End the thread."""
        self._is_closed = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(5.0)

    def _run(self) -> None:
        due_s = time.monotonic()
        while not self._is_closed:
            if not self._is_watched() and self.world is not None:
                self._wake.wait(_RETRY_S)
                self._wake.clear()
                due_s = time.monotonic()
                continue
            pause_s = 0.0
            try:
                self._look()
            except Exception as failed:
                if not isinstance(failed, FAILURES):
                    log.exception("the editor's view failed")
                self._show_problem(failed)
                pause_s = _RETRY_S
            due_s = max(due_s + self._slowed() / RATE_HZ, time.monotonic() + pause_s)
            self._wake.wait(max(0.0, due_s - time.monotonic()))
            if self._wake.is_set():
                self._wake.clear()
                due_s = time.monotonic()

    def _slowed(self) -> float:
        return _LESS_OFTEN if self.world is not None and self.world.realtime_factor > _FAST else 1.0

    def _show_problem(self, failed: Exception) -> None:
        """Say why nothing new is shown; whatever happens, the thread goes on, as every page depends on it."""
        try:
            self._try_to_show_problem(failed)
        except Exception as further:
            if not isinstance(further, FAILURES):
                log.exception("the editor cannot show that its view failed")

    def _try_to_show_problem(self, failed: Exception) -> None:
        """A level that cannot be compiled is shown as empty; otherwise the last picture stays."""
        if self.world is None or (getattr(failed, "code", "") == ErrorCode.NOT_READY and self.world.view.model):
            model = mujoco.MjSpec().compile()
            view = _EMPTY if self.world is None else _emptied(self.world.view)
            status = None if self.world is None else self.world.status
            self.world = ShownWorld(view, model, mujoco.MjData(model), {}, status)
            self._on_model(self.world)
            self._on_state(self.world)
        self.world.problem = reason(failed)
        with contextlib.suppress(*FAILURES):
            self.world.status = self._link.read(lambda client: client.sim.status())
        self._on_status(self.world)

    def _look(self) -> None:
        view, model = self._read()
        if model is not None:
            before = self.world
            status = None if before is None else before.status
            self.world, self._is_shown = ShownWorld(view, model, mujoco.MjData(model), view.actors or {}, status), False
            self._pose(self.world)
            if view.playing and before is not None:  # else the link has just shaken hands
                self._link.note_scene()
            self._on_model(self.world)
            self._is_shown = True
        world = self.world
        if world is None:
            return
        is_new = view.state != world.view.state or view.sim_time != world.view.sim_time
        world.view, world.problem = view, None
        if is_new:
            self._pose(world)
        world.realtime_factor = self._pace.factor(view.sim_time)
        self._on_state(world)
        if time.monotonic() >= self._status_due_s:
            self._status_due_s = time.monotonic() + self._slowed() * _STATUS_PERIOD_S
            world.status = self._link.read(lambda client: client.sim.status())
            self._on_status(world)

    def _read(self) -> tuple[WorldView, Any]:
        first, self._first = self._first, None
        if first is not None:
            return first.result()
        known = self.world.view.model if self.world is not None and self._is_shown else None
        return read_world(self._link, known)

    def _pose(self, world: ShownWorld) -> None:
        model, data = world.model, world.data
        world.view.write_to(data)
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_camlight(model, data)
        if model.nflex:
            mujoco.mj_flex(model, data)
        if model.ntendon:
            mujoco.mj_tendon(model, data)


def _emptied(view: WorldView) -> WorldView:
    """The same camera, and nothing to see."""
    return replace(
        view,
        model="",
        playing=False,
        actors={},
        drawings=(),
        texts={},
        choices={},
        held=(),
        sim_time=None,
        selected=None,
    )

"""One scene behind every transport: all clients run the same steps from the same start."""

import copy
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Protocol, Self

from urlab.cli.bench.floors import PlainLoop
from urlab.cli.bench.paths import embedded, record_controls, restart, shows
from urlab.cli.bench.plan import Case
from urlab.cli.bench.raw import RawClient, connect, step_frame
from urlab.cli.bench.spawn import Server, serving
from urlab.cli.bench.transports.plan import scene_targets
from urlab.cli.bench.transports.shm_client import connect_shm
from urlab_client import URLabClient

_SHORT_PATHS = Path("/tmp")
"""A socket's path may have a hundred letters or so, and the folder for temporary files may have as many already."""


class RoundTrip(Protocol):
    """A bare echo; ``pid`` is its far end's."""

    @property
    def pid(self) -> int: ...

    def use(self, request_bytes: int, reply_bytes: int) -> None: ...
    def once(self) -> object: ...


class TransportPaths:
    """A typed client per transport, each with a server of its own, a raw client over TCP, and a plain loop.

    A session belongs to one client, so servers are not shared; the raw client uses the session of the typed one.
    ``longest`` is the largest number of steps that a block may take.
    """

    def __init__(self, scene: str, longest: int) -> None:
        self.servers: dict[str, Server] = {}
        self.clients: dict[str, URLabClient] = {}
        with ExitStack() as opened:
            folder = Path(opened.enter_context(TemporaryDirectory(prefix="urlab-bench-", dir=_SHORT_PATHS)))
            targets = scene_targets(scene, folder)
            self.clients["inprocess"] = opened.enter_context(embedded(targets, opened))
            for name, options in {"shm": (), "ipc": ("--host", f"ipc://{folder}/s"), "tcp": ()}.items():
                self.servers[name] = opened.enter_context(serving([*targets, *options]))
            self._open_clients(opened)
            self.raw = RawClient(self.servers["tcp"].step_endpoint)
            opened.callback(self.raw.close)
            for client in self.clients.values():
                restart(client)
            model = copy.copy(self.clients["inprocess"].model)
            self.plain = PlainLoop(model, record_controls(self.clients["inprocess"], longest))
            self._opened = opened.pop_all()

    def _open_clients(self, opened: ExitStack) -> None:
        self._shm = opened.enter_context(connect_shm(self.servers["shm"].step_endpoint))
        self.clients["shm"] = self._shm.client
        for name in ("ipc", "tcp"):
            self.clients[name] = opened.enter_context(connect(self.servers[name].step_endpoint))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened.close()

    def use(self, case: Case, echoes: dict[str, RoundTrip]) -> tuple[int, int]:
        """Get ready for a case; the sizes of its request and its reply in bytes."""
        self.plain.n_steps = case.n_steps
        self.raw.frame = step_frame(self.clients["tcp"], case.n_steps, case.observations)
        sizes = len(self.raw.frame), self.raw.measure_reply()
        for echo in echoes.values():
            echo.use(*sizes)
        return sizes

    def check(self) -> None:
        """CommandError when what should go through shared memory does not."""
        self._shm.check()

    def same_state(self) -> bool:
        """Whether every client shows the robots as the plain loop has them, to the last bit."""
        return all(shows(client, self.plain.data) for client in self.clients.values())

"""The small HTTP port for supervisors and Prometheus: ``/healthz``, ``/readyz`` and ``/metrics``.

It has threads of its own and asks nothing that waits, so it answers when everything else hangs. It reads only, from
this machine and this user; a stranger's connection is closed before it is read.
"""

import contextlib
import json
import logging
import os
import socket as sockets
import statistics
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from urlab import access
from urlab.access.web import WebAccess
from urlab.config import is_local
from urlab.manager import Manager, Play
from urlab.monitoring import metrics, watchdog
from urlab.monitoring.metrics import Figure, Sample, gauge, gauges
from urlab.ops import Dispatcher
from urlab.transport import Streams
from urlab.transport.endpoint import listen
from urlab_wire.enums import PIEState

log = logging.getLogger("urlab.health")

_IDLE_LIMIT_S = 5.0
_MAX_CONNECTIONS = 32
_STUCK_S = 30.0
"""No request may hold up a thread for so long: one that has not turned for longer does not come back."""


class HealthReport:
    """What a running server says of itself. Any thread may ask; it never waits for physics."""

    def __init__(
        self,
        play: Play,
        dispatcher: Dispatcher,
        streams: Streams | None,
        queues: Callable[[], Mapping[str, int]] | None = None,
        *,
        is_played: bool,
    ) -> None:
        """``queues`` are those of the requests; ``is_played`` says whether the server is to play, or to be edited."""
        self._play, self._dispatcher, self._streams, self._queues = play, dispatcher, streams, queues
        self._is_played = is_played

    def health(self) -> dict[str, Any]:
        """``ok`` is whether this process works; ``stalled`` names threads that have not turned for a second."""
        late = watchdog.stalled()
        stalled = [{"thread": one.thread, "seconds": round(one.seconds, 1), "doing": one.doing} for one in late]
        report = {"ok": all(one.seconds < _STUCK_S for one in late), "pid": os.getpid()}
        return report | ({"stalled": stalled} if stalled else {})

    def readiness(self) -> dict[str, Any]:
        """``ok`` is whether a client can do what the server is for: step a scene, or edit if none is to be played."""
        status = self._play.status()
        ready = status.state is PIEState.READY or (not self._is_played and status.state is PIEState.OFF)
        report = {"ok": ready, "state": status.state.value, "level": self._play.level.name}
        return report | ({"compile_error": status.compile_error} if status.compile_error else {})

    def figures(self) -> Iterator[Figure]:
        """Everything that is counted and measured."""
        yield from metrics.process_figures()
        if self._dispatcher.figures is not None:
            yield from self._dispatcher.figures.figures()
        yield gauges("urlab_sessions", "Open sessions, by kind.", "kind", self._dispatcher.sessions.counts())
        if self._queues is not None:
            yield gauges("urlab_rpc", "Connections of the RPC port, and what waits there.", "what", self._queues())
        yield gauge("urlab_ready", "1 when a client can step, or edit.", self.readiness()["ok"])
        if self._play.is_playing:
            yield from _scene_figures(self._play.manager)
        if self._streams is not None:
            yield from _stream_figures(self._streams.counters())


def _scene_figures(manager: Manager) -> Iterator[Figure]:
    steps = Sample("", (), manager.counter.total)
    yield Figure("urlab_steps_total", "Steps of the simulation since the server started.", "counter", (steps,))
    yield gauge("urlab_sim_time_seconds", "Simulated time of the running scene.", manager.engine.sim_time)
    yield gauge("urlab_paused", "1 when live physics is paused.", manager.loop.paused)
    yield gauge("urlab_mode", "The step mode in force.", 1, mode=manager.mode.value)
    late = list(manager.loop.lateness_s)
    if len(late) > 1:
        cuts = statistics.quantiles(late, n=100)
        samples = tuple(Sample("", (("quantile", str(share / 100)),), cuts[share - 1]) for share in (50, 90, 99))
        yield Figure("urlab_live_lateness_seconds", "How late live steps were of late.", "gauge", samples)


def _stream_figures(counters: Mapping[str, Any]) -> Iterator[Figure]:
    cameras = {f"camera {name}": counts for name, counts in counters["cameras"].items()}
    publishers = {"state": counters["state"], "info": counters["info"], **cameras}
    for word, about in (("sent", "Messages that streams have sent"), ("dropped", "Messages that newer ones replaced")):
        values = {name: counts[word] for name, counts in publishers.items()}
        yield gauges(f"urlab_stream_{word}_total", f"{about}.", "stream", values, "counter")
    outcomes = {word: count for word, count in counters["control"].items() if word != "received"}
    yield gauges("urlab_control_messages_total", "Messages of the control port.", "outcome", outcomes, "counter")


class HealthServer:
    """Serves a report from construction to `close`."""

    def __init__(self, base: str, port: int, report: HealthReport, *, share: bool = False) -> None:
        """ConfigError when the port cannot be had. With ``share`` other users of the machine may ask too."""
        listener = listen(base, port, option="--metrics-port")
        self.url = listener.endpoint.replace("tcp://", "http://")
        """Where it is, without a path."""

        routes: dict[str, _Route] = {
            "/healthz": lambda: _as_json(report.health()),
            "/readyz": lambda: _as_json(report.readiness()),
            "/metrics": lambda: (200, metrics.CONTENT_TYPE, metrics.exposition(report.figures())),
        }
        self._server = _Server(listener.socket, routes, self.url, share=share)
        self._thread = threading.Thread(target=self._server.serve_forever, name="urlab-health", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Answer nothing any more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


_Route = Callable[[], tuple[int, str, str]]


def _as_json(report: Mapping[str, Any]) -> tuple[int, str, str]:
    return 200 if report["ok"] else 503, "application/json", json.dumps(report) + "\n"


class _Server(ThreadingHTTPServer):
    """One thread for each connection, so many at most; on a socket that listens already."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, listener: sockets.socket, routes: Mapping[str, _Route], url: str, *, share: bool) -> None:
        super().__init__(listener.getsockname()[:2], _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.server_address = listener.getsockname()
        self.routes, self._url, self._share = routes, url, share
        host = str(listener.getsockname()[0])
        self._web = WebAccess(host) if is_local(host) else None
        self._room = threading.BoundedSemaphore(_MAX_CONNECTIONS)

    def verify_request(self, request: Any, client_address: Any) -> bool:  # noqa: ARG002 - a method of the library
        if not self._share and access.is_stranger(request):
            access.refusals.refused(self._url, request)
            return False
        return self._room.acquire(blocking=False)

    def is_led_astray(self, method: str, headers: Iterable[tuple[str, str]]) -> bool:
        """Whether a web page asks that reached this port under a foreign name (DNS rebinding), or is of another origin.

        Beyond loopback other machines may have any name for this one, and are let in as they are.
        """
        sent = [(name.lower().encode("latin1"), value.encode("latin1")) for name, value in headers]
        if self._web is None or self._web.refused_page(method, sent) is None:
            return False
        metrics.REFUSED.add("web page")
        access.refusals.say(f"{self._url} page", f"{self._url}: a web page of another origin is refused")
        return True

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - a method of the library
        log.debug("a client of the metrics port went away", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    timeout = _IDLE_LIMIT_S
    server_version = "urlab"
    sys_version = ""

    def do_GET(self) -> None:
        assert isinstance(self.server, _Server)
        if self.server.is_led_astray(self.command, self.headers.items()):
            self._answer(403, "text/plain", "pages of other origins are refused; ask for this port by its address\n")
            return
        route = self.server.routes.get(self.path.partition("?")[0])
        if route is None:
            self._answer(404, "text/plain", f"there are: {', '.join(self.server.routes)}\n")
            return
        try:
            answer = route()
        except Exception:
            log.exception("%s could not be answered", self.path)
            answer = (500, "text/plain", "it could not be found out; the log has the reason\n")
        self._answer(*answer)

    do_HEAD = do_GET  # noqa: N815 - the library's name

    def _answer(self, status: int, content_type: str, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if self.command != "HEAD":
            with contextlib.suppress(ConnectionError):
                self.wfile.write(body)

    def log_message(self, format: str, *values: Any) -> None:  # noqa: A002 - the library's name
        log.debug("metrics port: " + format, *values)

"""Our own client of an evaluation server: one connection that is kept, msgpack bodies, arrays as numpy arrays.

`http.client` and not a larger library: a step through httpx takes a tenth of a millisecond longer.

    UrlabError
      EvalClientError
        ServerUnreachable  BadAddress
        ForeignServer  NotSendable
        RequestRefused    InvalidRequest 400  TokenRefused 401  WorkerTimedOut 504
"""

import contextlib
import http.client
import select
import socket
from collections.abc import Mapping, Sequence
from typing import Any, Self
from urllib.parse import quote, urlsplit

import msgspec

from urlab.errors import UrlabError
from urlab.evaluation.encoding import decode, encode
from urlab.evaluation.settings import OWN_CLIENT_HEADER, RUN_ID_HEADER

Reply = dict[str, Any]
Action = Mapping[str, Any]

_MSGPACK = "application/msgpack"
_JSON = "application/json"
_NO_ANSWER = (OSError, http.client.HTTPException)
_NO_SUCH_PATH = (404, 405, 501)


class EvalClientError(UrlabError):
    """Base: no reply, or one that is not 200."""


class ServerUnreachable(EvalClientError):
    """There is no server, or the connection broke; whether the request was carried out is not known."""


class BadAddress(ServerUnreachable):
    """What was given is not the address of a server."""


class ForeignServer(EvalClientError):
    """What answered is no evaluation server."""


class NotSendable(EvalClientError):
    """A request holds something that has no place in one, such as a tensor; nothing was sent."""


class RequestRefused(EvalClientError):
    """The server answered with an error; the message is its own. ``status`` is HTTP's."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class InvalidRequest(RequestRefused):
    """400: a field is wrong, a worker unknown; nothing has moved."""


class TokenRefused(RequestRefused):
    """401: the token is missing or wrong."""


class WorkerTimedOut(RequestRefused):
    """504: a worker did not answer in time; its episode begins again with the next request."""


class EvalClient:
    """For one thread. ``base_url`` may be a bare ``host:port``, and may have a path.

    A reply is ``{worker: {"obs", "metric", "episode_result"}}``: ``obs`` is None and ``metric`` is there once nothing
    is left for the worker. ``obs["reset"]`` is True when an episode has begun, which the server does by itself.
    An action without ``is_rel`` is a change, unless the server was started with ``--absolute``.

    ``run_id`` is the run that the client means: a reset after its end gets its results and begins no other one.
    """

    def __init__(
        self,
        base_url: str,
        worker_ids: Sequence[str] = ("0",),
        token: str | None = None,
        *,
        run_id: str | None = None,
        timeout_s: float = 630.0,
    ) -> None:
        self.worker_ids = tuple(worker_ids)
        self.executed_steps = 0
        self._base_url = base_url if "://" in base_url else f"http://{base_url}"
        self._headers = {OWN_CLIENT_HEADER: "1"}
        self._headers |= {} if token is None else {"Authorization": f"Bearer {token}"}
        self._headers |= {} if run_id is None else {RUN_ID_HEADER: quote(run_id, safe="/")}
        self._connection, self._path = _connection(self._base_url, timeout_s)
        self._has_reset = False

    def reset(self) -> dict[str, Reply]:
        """Begin an episode with each of the client's workers."""
        replies: dict[str, Reply] = self._post("/reset", {"worker_ids": list(self.worker_ids)})
        self._has_reset = True
        return replies

    def step(self, actions: Mapping[str, Action]) -> dict[str, Reply]:
        """One action for each worker named; the replies are of these workers."""
        self.executed_steps = 1
        replies: dict[str, Reply] = self._post("/step", actions)
        return replies

    def step_chunk(self, chunk: Sequence[Mapping[str, Action]]) -> dict[str, Reply]:
        """Actions one after the other, up to the end of an episode; `executed_steps` says how many were carried out."""
        answer = self._post("/step_chunk", list(chunk))
        self.executed_steps = answer["executed_steps"]
        replies: dict[str, Reply] = answer["obs"]
        return replies

    def give_up(self, reason: str) -> dict[str, Reply]:
        """End the running episodes as failed by their policy, for a reason in words; the next ones have begun."""
        body = {"worker_ids": list(self.worker_ids), "reason": reason}
        replies: dict[str, Reply] = self._post("/give_up", body)
        return replies

    def status(self, *, refresh: bool = False) -> dict[str, Any]:
        """How far the job is; ``refresh`` looks for results on disk first."""
        answer = self._ask("GET", "/status?refresh=1" if refresh else "/status", None, _JSON)
        data = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(data, dict):
            raise self._foreign("says nothing of a job")
        return data

    def submit(
        self,
        tasks: Sequence[str],
        run_id: str | None = None,
        episodes: int | None = None,
        seed: int | None = None,
    ) -> None:
        """Start another job; all workers of the server end. A ``run_id`` that has results goes on where it stopped."""
        data = {"config_path": list(tasks), "run_id": run_id, "episodes": episodes, "seed": seed}
        self._control("/start_new_job", data)

    def close(self) -> None:
        """End the client's workers, if it has reset any, and the connection. May be called twice."""
        try:
            if self._has_reset:
                self._has_reset = False
                self._control("/kill", {"worker_ids": list(self.worker_ids)})
        finally:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        with contextlib.suppress(ServerUnreachable):
            self.close()

    def __del__(self) -> None:
        if hasattr(self, "_connection"):
            self._connection.close()

    def _post(self, path: str, value: object) -> Any:
        try:
            body = msgspec.msgpack.encode(encode(value, text=False))
        except (TypeError, OverflowError) as unfit:
            raise NotSendable(
                f"an action cannot be sent: {unfit}; it may hold numbers, text, lists and NumPy arrays"
            ) from unfit
        return decode(self._ask("POST", path, body, _MSGPACK))

    def _control(self, path: str, data: Mapping[str, Any]) -> None:
        self._ask("POST", path, msgspec.json.encode({"data": data}), _JSON)

    def _ask(self, method: str, path: str, body: bytes | None, media_type: str) -> Any:
        """The decoded answer. A request is never sent twice: a step that was lost may have been carried out."""
        self._drop_if_closed()
        try:
            headers = {**self._headers, "Content-Type": media_type}
            self._connection.request(method, self._path + path, body, headers)
            response = self._connection.getresponse()
            answer = response.read()
        except _NO_ANSWER as problem:
            self._connection.close()
            raise ServerUnreachable(
                f"no answer from {self._base_url}: {problem or type(problem).__name__}"
            ) from problem
        if response.status in _NO_SUCH_PATH:
            raise self._foreign(f"answers {path} with HTTP {response.status}")
        if response.status != 200:
            raise _refusal(response.status, answer)
        try:
            return (msgspec.msgpack if media_type == _MSGPACK else msgspec.json).decode(answer)
        except msgspec.DecodeError as unreadable:
            raise self._foreign(f"answers with what is no {media_type}") from unreadable

    def _foreign(self, what: str) -> ForeignServer:
        return ForeignServer(f"what is at {self._base_url} is no evaluation server: it {what}")

    def _drop_if_closed(self) -> None:
        """Between requests nothing is to be read: if there is, the server has closed the connection."""
        if self._connection.sock is not None and select.select([self._connection.sock], [], [], 0)[0]:
            self._connection.close()


class _Connection(http.client.HTTPConnection):
    """Small requests go out at once."""

    def connect(self) -> None:
        super().connect()
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _connection(base_url: str, timeout_s: float) -> tuple[http.client.HTTPConnection, str]:
    try:
        parts = urlsplit(base_url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or parts.scheme not in ("http", "https"):
        raise BadAddress(f"{base_url!r} is not the address of a server, such as http://127.0.0.1:8087")
    kind = http.client.HTTPSConnection if parts.scheme == "https" else _Connection
    return kind(host, port, timeout=timeout_s), parts.path.rstrip("/")


def running_job(status: Mapping[str, Any]) -> str | None:
    """A sentence on the run that another job would end, from a server's status; None if no worker is active."""
    workers = status["active_workers"]
    if status["status"] != "running" or not workers:
        return None
    return (
        f"run {status['run_id']} is running with {len(workers)} workers, "
        f"{status['completed_episodes']} of {status['total_episodes']} episodes done"
    )


_REFUSALS = {400: InvalidRequest, 401: TokenRefused, 504: WorkerTimedOut}


def _refusal(status: int, body: bytes) -> RequestRefused:
    """The error for a reply that is not 200."""
    try:
        detail = str(msgspec.json.decode(body)["detail"])
    except (msgspec.DecodeError, KeyError, TypeError):
        detail = body[:200].decode(errors="replace")
    return _REFUSALS.get(status, RequestRefused)(f"HTTP {status}: {detail}", status)

"""`OpenPiPolicy`, and its connection to a policy server: observations out, rows of actions in.

The server speaks first, with its metadata; then every observation is answered once. Messages are MessagePack with NumPy
arrays as openpi writes them: a map with keys of bytes, raw data in C order.
"""

import time
from contextlib import ExitStack
from typing import Any

import msgspec
import numpy as np
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI
from websockets.sync.client import ClientConnection, connect

from urlab.evaluation.policies.base import Action, Observation, PolicyError, PolicyNotFound, embodiment_of
from urlab.evaluation.policies.openpi_families import FAMILIES, FAMILY_BY_ROBOT, checked_rows

_RETRY_S = 0.25
_TRACEBACK_LINES = 3
_ARRAY, _SCALAR = b"__ndarray__", b"__npgeneric__"
_DATA, _DTYPE, _SHAPE = b"data", b"dtype", b"shape"
_REFUSED_KINDS = "VOc"


class OpenPiPolicy:
    """A policy at ``url`` (ws://host:port). One connection, so one worker.

    ``rows`` of each answer are carried out before the next question, by default as many as is usual for the family.
    ``keys`` names a family of `FAMILIES` in place of the robot's own.
    """

    needs_cameras = True
    needs_privileged = False
    depth = False

    def __init__(
        self,
        url: str,
        *,
        rows: int | None = None,
        keys: str | None = None,
        api_key: str | None = None,
        connect_timeout_s: float = 10.0,
        reply_timeout_s: float = 300.0,
    ) -> None:
        if keys is not None and keys not in FAMILIES:
            raise PolicyNotFound(f"keys={keys!r} is not known; there are: {', '.join(FAMILIES)}")
        if rows is not None and (not isinstance(rows, int) or rows < 1):
            raise PolicyNotFound(f"rows={rows!r} must be a whole number from 1")
        self._rows, self._keys = rows, keys
        self._server = PolicyServer(
            url, api_key=api_key, connect_timeout_s=connect_timeout_s, reply_timeout_s=reply_timeout_s
        )

    def reset(self, observation: Observation) -> None:
        """Choose the family, and connect again if the connection was lost; the protocol has no word for a reset."""
        self._server.connect()
        embodiment = embodiment_of(observation)
        name = self._keys or FAMILY_BY_ROBOT.get(embodiment.name)
        if name is None:
            raise PolicyError(f"no family of policies is {embodiment.name}'s own; name one: keys={'|'.join(FAMILIES)}")
        arms = FAMILIES[name].arms
        if arms != len(embodiment.arms):
            raise PolicyError(f"keys={name} is for a robot with {arms} arm(s); {embodiment.name} has another number")
        self._family = FAMILIES[name]()

    def act(self, observation: Observation) -> list[Action]:
        """Ask, and translate the first rows of the answer."""
        answer = self._server.infer(self._family.encode(observation))
        rows = checked_rows(answer, self._family.width)
        return self._family.decode(rows[: self._rows or self._family.default_rows], observation)

    def close(self) -> None:
        """Close the connection."""
        self._server.close()


class PolicyServer:
    """A connection, for one thread. ``metadata`` is what the server said of itself.

    ``connect_timeout_s`` covers a server that is still starting, or comes back; ``reply_timeout_s`` one inference, of
    which the first one may compile for minutes. After a failure the connection is closed, since a late answer would be
    taken for the next one; `connect` opens another.
    """

    def __init__(self, url: str, *, api_key: str | None, connect_timeout_s: float, reply_timeout_s: float) -> None:
        self.url = url
        self.metadata: dict[str, Any] = {}
        self._api_key, self._connect_timeout_s = api_key, connect_timeout_s
        self._reply_timeout_s = reply_timeout_s
        self._open = ExitStack()
        self._socket: ClientConnection | None = None
        self.connect()

    def connect(self) -> None:
        """See that there is a connection; PolicyError if there is none to be had in time."""
        if self._socket is None:
            self._socket = _connect(self._open, self.url, self._api_key, self._connect_timeout_s)
            self.metadata = self._receive("metadata")

    def infer(self, observation: dict[str, Any]) -> dict[str, Any]:
        """The server's answer to an observation."""
        if self._socket is None:
            raise PolicyError(f"the policy server at {self.url} has gone; a new episode connects again")
        try:
            self._socket.send(pack(observation))
        except ConnectionClosed as gone:
            self.close()
            raise PolicyError(f"the policy server at {self.url} has gone: {gone}") from gone
        return self._receive("answer")

    def close(self) -> None:
        """Close the connection."""
        self._socket = None
        self._open.close()

    def _receive(self, what: str) -> dict[str, Any]:
        """The next message; after anything else the connection is closed."""
        try:
            return self._message(what)
        except BaseException:
            self.close()
            raise

    def _message(self, what: str) -> dict[str, Any]:
        if self._socket is None:
            raise PolicyError(f"the policy server at {self.url} has gone")
        try:
            frame = self._socket.recv(timeout=self._reply_timeout_s)
        except TimeoutError as late:
            raise PolicyError(
                f"the policy server at {self.url} sent no {what} within {self._reply_timeout_s:g} s; "
                "--policy-arg reply_timeout_s=SECONDS waits longer"
            ) from late
        except ConnectionClosed as gone:
            raise PolicyError(f"the policy server at {self.url} has gone: {gone}") from gone
        if isinstance(frame, str):
            raise PolicyError(f"the policy server at {self.url} failed: {_end_of(frame)}")
        message = unpack(frame)
        if not isinstance(message, dict):
            raise PolicyError(f"the {what} of the policy server at {self.url} is no map, but {type(message).__name__}")
        return message


def pack(data: Any) -> bytes:
    """To bytes; arrays and NumPy scalars may be anywhere in it."""
    return msgspec.msgpack.encode(_plain(data))


def unpack(frame: bytes) -> Any:
    """From bytes; arrays are read-only. PolicyError for what is no MessagePack, or no honest array."""
    try:
        return _rich(msgspec.msgpack.decode(frame))
    except (msgspec.DecodeError, ValueError, TypeError, KeyError, RecursionError) as broken:
        raise PolicyError(f"the policy server sent {len(frame)} bytes that cannot be read: {broken}") from broken


def _end_of(traceback_text: str) -> str:
    """The last lines of a traceback: the error, and where it was."""
    lines = [line.strip() for line in traceback_text.strip().splitlines()]
    return " | ".join(lines[-_TRACEBACK_LINES:])


def _connect(until: ExitStack, url: str, api_key: str | None, timeout_s: float) -> ClientConnection:
    """Tries until ``timeout_s`` is over: a server that was started at the same time may still be coming up."""
    headers = {"Authorization": f"Api-Key {api_key}"} if api_key else None
    give_up_s = time.monotonic() + timeout_s
    while True:
        try:
            # Pings are off: servers compute in their event loop, and would seem dead in a long inference.
            connection = connect(
                url,
                compression=None,
                max_size=None,
                additional_headers=headers,
                ping_interval=None,
                open_timeout=max(0.1, timeout_s),
                proxy=None,
            )
            until.callback(connection.close)
            return connection
        except InvalidURI as wrong:
            raise PolicyNotFound(f"{url} is not the address of a policy server: write ws://host:port") from wrong
        except InvalidHandshake as refused:
            raise PolicyError(f"{url} refused the connection: {refused}. Is it a policy server?") from refused
        except (OSError, EOFError) as away:
            if time.monotonic() + _RETRY_S > give_up_s:
                raise PolicyError(
                    f"no policy server at {url} within {timeout_s:g} s ({away}); start it, or wait longer with "
                    "--policy-arg connect_timeout_s=SECONDS"
                ) from away
            time.sleep(_RETRY_S)


def _plain(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _plain(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_plain(value) for value in data]
    if isinstance(data, np.ndarray):
        raw = np.ascontiguousarray(data).tobytes()
        return {_ARRAY: True, _DATA: raw, _DTYPE: data.dtype.str, _SHAPE: list(data.shape)}
    if isinstance(data, np.generic):
        return {_SCALAR: True, _DATA: data.item(), _DTYPE: data.dtype.str}
    return data


def _rich(data: Any) -> Any:
    if isinstance(data, list):
        return [_rich(value) for value in data]
    if not isinstance(data, dict):
        return data
    if _ARRAY in data:
        return np.frombuffer(data[_DATA], _dtype(data)).reshape(data[_SHAPE])
    if _SCALAR in data:
        return _dtype(data).type(data[_DATA])
    return {key: _rich(value) for key, value in data.items()}


def _dtype(data: dict[bytes, Any]) -> np.dtype[Any]:
    dtype: np.dtype[Any] = np.dtype(data[_DTYPE])
    if dtype.kind in _REFUSED_KINDS:
        raise ValueError(f"arrays of {dtype} are not taken")
    return dtype

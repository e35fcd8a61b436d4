"""The link to a policy server. It speaks first, with its metadata; then every observation is answered once."""

import time
from contextlib import ExitStack
from typing import Any

from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI
from websockets.sync.client import ClientConnection, connect

from urlab.evaluation.policies.base import PolicyError, PolicyNotFound
from urlab.evaluation.policies.openpi.packing import pack, unpack

_RETRY_S = 0.25
_TRACEBACK_LINES = 3


class PolicyServer:
    """A connection, for one thread. ``metadata`` is what the server said of itself.

    ``connect_timeout_s`` covers a server that is still starting, ``reply_timeout_s`` one inference; the first one may
    compile for minutes.
    """

    def __init__(self, url: str, *, api_key: str | None, connect_timeout_s: float, reply_timeout_s: float) -> None:
        self.url = url
        self._reply_timeout_s = reply_timeout_s
        self._open = ExitStack()
        self._socket = _connect(self._open, url, api_key, connect_timeout_s)
        try:
            self.metadata = self._receive("metadata")
        except BaseException:
            self.close()
            raise

    def infer(self, observation: dict[str, Any]) -> dict[str, Any]:
        """The server's answer to an observation."""
        try:
            self._socket.send(pack(observation))
        except ConnectionClosed as gone:
            raise PolicyError(f"the policy server at {self.url} has gone: {gone}") from gone
        return self._receive("answer")

    def close(self) -> None:
        """Hang up."""
        self._open.close()

    def _receive(self, what: str) -> dict[str, Any]:
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


def _end_of(traceback_text: str) -> str:
    """The last lines of a traceback: the error, and where it was."""
    lines = [line.strip() for line in traceback_text.strip().splitlines()]
    return " | ".join(lines[-_TRACEBACK_LINES:])


def _connect(until: ExitStack, url: str, api_key: str | None, timeout_s: float) -> ClientConnection:
    """Whoever starts both at once is not turned away while the server comes up."""
    headers = {"Authorization": f"Api-Key {api_key}"} if api_key else None
    give_up_s = time.monotonic() + timeout_s
    while True:
        try:
            # Pings are off: servers compute in their event loop, and would seem dead in a long inference.
            return until.enter_context(
                connect(
                    url,
                    compression=None,
                    max_size=None,
                    additional_headers=headers,
                    ping_interval=None,
                    open_timeout=max(0.1, timeout_s),
                    proxy=None,
                )
            )
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

"""A client whose steps go through shared memory, and not, unnoticed, through the sockets beside it."""

from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from urlab.cli.bench.raw import connect
from urlab.cli.complaint import CommandError
from urlab_client import URLabClient
from urlab_client.transports import ServerAddress, ShmTransport, open_transport
from urlab_client.transports.base import DEFAULT_STATE_PORT, DEFAULT_TIMEOUT_MS


@dataclass(frozen=True, slots=True)
class ShmClient:
    """A connected client, and its transport to look at. A context manager."""

    client: URLabClient
    transport: ShmTransport

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.client.close()

    def check(self) -> None:
        """CommandError when requests do not go through shared memory (any more)."""
        if not self.transport.is_attached:
            raise CommandError("the client does not use the server's shared memory: its log says why")


def connect_shm(endpoint: str, **options: Any) -> ShmClient:
    """A typed client, in direct mode, of a server that was started elsewhere; ``options`` are more of the client's."""
    base, _, port = endpoint.rpartition(":")
    transport = open_transport("shm", ServerAddress(base, int(port), DEFAULT_STATE_PORT, DEFAULT_TIMEOUT_MS))
    assert isinstance(transport, ShmTransport)
    connected = ShmClient(connect(endpoint, transport=transport, **options), transport)
    try:
        connected.check()
    except CommandError:
        connected.client.close()
        raise
    return connected

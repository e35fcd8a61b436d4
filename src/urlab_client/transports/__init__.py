"""Ways to reach a server. A new one is a file here and a line in `TRANSPORTS`."""

from collections.abc import Callable

from urlab_client.transports.address import DEFAULT_STATE_PORT, ServerAddress, check_base, check_ports
from urlab_client.transports.base import Transport
from urlab_client.transports.inprocess import InProcessTransport
from urlab_client.transports.zmq import ZmqTransport, endpoint

__all__ = [
    "TRANSPORTS",
    "InProcessTransport",
    "ServerAddress",
    "Transport",
    "ZmqTransport",
    "check_base",
    "check_ports",
    "open_transport",
]


def open_transport(name: str, address: ServerAddress) -> Transport:
    """The transport of that name; ValueError when this release has none."""
    opener = TRANSPORTS.get(name)
    if opener is None:
        known = ", ".join(repr(word) for word in TRANSPORTS)
        raise ValueError(f"transport {name!r} is not available in this release, which has {known}: use 'zmq'")
    return opener(address)


def _open_zmq(address: ServerAddress) -> Transport:
    return ZmqTransport(
        endpoint(address.base, address.step_port),
        state_endpoint=endpoint(address.base, address.state_port),
        connect_timeout_ms=address.connect_timeout_ms,
        follow_handshake=address.state_port == DEFAULT_STATE_PORT,
    )


TRANSPORTS: dict[str, Callable[[ServerAddress], Transport]] = {"zmq": _open_zmq}

"""Ways to reach a server: a request frame out, a reply frame back; streams where there are any.

`base` is what a transport is; `zmq` with `zmq_streams` works between machines, `shm` with `shm_link` and `shm_streams`
on one, `inprocess` in one process; `keys` are what servers beyond this machine ask for. A new one is a file here and a
line in `TRANSPORTS`.
"""

from collections.abc import Callable

from urlab_client.transports.base import DEFAULT_STATE_PORT, ServerAddress, Transport, check_base, check_ports
from urlab_client.transports.inprocess import InProcessTransport
from urlab_client.transports.keys import ClientKey, find_key
from urlab_client.transports.shm import ShmTransport
from urlab_client.transports.zmq import ZmqTransport, endpoint

__all__ = [
    "TRANSPORTS",
    "ClientKey",
    "InProcessTransport",
    "ServerAddress",
    "ShmTransport",
    "Transport",
    "ZmqTransport",
    "check_base",
    "check_ports",
    "find_key",
    "open_transport",
]


def open_transport(name: str, address: ServerAddress) -> Transport:
    """The transport of that name; ValueError when there is none."""
    opener = TRANSPORTS.get(name)
    if opener is None:
        known = ", ".join(repr(word) for word in TRANSPORTS)
        raise ValueError(f"transport {name!r} is not one: there are {known}, or pass a Transport of your own")
    return opener(address)


def _open_zmq(address: ServerAddress) -> ZmqTransport:
    return ZmqTransport(
        endpoint(address.base, address.step_port),
        state_endpoint=endpoint(address.base, address.state_port),
        connect_timeout_ms=address.connect_timeout_ms,
        follow_handshake=address.state_port == DEFAULT_STATE_PORT,
        key=address.key,
    )


def _open_shm(address: ServerAddress) -> ShmTransport:
    return ShmTransport(_open_zmq(address), address.shm_dir)


TRANSPORTS: dict[str, Callable[[ServerAddress], Transport]] = {"zmq": _open_zmq, "shm": _open_shm}

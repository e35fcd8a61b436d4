"""Reaching a running server from a command."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from urlab.cli.complaint import WRONG_USE, CommandError

if TYPE_CHECKING:
    from urlab_client import ZmqTransport


@contextmanager
def connected(address: str, step_port: int, timeout_s: float) -> "Iterator[ZmqTransport]":
    """A transport to a server that has just answered; URLabTimeoutError when there is none within ``timeout_s``."""
    # The client brings MuJoCo, which --help should not wait for.
    from urlab_client import ZmqTransport
    from urlab_client.transports.zmq import endpoint

    _check(address)
    timeout_ms = max(1, round(1000 * timeout_s))
    transport = ZmqTransport(endpoint(address, step_port), connect_timeout_ms=timeout_ms)
    try:
        transport.rpc({"op": "meta"}, rcv_timeout_ms=timeout_ms)
        yield transport
    finally:
        transport.close()


def _check(address: str) -> None:
    with_port = re.fullmatch(r"(tcp://.+):(\d+)", address)
    if with_port:
        base, port = with_port.groups()
        raise CommandError(f"--address {address} has a port: use --address {base} --step-port {port}", WRONG_USE)
    if not re.match(r"(tcp|ipc)://.", address):
        raise CommandError(f"--address {address} is not an address: use tcp://HOST or ipc:///PATH", WRONG_USE)

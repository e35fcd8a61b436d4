"""Binding sockets, with messages that say which option to change."""

import errno
import os
import socket as sockets
from pathlib import Path
from typing import Any

import zmq

from urlab.errors import ConfigError

_FIRST_IPC_NUMBER = 5559


def bind(socket: "zmq.Socket[Any]", base: str, port: int, *, option: str) -> str:
    """Bind ``<base>:<port>``, port 0 meaning any free one; returns the endpoint that clients connect to."""
    address = _address(base, port)
    if base.startswith("ipc://"):
        _refuse_taken_ipc(address, option)
    if "[" in base:
        socket.setsockopt(zmq.IPV6, 1)
    try:
        socket.bind(address)
    except zmq.ZMQError as refused:
        raise ConfigError(_advice(address, option, refused)) from refused
    return socket.getsockopt_string(zmq.LAST_ENDPOINT)


def remove_ipc_file(endpoint: str) -> None:
    """Take away the socket file of an ipc endpoint that was closed; others have none."""
    if endpoint.startswith("ipc://"):
        Path(endpoint.removeprefix("ipc://")).unlink(missing_ok=True)


def _address(base: str, port: int) -> str:
    if base.startswith("ipc://"):
        return f"{base}:{port or _free_ipc_number(base)}"
    return f"{base.replace('localhost', '127.0.0.1')}:{port or '*'}"


def _free_ipc_number(base: str) -> int:
    number = _FIRST_IPC_NUMBER
    while Path(f"{base.removeprefix('ipc://')}:{number}").exists():
        number += 1
    return number


def _refuse_taken_ipc(address: str, option: str) -> None:
    """ZeroMQ takes over the socket file of a living server without a word; a dead one's may be taken."""
    path = address.removeprefix("ipc://")
    if not Path(path).exists():
        return
    with sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except OSError:
            return
    raise ConfigError(f"{address} is in use by another server: choose another path, or another {option}")


def _advice(address: str, option: str, refused: zmq.ZMQError) -> str:
    if refused.errno == zmq.EADDRINUSE:
        return (
            f"port {address.rpartition(':')[2]} ({option}) is in use, perhaps by another server: "
            f"stop that one, or choose another port with {option} (0 = any free one)"
        )
    if refused.errno in (errno.EADDRNOTAVAIL, errno.ENODEV):
        return f"{address} is not an address of this machine: choose another --host"
    return f"{address} ({option}) cannot be bound: {os.strerror(refused.errno or 0)}"

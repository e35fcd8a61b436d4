"""Options that several commands share, and reaching the server that they name."""

import os
import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from urlab.cli.console import WRONG_USE, CommandError, LogFormat, LogLevel

if TYPE_CHECKING:
    from urlab_client import ZmqTransport

Address = Annotated[
    str,
    typer.Option("--address", metavar="URL", help="Where the server is, without a port: tcp://HOST or ipc:///PATH."),
]
StepPort = Annotated[int, typer.Option("--step-port", min=1, max=65535, help="The server's port for requests.")]
KEY_VARIABLE = "URLAB_KEY"


Key = Annotated[
    str | None,
    typer.Option(
        "--key",
        metavar="FILE",
        help="Your key, for a server that asks for one (urlab keys new).",
        show_default=False,
    ),
]
TimeoutS = Annotated[
    float, typer.Option("--timeout", metavar="SECONDS", min=0.01, help="How long to wait for a server.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document, and nothing else.")]
Log = Annotated[LogLevel, typer.Option("--log-level", help="How much is told; debug shows tracebacks.")]
Format = Annotated[LogFormat, typer.Option("--log-format", help="Log lines for people, or as JSON for programs.")]

DEFAULT_ADDRESS = "tcp://127.0.0.1"
DEFAULT_STEP_PORT = 5559
DEFAULT_TIMEOUT_S = 3.0


def use_key(path: str | None) -> None:
    """Make every connection of this process with that key: the client finds it in the environment."""
    if path is not None:
        os.environ[KEY_VARIABLE] = path


@contextmanager
def connected(address: str, step_port: int, timeout_s: float) -> "Iterator[ZmqTransport]":
    """A transport to a server that has just answered; URLabTimeoutError when there is none within ``timeout_s``."""
    # The client brings MuJoCo, which --help should not wait for.
    from urlab_client import ZmqTransport
    from urlab_client.transports.zmq import endpoint

    _check_address(address)
    timeout_ms = max(1, round(1000 * timeout_s))
    transport = ZmqTransport(endpoint(address, step_port), connect_timeout_ms=timeout_ms)
    try:
        transport.rpc({"op": "meta"}, rcv_timeout_ms=timeout_ms)
        yield transport
    finally:
        transport.close()


def _check_address(address: str) -> None:
    with_port = re.fullmatch(r"(tcp://.+):(\d+)", address)
    if with_port:
        base, port = with_port.groups()
        raise CommandError(f"--address {address} has a port: use --address {base} --step-port {port}", WRONG_USE)
    if not re.match(r"(tcp|ipc)://.", address):
        raise CommandError(f"--address {address} is not an address: use tcp://HOST or ipc:///PATH", WRONG_USE)


def tls_files(cert: Path | None, key: Path | None) -> tuple[Path, Path] | None:
    """Both files or none; CommandError for files that cannot be used."""
    if (cert is None) != (key is None):
        raise CommandError("--tls-cert and --tls-key go together", WRONG_USE)
    if cert is None or key is None:
        return None
    for option, file in (("--tls-cert", cert), ("--tls-key", key)):
        if not file.is_file():
            raise CommandError(f"{option} {file}: there is no such file", WRONG_USE)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key)
    except OSError as problem:
        raise CommandError(
            f"--tls-cert {cert} and --tls-key {key} are no certificate and its key in PEM: {problem.strerror}",
            WRONG_USE,
        ) from problem
    return cert, key

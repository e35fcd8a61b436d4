"""Options that several commands share."""

from typing import Annotated

import typer

from urlab.cli.console import LogLevel

Address = Annotated[
    str,
    typer.Option("--address", metavar="URL", help="Where the server is, without a port: tcp://HOST or ipc:///PATH."),
]
StepPort = Annotated[int, typer.Option("--step-port", min=1, max=65535, help="The server's port for requests.")]
TimeoutS = Annotated[
    float, typer.Option("--timeout", metavar="SECONDS", min=0.01, help="How long to wait for a server.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document, and nothing else.")]
Log = Annotated[LogLevel, typer.Option("--log-level", help="How much is told; debug shows tracebacks.")]

DEFAULT_ADDRESS = "tcp://127.0.0.1"
DEFAULT_STEP_PORT = 5559
DEFAULT_TIMEOUT_S = 3.0

"""The options of ``urlab serve``."""

from pathlib import Path
from typing import Annotated

import typer

from urlab.config import RenderProfile, RowLayout
from urlab_wire.enums import StepMode

_SOCKETS, _SCENE, _FILES, _VIEWS = "Sockets", "Simulation", "Files", "Views and streams"


Targets = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="LEVEL|MODEL",
        help="A level, or models (names or .xml, .mjcf, .urdf files) for a fresh one. Without any: the level demo.",
        show_default=False,
    ),
]

Host = Annotated[
    str, typer.Option("--host", help="Bind address, or ipc:///PATH for a local socket file.", rich_help_panel=_SOCKETS)
]
Insecure = Annotated[
    bool,
    typer.Option("--insecure", help="Allow a --host that others on the network can reach.", rich_help_panel=_SOCKETS),
]
StepPort = Annotated[
    int, typer.Option("--step-port", help="Requests and replies; 0 = any free port.", rich_help_panel=_SOCKETS)
]
StatePort = Annotated[
    int, typer.Option("--state-port", help="Live state (PUB); 0 = any free port.", rich_help_panel=_SOCKETS)
]
ControlPort = Annotated[
    int, typer.Option("--control-port", help="Live control (SUB); 0 = any free port.", rich_help_panel=_SOCKETS)
]
InfoPort = Annotated[
    int, typer.Option("--info-port", help="Actuator lists (PUB); 0 = any free port.", rich_help_panel=_SOCKETS)
]
CameraPort = Annotated[
    int,
    typer.Option(
        "--camera-port", help="First camera's stream, the others upward; 0 = any free ports.", rich_help_panel=_SOCKETS
    ),
]
Shm = Annotated[
    bool,
    typer.Option(
        "--shm/--no-shm", help="Shared-memory transport for clients on this machine", rich_help_panel=_SOCKETS
    ),
]

Mode = Annotated[
    StepMode,
    typer.Option("--step-mode", help="Anything but auto pins the mode for all clients.", rich_help_panel=_SCENE),
]
PlayAtStart = Annotated[
    bool,
    typer.Option("--play/--no-play", help="Simulate from the start, or wait for a client.", rich_help_panel=_SCENE),
]

ProjectDir = Annotated[
    Path | None,
    typer.Option(
        "--project",
        metavar="DIR",
        help="Levels, imports and recordings live there. Default: the per-user data folder.",
        show_default=False,
        rich_help_panel=_FILES,
    ),
]
ModelRoots = Annotated[
    list[Path] | None,
    typer.Option(
        "--model-root",
        metavar="DIR",
        help="Clients may read models there; may be repeated. Default on loopback: home, current and temporary folder.",
        show_default=False,
        rich_help_panel=_FILES,
    ),
]
WriteRoots = Annotated[
    list[Path] | None,
    typer.Option(
        "--write-root",
        metavar="DIR",
        help="Clients may write files there; may be repeated. Default: as for --model-root.",
        show_default=False,
        rich_help_panel=_FILES,
    ),
]
ReadyFile = Annotated[
    Path | None,
    typer.Option(
        "--ready-file",
        metavar="FILE",
        help="Write pid and endpoints there, as JSON, once everything is up.",
        show_default=False,
        rich_help_panel=_FILES,
    ),
]
SaveDebugXml = Annotated[
    bool,
    typer.Option("--save-debug-xml", help="Keep the compiled scene in the project folder.", rich_help_panel=_FILES),
]

Profile = Annotated[
    RenderProfile,
    typer.Option("--render-profile", help="Speed or beauty; auto: fast without a GPU.", rich_help_panel=_VIEWS),
]
CameraStreams = Annotated[
    bool,
    typer.Option(
        "--camera-streams/--no-camera-streams",
        help="Stream the cameras to those who subscribe.",
        rich_help_panel=_VIEWS,
    ),
]
Rows = Annotated[
    RowLayout,
    typer.Option(
        "--rows",
        help="Layout of the streamed rows: v1 as documented, v2 as later clients want it.",
        rich_help_panel=_VIEWS,
    ),
]

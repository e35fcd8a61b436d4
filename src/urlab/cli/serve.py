"""``urlab serve``: run the server until it is told to stop."""

import ctypes
import gc
import logging
import os
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from urlab import __version__
from urlab.access.web import check_token
from urlab.cli.console import CommandError, LogFormat, LogLevel, in_words, robot_counts, set_up_logging, stderr
from urlab.cli.options import Format, Log, tls_files
from urlab.cli.settings import ConfigFile
from urlab.cli.signals import StopSignals
from urlab.cli.supervise import ResumeFile
from urlab.cli.supervise import supervise as run_supervised
from urlab.config import Ports, RenderProfile, ServerConfig, default_project, is_local
from urlab.errors import ConfigError
from urlab_wire.enums import PIEState, RowLayout, StepMode

if TYPE_CHECKING:
    from urlab.app import Server
    from urlab.compile import CompiledArticulation
    from urlab.manager import Manager

log = logging.getLogger("urlab.cli")

_CLOSE_GRACE_S = 2.5
"""How long a compilation may hold up the end; it cannot be interrupted, and nothing of it is worth keeping."""
_START_LIMIT_S = 30.0
"""For so long the banner waits for the level; compiling then goes on behind it."""
_COLLECT_AFTER = 10_000, 10, 10
"""Python looks for garbage among all objects, while every client waits, when there are a million new ones: by itself it
does so several times a second where requests have large values."""
_LABEL_WIDTH = 10
_ARENA_MAX, _ARENAS = -8, 2
"""M_ARENA_MAX of glibc's malloc.h, and how many there are."""
_GL_WORDS = {
    "", "disable", "disabled", "off", "false", "0", "enable", "enabled", "on", "true", "1",
    "glfw", "glx", "egl", "osmesa",
}  # fmt: skip

_sockets = partial(typer.Option, rich_help_panel="Sockets")
_scene = partial(typer.Option, rich_help_panel="Simulation")
_files = partial(typer.Option, rich_help_panel="Files", show_default=False)
_views = partial(typer.Option, rich_help_panel="Views and streams")

Targets = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="LEVEL|MODEL",
        help="A level, or models (names or .xml, .mjcf, .urdf files) for a fresh one, each with a place if you like: "
        "NAME@x,y,z[,yaw]. Without any: the level demo.",
        show_default=False,
    ),
]

Host = Annotated[str, _sockets("--host", help="Bind address, or ipc:///PATH for a local socket file.")]
Insecure = Annotated[bool, _sockets("--insecure", help="Allow a --host that others on the network can reach.")]
Keys = Annotated[
    Path | None,
    _sockets(
        "--keys",
        metavar="DIR",
        help="Let in clients with a key of this folder only, encrypted, on any --host (urlab keys new).",
        show_default=False,
    ),
]
Share = Annotated[bool, _sockets("--share", help="Let other users of this machine connect.")]
StepPort = Annotated[int, _sockets("--step-port", help="Requests and replies; 0 = any free port.")]
StatePort = Annotated[int, _sockets("--state-port", help="Live state (PUB); 0 = any free port.")]
ControlPort = Annotated[int, _sockets("--control-port", help="Live control (SUB); 0 = any free port.")]
InfoPort = Annotated[int, _sockets("--info-port", help="Actuator lists (PUB); 0 = any free port.")]
CameraPort = Annotated[
    int, _sockets("--camera-port", help="First camera's stream, the others upward; 0 = any free ports.")
]
MetricsPort = Annotated[
    int | None,
    _sockets(
        "--metrics-port",
        help="Health checks and figures for Prometheus, over HTTP on this machine; 0 = any free port. Default: none.",
        show_default=False,
    ),
]
Web = Annotated[
    bool | None,
    _sockets("--web/--no-web", help="Browser editor; it starts when the page is opened.", show_default="if installed"),
]
WebPort = Annotated[
    int | None,
    _sockets("--web-port", help="Port of the browser editor; 0 = any free port.", show_default="8080, or any free one"),
]
WebToken = Annotated[
    str | None,
    _sockets("--web-token", metavar="TOKEN", help="What its page asks for.", show_default="made at the start"),
]
TlsCert = Annotated[
    Path | None,
    _sockets("--tls-cert", metavar="FILE", help="Certificate of the page (PEM): HTTPS.", show_default=False),
]
TlsKey = Annotated[
    Path | None, _sockets("--tls-key", metavar="FILE", help="The key of --tls-cert (PEM).", show_default=False)
]
Shm = Annotated[bool, _sockets("--shm/--no-shm", help="Shared-memory transport for clients on this machine")]

Mode = Annotated[StepMode, _scene("--step-mode", help="Anything but auto pins the mode for all clients.")]
Strict = Annotated[bool, _scene("--strict", help="End with exit code 1 if the level cannot be compiled at the start.")]
PlayAtStart = Annotated[bool, _scene("--play/--no-play", help="Simulate from the start, or wait for a client.")]

ProjectDir = Annotated[
    Path | None,
    _files(
        "--project",
        metavar="DIR",
        help="Levels, imports and recordings live there. Default: the per-user data folder.",
    ),
]
ModelRoots = Annotated[
    list[Path] | None,
    _files(
        "--model-root",
        metavar="DIR",
        help="Clients may read models there; may be repeated. Default on loopback: home, current and temporary folder.",
    ),
]
WriteRoots = Annotated[
    list[Path] | None,
    _files(
        "--write-root",
        metavar="DIR",
        help="Clients may write files there; may be repeated. Default on loopback: current and temporary folder.",
    ),
]
Plugins = Annotated[
    list[str] | None,
    _scene("--plugin", metavar="MODULE", help="Import a Python module of yours first; may be repeated."),
]
ReadyFile = Annotated[
    Path | None,
    _files("--ready-file", metavar="FILE", help="Write pid and endpoints there, as JSON, once everything is up."),
]
Supervise = Annotated[
    bool, _scene("--supervise/--no-supervise", help="Start the server again, with its level, when it dies.")
]
ResumeTo = Annotated[Path | None, _files("--resume-file", hidden=True)]
SaveDebugXml = Annotated[
    bool, _files("--save-debug-xml", help="Keep the compiled scene in the project folder.", show_default=True)
]

Profile = Annotated[RenderProfile, _views("--render-profile", help="Speed or beauty; auto: fast without a GPU.")]
CameraStreams = Annotated[
    bool, _views("--camera-streams/--no-camera-streams", help="Stream the cameras to those who subscribe.")
]
Rows = Annotated[
    RowLayout,
    _views("--rows", help="Layout of the streamed rows: v1 as documented, v2 as later clients want it."),
]


def serve(
    targets: Targets = None,
    host: Host = "127.0.0.1",
    insecure: Insecure = False,
    keys: Keys = None,
    share: Share = False,
    step_port: StepPort = 5559,
    state_port: StatePort = 5555,
    control_port: ControlPort = 5556,
    info_port: InfoPort = 5557,
    camera_port: CameraPort = 5558,
    metrics_port: MetricsPort = None,
    web: Web = None,
    web_port: WebPort = None,
    web_token: WebToken = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    shm: Shm = sys.platform == "linux",
    step_mode: Mode = StepMode.AUTO,
    play: PlayAtStart = True,
    strict: Strict = False,
    plugin: Plugins = None,
    supervise: Supervise = False,
    project: ProjectDir = None,
    model_root: ModelRoots = None,
    write_root: WriteRoots = None,
    ready_file: ReadyFile = None,
    resume_file: ResumeTo = None,
    save_debug_xml: SaveDebugXml = False,
    render_profile: Profile = RenderProfile.AUTO,
    camera_streams: CameraStreams = True,
    rows: Rows = RowLayout.V1,
    config_file: ConfigFile = None,  # noqa: ARG001 - its callback has taken it
    log_level: Log = LogLevel.INFO,
    log_format: Format = LogFormat.TEXT,
) -> None:
    """Run the server until Ctrl-C, SIGTERM or SIGHUP.

    Example: [bold]urlab serve[/bold] plays the demo level; [bold]urlab serve my_robot.xml[/bold] plays one of yours.
    """
    set_up_logging(log_level, log_format)
    if supervise:
        raise typer.Exit(run_supervised(sys.argv[1:], ready_file))
    with StopSignals() as stop:
        check_token(web_token, "--web-token")
        resume = ResumeFile(resume_file)
        targets, play = resume.read(targets or [], play)
        ports = Ports(step_port, state_port, control_port, info_port, camera_port)
        config = ServerConfig(
            host, ports, step_mode, play, project or default_project(),
            model_roots=tuple(model_root) if model_root else None,
            write_roots=tuple(write_root) if write_root else None,
            insecure=insecure, keys=keys, share=share, metrics_port=metrics_port, shm=shm, ready_file=ready_file,
            web=web, web_port=web_port, web_token=web_token, tls=tls_files(tls_cert, tls_key),
            plugins=tuple(plugin or ()), save_debug_xml=save_debug_xml, render_profile=render_profile,
            camera_streams=camera_streams, rows=rows,
        )  # fmt: skip
        _run(config, targets, stop, strict=strict, log_format=log_format, resume=resume)


def _run(
    config: ServerConfig,
    targets: Sequence[str],
    stop: StopSignals,
    *,
    strict: bool,
    log_format: LogFormat,
    resume: ResumeFile,
) -> None:
    """Serve until ``stop``, keeping what a successor needs in ``resume``.

    What cannot work raises a UrlabError before the ready file is there.
    """
    _forget_unknown_gl()
    _share_freed_memory()
    # MuJoCo comes in here, after the signals: a stop during its import is a clean one as well.
    from urlab.app import Server

    _check_ready_file(config)
    server = Server(config, targets)
    resume.follow(server.play)
    try:
        _start(server, strict=strict)
        stop.hold()  # before the ready file, for a supervisor may send its signal as soon as that is there
        server.write_ready_file()
        if log_format is LogFormat.JSON:
            log.info("serving level %s", server.play.level.name, extra={"data": server.endpoints()})
        elif log.isEnabledFor(logging.INFO):
            _print_banner(server)
        log.info("%s: stopping", stop.wait())
    finally:
        stop.hold()
        server.remove_ready_file()
        _close(server)
    log.info("stopped")


def _start(server: "Server", *, strict: bool) -> None:
    server.remove_ready_file()
    server.bind_sockets()
    gc.freeze()  # modules stay: a look at all of them would make every client wait for 40 ms
    gc.set_threshold(*_COLLECT_AFTER)
    server.begin(timeout_s=threading.TIMEOUT_MAX if strict else _START_LIMIT_S)
    status = server.play.status()
    if strict and server.config.play and status.state is not PIEState.READY:
        raise CommandError(f"the level {server.play.level.name} cannot be played (--strict): {status.compile_error}")
    server.open_sockets()


def _forget_unknown_gl() -> None:
    """MuJoCo cannot even be imported while MUJOCO_GL is a word that it does not know."""
    word = os.environ.get("MUJOCO_GL", "").strip().lower()
    if word not in _GL_WORDS:
        log.warning("MUJOCO_GL=%s is none of %s, and is ignored", word, ", ".join(sorted(_GL_WORDS - {""})))
        del os.environ["MUJOCO_GL"]


def _share_freed_memory() -> None:
    """Let threads reuse what others have freed: one arena of malloc for each makes a server grow with its clients."""
    if sys.platform == "linux":
        options = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none, and one arena
        if options is not None:
            options(_ARENA_MAX, _ARENAS)


def _check_ready_file(config: ServerConfig) -> None:
    path = config.ready_file
    if path is not None and not path.parent.is_dir():
        raise ConfigError(f"--ready-file {path}: there is no folder {path.parent}")
    if path is not None and path.is_dir():
        raise ConfigError(f"--ready-file {path} is a folder: name a file")


def _close(server: "Server") -> None:
    """Recordings get all the time they need; a compilation does not."""
    closing = ThreadPoolExecutor(1, thread_name_prefix="urlab-close").submit(server.close)
    try:
        closing.result(_CLOSE_GRACE_S)
    except TimeoutError:
        if server.play.status().state is PIEState.COMPILING:
            log.warning("stopped in the middle of a compilation")
            server.leave_no_files()
            logging.shutdown()
            os._exit(0)
        closing.result()


def _print_banner(server: "Server") -> None:
    """Level, robots, mode, endpoints, project, how to stop; on stderr, like the log."""
    console = stderr()
    for line in _lines(server):
        console.print(line, soft_wrap=True)


def _lines(server: "Server") -> list[Text]:
    from urlab.physics import MUJOCO_VERSION

    lines = [
        Text.assemble(("URLab Headless ", "bold cyan"), (__version__, "bold"), (f"  MuJoCo {MUJOCO_VERSION}", "dim")),
        _line("level", Text.assemble((server.play.level.name, "bold"), "  ", _state(server))),
    ]
    if server.play.is_playing:
        lines += _scene_lines(server.play.manager)
    lines += [
        _line("step", str(server.endpoints()["step"]), "green"),
        _line("streams", _streams(server)),
        _line("web", *_web(server)),
        *([_line("metrics", f"{server.metrics_url}/metrics")] if server.metrics_url is not None else []),
        _line("access", *_access(server.config)),
        _line("memory", str(server.shm_folder or "none: clients use ZeroMQ")),
        _line("project", _short(server.project.folder)),
        Text("Stop with Ctrl-C.", "dim"),
    ]
    return lines


def _web(server: "Server") -> tuple[str, str]:
    """Where the browser editor is, or how to get it."""
    from urlab.editor_process import MISSING

    if server.web_url is not None:
        return server.web_url, "bold green"
    return ("none (--no-web)", "") if server.config.web is False else (MISSING, "yellow")


def _access(config: ServerConfig) -> tuple[str, str]:
    """Who may connect, and how to show it."""
    if config.keys is not None:
        return f"clients with a key of {_short(config.keys)} (urlab keys list)", "green"
    if not is_local(config.host):
        return "EVERY MACHINE that reaches this address may drive this server, unencrypted (--insecure)", "bold red"
    if config.share:
        return "every user of this machine (--share)", "yellow"
    return "this user and root; --share lets other users of this machine in", ""


def _streams(server: "Server") -> str:
    where = server.endpoints()
    ports = [f"{name} {str(where[name]).rpartition(':')[2]}" for name in ("state", "control", "info")]
    cameras = [str(endpoint).rpartition(":")[2] for endpoint in where["cameras"].values()]
    return ", ".join([*ports, *([f"cameras {' '.join(cameras)}"] if cameras else [])])


def _scene_lines(manager: "Manager") -> list[Text]:
    lines = [
        _line("robots" if place == 0 else "", _robot(one)) for place, one in enumerate(manager.scene.articulations)
    ]
    if manager.scene.entities:
        lines.append(_line("entities", ", ".join(one.name for one in manager.scene.entities)))
    pinned = "pinned by --step-mode" if manager.pinned_mode is not None else "clients may switch"
    return [*lines, _line("mode", f"{manager.mode.value}, {pinned}")]


def _robot(robot: "CompiledArticulation") -> Text:
    return Text.assemble((robot.prefix, "bold"), f"  {in_words(robot_counts(robot))}")


def _state(server: "Server") -> Text:
    state = server.play.status().state
    if state is PIEState.READY:
        return Text("playing", "green")
    if state is PIEState.COMPILE_FAILED:
        return Text("compile_failed: the reason is above; mend it, then client.sim.start()", "bold red")
    if state is PIEState.OFF:
        return Text("not playing: client.sim.start() begins", "yellow")
    return Text(state.value, "yellow")


def _line(label: str, value: str | Text, style: str = "") -> Text:
    return Text.assemble((f"  {label:<{_LABEL_WIDTH}}", "dim"), value if isinstance(value, Text) else (value, style))


def _short(folder: Path) -> str:
    home = Path.home()
    return f"~/{folder.relative_to(home)}" if folder.is_relative_to(home) else str(folder)

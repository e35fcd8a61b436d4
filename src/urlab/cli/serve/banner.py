"""What a user sees once the server is up."""

from pathlib import Path

from rich.text import Text

from urlab import __version__
from urlab.app import Server
from urlab.cli.console import in_words, stderr
from urlab.compile import CompiledArticulation
from urlab.manager import Manager
from urlab.physics.version import MUJOCO_VERSION
from urlab_wire.enums import PIEState

_LABEL_WIDTH = 10


def print_banner(server: Server) -> None:
    """Level, robots, mode, endpoints, project, how to stop; on stderr, like the log."""
    console = stderr()
    for line in _lines(server):
        console.print(line, soft_wrap=True)


def _lines(server: Server) -> list[Text]:
    lines = [
        Text.assemble(("URLab Headless ", "bold cyan"), (__version__, "bold"), (f"  MuJoCo {MUJOCO_VERSION}", "dim")),
        _line("level", Text.assemble((server.play.level.name, "bold"), "  ", _state(server))),
    ]
    if server.play.is_playing:
        lines += _scene_lines(server.play.manager)
    lines += [
        _line("step", str(server.endpoints()["step"]), "green"),
        _line("streams", _streams(server)),
        _line("memory", str(server.shm_folder or "none: clients use ZeroMQ")),
        _line("project", _short(server.project.folder)),
        Text("Stop with Ctrl-C.", "dim"),
    ]
    return lines


def _streams(server: Server) -> str:
    where = server.endpoints()
    ports = [f"{name} {str(where[name]).rpartition(':')[2]}" for name in ("state", "control", "info")]
    cameras = [str(endpoint).rpartition(":")[2] for endpoint in where["cameras"].values()]
    return ", ".join([*ports, *([f"cameras {' '.join(cameras)}"] if cameras else [])])


def _scene_lines(manager: Manager) -> list[Text]:
    lines = [
        _line("robots" if place == 0 else "", _robot(one)) for place, one in enumerate(manager.scene.articulations)
    ]
    if manager.scene.entities:
        lines.append(_line("entities", ", ".join(one.name for one in manager.scene.entities)))
    pinned = "pinned by --step-mode" if manager.pinned_mode is not None else "clients may switch"
    return [*lines, _line("mode", f"{manager.mode.value}, {pinned}")]


def _robot(robot: CompiledArticulation) -> Text:
    counts = {
        "joints": len(robot.joints),
        "actuators": len(robot.actuators),
        "sensors": len(robot.sensors),
        "cameras": len(robot.cameras),
    }
    return Text.assemble((robot.prefix, "bold"), f"  {in_words(counts)}")


def _state(server: Server) -> Text:
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

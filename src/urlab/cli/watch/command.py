"""The command line of `urlab watch`. What it needs is imported when it runs, so that other commands start quickly."""

import signal
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from urlab.cli import options as opt
from urlab.cli.console import WRONG_USE, CommandError, LogLevel, print_json, set_up_logging, stderr, stdout

if TYPE_CHECKING:
    from urlab.cli.watch.camera import CaptureOptions
    from urlab.cli.watch.keyboard import Keyboard
    from urlab.cli.watch.server import WatchedAddress, WatchedServer

StatePort = Annotated[
    int | None,
    typer.Option("--state-port", min=1, max=65535, help="Port of the state stream.", show_default="as it tells"),
]
Robot = Annotated[str | None, typer.Option("--robot", metavar="NAME", help="Watch this robot only.")]
Seconds = Annotated[
    float | None, typer.Option("--seconds", min=0.1, help="How long; else until Ctrl-C, 5 for a clip, 3 with --json.")
]
Camera = Annotated[
    str | None, typer.Option("--camera", metavar="NAME", help="Watch this camera only: ROBOT/CAMERA, or its bare name.")
]
Out = Annotated[
    Path | None,
    typer.Option("--out", metavar="FILE", help="Write what the camera sees: .png (a picture), .mp4 or .gif (a clip)."),
]
Frames = Annotated[int | None, typer.Option("--frames", min=1, help="End after so many frames of the camera.")]
Fps = Annotated[
    float | None,
    typer.Option("--fps", min=0.1, max=240, help="Frames per second of a clip.", show_default="30, .gif 10"),
]
NoCameras = Annotated[
    bool, typer.Option("--no-cameras", help="Leave cameras alone: they are rendered while they are watched.")
]

Keys = Annotated[
    bool,
    typer.Option(
        "--keys",
        envvar="URLAB_HOTKEYS",
        show_envvar=False,
        help="Act on hotkeys: pause, step, reset, speed, overlays, driving; ? lists them.",
    ),
]


def watch(
    address: opt.Address = opt.DEFAULT_ADDRESS,
    step_port: opt.StepPort = opt.DEFAULT_STEP_PORT,
    key: opt.Key = None,
    state_port: StatePort = None,
    robot: Robot = None,
    seconds: Seconds = None,
    camera: Camera = None,
    out: Out = None,
    frames: Frames = None,
    fps: Fps = None,
    no_cameras: NoCameras = False,
    keys: Keys = False,
    timeout_s: opt.TimeoutS = opt.DEFAULT_TIMEOUT_S,
    as_json: opt.AsJson = False,
    log_level: opt.Log = LogLevel.WARNING,
) -> None:
    """Watch what a server streams: joints, sensors, rates, and what its cameras see. It only looks, unless --keys.

    Without a terminal there is a plain snapshot every second. Depth is written in millimetres to 16 bit PNG, and as
    grey to clips. Ctrl-C ends it well; a clip is then what was received so far.

    Exit code 1: no server answers, or there are no pictures.

    Example: [bold]urlab watch --robot panda[/bold], [bold]urlab watch --camera panda/wrist --out clip.mp4[/bold];
    in a script: [bold]urlab watch --json --seconds 2 | jq .real_time_factor[/bold]
    """
    set_up_logging(log_level)
    opt.use_key(key)
    order = _order(camera, robot, out, seconds, frames, fps)
    _check_keys(keys, as_json=as_json or order is not None)
    # SIGTERM acts like Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    from urlab.cli.watch.server import WatchedAddress, watched

    try:
        where = WatchedAddress(address, step_port, state_port, timeout_s)
        with watched(where, _tell) as server, _keyboard(keys, where, robot) as keyboard:
            if order is not None:
                _watch_camera(server, order, as_json=as_json)
            else:
                _watch_scene(server, robot, seconds, keyboard, with_cameras=not no_cameras, as_json=as_json)
    except KeyboardInterrupt:
        if out is not None:
            raise CommandError("interrupted: nothing was written") from None


def _order(
    camera: str | None,
    robot: str | None,
    out: Path | None,
    seconds: float | None,
    frames: int | None,
    fps: float | None,
) -> "CaptureOptions | None":
    if camera is not None:
        from urlab.cli.watch.camera import CaptureOptions, check

        name = f"{robot}/{camera}" if robot is not None else camera
        return check(CaptureOptions(name, None if out is None else out.expanduser().resolve(), seconds, frames, fps))
    for option, value in (("--out", out), ("--frames", frames), ("--fps", fps)):
        if value is not None:
            raise CommandError(f"{option} is for cameras: say which with --camera NAME", WRONG_USE)
    return None


def _check_keys(keys: bool, *, as_json: bool) -> None:
    if keys and as_json:
        raise CommandError("--keys is for the table of a scene: leave out --json and --camera", WRONG_USE)
    if keys and not sys.stdin.isatty():
        raise CommandError("--keys reads a terminal, and there is none", WRONG_USE)


def _keyboard(keys: bool, where: "WatchedAddress", robot: str | None) -> "AbstractContextManager[Keyboard | None]":
    if not keys:
        return nullcontext()
    from urlab.cli.watch.keyboard import Keyboard

    return Keyboard(where, robot)


def _watch_scene(
    server: "WatchedServer",
    robot: str | None,
    seconds: float | None,
    keyboard: "Keyboard | None",
    *,
    with_cameras: bool,
    as_json: bool,
) -> None:
    from urlab.cli.watch.scene import report_scene, show_scene

    if as_json:
        report_scene(server, robot, with_cameras=with_cameras, seconds=seconds)
    else:
        show_scene(server, robot, with_cameras=with_cameras, seconds=seconds, keyboard=keyboard)


def _watch_camera(server: "WatchedServer", order: "CaptureOptions", *, as_json: bool) -> None:
    from urlab.cli.watch.camera import report_camera, show_camera
    from urlab.cli.watch.clips import save

    if order.out is None:
        (report_camera if as_json else show_camera)(server, order)
        return
    facts, sentence = save(server, order, order.out)
    if as_json:
        print_json(facts)
    else:
        stdout().print(escape(sentence), soft_wrap=True)


def _tell(sentence: str) -> None:
    stderr().print(escape(sentence), soft_wrap=True)

"""``urlab policy``: a trained policy drives a robot, in a scene of its own or on a running server."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from urlab.cli import options as opt
from urlab.cli.console import WRONG_USE, CommandError, LogLevel, print_json, set_up_logging, stdout
from urlab.cli.signals import StopSignals

if TYPE_CHECKING:
    from urlab.policies import PolicyFile, PolicyRunner
    from urlab_client import URLabClient

_DIGITS = 9
"""Of the time of a simulation, which is a sum of steps."""

policy = typer.Typer(name="policy", help="Run trained policies on robots.", no_args_is_help=True)

Policy = Annotated[
    str, typer.Argument(metavar="POLICY", help="A policy file (.toml), or the name of one that we ship.")
]
SceneOption = Annotated[
    str | None,
    typer.Option("--scene", metavar="LEVEL", help="A level or model file.", show_default="that of the policy file"),
]
ServerAddress = Annotated[
    str | None,
    typer.Option("--address", metavar="URL", help="Drive on this server instead of a scene of its own."),
]
Live = Annotated[bool, typer.Option("--live", help="Real time, as on a robot; else as quick as it goes.")]
Seconds = Annotated[
    float | None,
    typer.Option("--seconds", min=0, metavar="S", help="Simulated time.", show_default="until Ctrl-C"),
]
Twist = Annotated[
    str | None,
    typer.Option(
        "--command",
        metavar="VX,VY,YAW",
        help="Command it at the start: m/s, m/s, rad/s. Afterwards set_twist, ROS cmd_vel and keys do.",
    ),
]
Seed = Annotated[int | None, typer.Option("--seed", help="Reset with this seed first.", show_default="no reset")]
Web = Annotated[bool, typer.Option("--web", help="Show it in a browser; keys drive the selected robot there.")]


@policy.command()
def run(
    name: Policy,
    scene: SceneOption = None,
    address: ServerAddress = None,
    step_port: opt.StepPort = opt.DEFAULT_STEP_PORT,
    key: opt.Key = None,
    timeout_s: opt.TimeoutS = opt.DEFAULT_TIMEOUT_S,
    live: Live = False,
    seconds: Seconds = None,
    command: Twist = None,
    seed: Seed = None,
    web: Web = False,
    as_json: opt.AsJson = False,
    log_level: opt.Log = LogLevel.WARNING,
) -> None:
    """Run an ONNX policy on a robot: what it sees and moves is in its policy file (docs/policies.md).

    Examples: [bold]urlab policy run quadruped_walk --seconds 10 --command 0.5,0,0[/bold]; on a server that runs,
    with [bold]urlab watch --keys[/bold] or a ROS cmd_vel to drive: [bold]urlab policy run quadruped_walk --address
    tcp://127.0.0.1 --live[/bold]
    """
    set_up_logging(log_level)
    opt.use_key(key)
    twist = None if command is None else _twist(command)
    from urlab.policies import OnnxNetwork, PolicyRunner, find_policy_file, read_policy_file

    found = read_policy_file(find_policy_file(name))
    network = OnnxNetwork(found.network)
    with _client(found, scene, address, step_port, timeout_s, live=live, web=web) as client:
        runner = PolicyRunner(client, found.content, network)
        if seed is not None:
            runner.reset(seed)
        if twist is not None:
            client.runtime.set_twist(
                runner.robot.prefix, linear=(twist[0], twist[1], 0.0), angular=(0.0, 0.0, twist[2])
            )
        if web and not as_json:
            stdout().print(f"Watch it: {client.viewport.editor_url()}")
        report = _drive(runner, seconds)
    if as_json:
        print_json(report)
    else:
        _show(report)


def _drive(runner: "PolicyRunner", seconds: float | None) -> dict[str, Any]:
    """Act until the time is over, or a signal comes."""
    begin_s, from_pos, actions = time.perf_counter(), runner.robot.root_pos_w, 0
    with StopSignals():
        while seconds is None or round(runner.elapsed_s, _DIGITS) < seconds:
            runner.step()
            actions += 1
    wall_s = time.perf_counter() - begin_s
    moved = runner.robot.root_pos_w - from_pos
    return {
        "robot": runner.robot.prefix,
        "actions": actions,
        "sim_time_s": round(runner.elapsed_s, _DIGITS),
        "wall_time_s": wall_s,
        "realtime_factor": runner.elapsed_s / wall_s if wall_s else 0.0,
        "moved_m": moved.tolist(),
    }


def _show(report: dict[str, Any]) -> None:
    x, y, _ = report["moved_m"]
    stdout().print(
        f"{report['robot']}: {report['actions']} actions in {report['sim_time_s']:.1f} s of simulated time "
        f"({report['realtime_factor']:.1f} x real time), moved {x:+.2f} m, {y:+.2f} m"
    )


@contextmanager
def _client(
    found: "PolicyFile",
    scene: str | None,
    address: str | None,
    step_port: int,
    timeout_s: float,
    *,
    live: bool,
    web: bool,
) -> "Iterator[URLabClient]":
    mode = "live" if live else "direct"
    if address is not None:
        if scene is not None or web:
            raise CommandError("--scene and --web are for a scene of its own: leave out --address, or them", WRONG_USE)
        from urlab_client import URLabClient

        with opt.connected(address, step_port, timeout_s) as transport:
            client = URLabClient(transport=transport, step_mode=mode, camera_streams=False)
            try:
                client.discover()
                yield client
            finally:
                client.close()
        return
    wanted = scene or found.content.scene
    if wanted is None:
        raise CommandError(f"{found.path} names no scene: say --scene LEVEL, or --address of a server", WRONG_USE)
    from urlab import launch

    with launch(wanted, step_mode=mode, web=web) as client:
        yield client


def _twist(text: str) -> tuple[float, float, float]:
    try:
        vx, vy, yaw = (float(part) for part in text.split(","))
    except ValueError:
        raise CommandError(f"--command is VX,VY,YAW, such as 0.5,0,0.2, not {text!r}", WRONG_USE) from None
    return vx, vy, yaw

"""The command line of `urlab ros2`. What it needs is imported when it runs: other commands do without ROS's types."""

import json
import logging
import os
import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from urlab.cli import options as opt
from urlab.cli.complaint import CommandError
from urlab.cli.console import LogLevel, print_json, set_up_logging, stderr, stdout
from urlab.cli.signals import StopSignals
from urlab.files import replacing

if TYPE_CHECKING:
    from urlab.ros2.backend import Backend
    from urlab.ros2.bridge import Bridge, Settings
    from urlab.ros2.qos_rules import QosRule, RuledBackend

log = logging.getLogger("urlab.ros2")

_STOP_LIMIT_S = 2.0
"""A server that is stuck may hold up the bridge for longer; whoever ends it does not wait for that."""


class BackendName(StrEnum):
    """How the bridge gets into the graph."""

    AUTO = "auto"
    RCLPY = "rclpy"
    DDS = "dds"


StatePort = Annotated[int, typer.Option("--state-port", min=1, max=65535, help="Port of the state stream.")]
Backends = Annotated[
    BackendName, typer.Option("--backend", help="rclpy needs ROS to be sourced; dds needs none; auto prefers rclpy.")
]
Domain = Annotated[
    int | None, typer.Option("--domain", min=0, max=232, help="ROS domain.", show_default="ROS_DOMAIN_ID, or 0")
]
Robots = Annotated[str | None, typer.Option("--robots", metavar="NAME,...", help="Bridge these robots only.")]
Cameras = Annotated[
    str | None, typer.Option("--cameras", metavar="NAME,...", help="Bridge these cameras only; 'none' for none.")
]
Rate = Annotated[float, typer.Option("--rate", min=0.1, max=2000, help="Most states a second; the clock has no limit.")]
ReadyFile = Annotated[
    Path | None, typer.Option("--ready-file", metavar="FILE", help="Write pid, backend and topics there once it runs.")
]
Services = Annotated[
    bool, typer.Option("--services/--no-services", help="Let ROS control the simulation: pause, step, reset, spawn.")
]
Qos = Annotated[
    list[str] | None,
    typer.Option(
        "--qos",
        metavar="TOPIC=WORD,...",
        help="Deliver topics otherwise than by convention, such as '*/image_raw=best_effort,depth=5'; may be repeated.",
    ),
]
List = Annotated[bool, typer.Option("--list", help="Print what would be published and heard, and exit.")]


def ros2(
    address: opt.Address = opt.DEFAULT_ADDRESS,
    step_port: opt.StepPort = opt.DEFAULT_STEP_PORT,
    state_port: StatePort = 5555,
    backend: Backends = BackendName.AUTO,
    domain: Domain = None,
    robots: Robots = None,
    cameras: Cameras = None,
    rate: Rate = 200.0,
    qos: Qos = None,
    services: Services = True,
    ready_file: ReadyFile = None,
    list_topics: List = False,
    as_json: opt.AsJson = False,
    log_level: opt.Log = LogLevel.INFO,
) -> None:
    """Be a node in a ROS 2 graph for a running server, whether or not ROS is installed here.

    Robots, sensors, cameras and the clock are topics of standard types; commands go to the robots over the control
    socket, and the services of simulation_interfaces control the simulation: whoever drives keeps the session. On a
    terminal there is a live table. It waits for a server that is not there yet, and follows it through restarts and
    from scene to scene. Ctrl-C ends it.

    Example: [bold]urlab ros2 --robots panda --rate 100[/bold]; what there would be: [bold]urlab ros2 --list[/bold]
    """
    set_up_logging(log_level)
    with StopSignals():
        settings = replace(_settings(address, step_port, state_port, (robots, cameras), rate), services=services)
        if list_topics:
            _list(settings, as_json=as_json)
        else:
            rules = _rules(qos or ())
            _serve(_ruled(_open(backend, domain), rules), settings, ready_file)


def _rules(words: Sequence[str]) -> list["QosRule"]:
    from urlab.ros2.qos_rules import BadRule, parse_rule

    try:
        return [parse_rule(word) for word in words]
    except BadRule as wrong:
        raise typer.BadParameter(str(wrong), param_hint="--qos") from wrong


def _ruled(node: "Backend", rules: Sequence["QosRule"]) -> "RuledBackend":
    from urlab.ros2.qos_rules import RuledBackend

    return RuledBackend(node, rules)


def _settings(
    address: str, step_port: int, state_port: int, chosen: tuple[str | None, str | None], rate_hz: float
) -> "Settings":
    try:
        from urlab.ros2.bridge import Settings
        from urlab.ros2.topics import Choice
    except ImportError as missing:
        raise CommandError(str(missing)) from missing
    _check_address(address)
    robots, cameras = chosen
    choice = Choice(_words(robots), () if cameras == "none" else _words(cameras))
    return Settings(address, step_port, state_port, choice, rate_hz)


def _check_address(address: str) -> None:
    """What can never be a server is not waited for."""
    from urlab_client.transports.base import check_base

    try:
        check_base(address, own_transport=False)
    except ValueError as wrong:
        raise typer.BadParameter(str(wrong), param_hint="--address") from wrong


def _words(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(word.strip() for word in text.split(",") if word.strip())


def _open(backend: BackendName, domain: int | None) -> "Backend":
    from urlab.ros2.backend import BackendError

    try:
        return _open_any(backend, domain)
    except (ImportError, BackendError) as failed:
        raise CommandError(str(failed)) from failed


def _open_any(backend: BackendName, domain: int | None) -> "Backend":
    if backend is not BackendName.DDS:
        try:
            from urlab.ros2.rclpy_backend import RclpyBackend

            return RclpyBackend(domain=domain)
        except ImportError:
            if backend is BackendName.RCLPY:
                raise
    from urlab.ros2.dds import DdsBackend

    return DdsBackend(domain=domain)


def _serve(node: "RuledBackend", settings: "Settings", ready_file: Path | None) -> None:
    from urlab.ros2.bridge import Bridge

    bridge = Bridge(node, settings)
    thread = threading.Thread(target=bridge.run, name="urlab-ros2-bridge", daemon=True)
    try:
        thread.start()
        _watch(bridge, node, ready_file)
    finally:
        bridge.stop()
        thread.join(_STOP_LIMIT_S)
        _close(node)
        if ready_file is not None:
            ready_file.unlink(missing_ok=True)
        stderr().print("stopped")


def _close(node: "RuledBackend") -> None:
    """Leave the graph; a request that a stuck server does not answer is left behind."""
    closing = threading.Thread(target=node.close, name="urlab-ros2-close", daemon=True)
    closing.start()
    closing.join(_STOP_LIMIT_S)


def _watch(bridge: "Bridge", node: "RuledBackend", ready_file: Path | None) -> None:
    from urlab.cli.ros2.table import show

    told = False
    for topics in show(bridge, node.name):
        if topics and not told:
            told = True
            for pattern in node.unused:
                log.warning("no topic of this scene fits --qos %s", pattern)
            if ready_file is not None:
                _tell_ready(ready_file, node.name, topics)


def _tell_ready(file: Path, backend: str, topics: Iterable[str]) -> None:
    document = {"pid": os.getpid(), "backend": backend, "topics": sorted(topics)}
    with replacing(file) as replaced:
        replaced.write(json.dumps(document).encode())


def _list(settings: "Settings", *, as_json: bool) -> None:
    from urlab.cli.ros2.listing import listing
    from urlab.cli.ros2.table import listing_table

    rows = listing(settings)
    if as_json:
        print_json(rows)
    else:
        stdout().print(listing_table(rows))

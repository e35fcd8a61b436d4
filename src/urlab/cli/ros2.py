"""`urlab ros2`: a running server as a node in a ROS 2 graph.

What it needs is imported when it runs: other commands do without ROS's types.
"""

import logging
import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from urlab.cli import options as opt
from urlab.cli.console import CommandError, LogLevel, print_json, set_up_logging, stderr, stdout
from urlab.cli.signals import StopSignals
from urlab.files import remove_ready_file, write_ready_file

if TYPE_CHECKING:
    from urlab.ros2.backend import Backend
    from urlab.ros2.bridge import Bridge, BridgeSettings
    from urlab.ros2.publishers import TopicStatistics
    from urlab.ros2.qos import QosRule
    from urlab.ros2.reach import Reach

log = logging.getLogger("urlab.ros2")

_STOP_LIMIT_S = 2.0
"""A server that is stuck may hold up the bridge for longer; the end of the command does not wait for that."""
_PERIOD_S = 1.0
"""How often the live table is drawn."""
_SUBSCRIBED = "heard"
"""What the table and the listing call a topic that the bridge subscribes to."""

Row = dict[str, str]


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
Network = Annotated[
    bool | None,
    typer.Option(
        "--network/--no-network",
        help="Be found by other machines, all of which can command the robots then.",
        show_default="ROS_AUTOMATIC_DISCOVERY_RANGE, or this machine only",
    ),
]
Services = Annotated[
    bool | None,
    typer.Option(
        "--services/--no-services",
        help="Let ROS control the simulation: pause, step, reset, spawn.",
        show_default="only on this machine",
    ),
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
    key: opt.Key = None,
    state_port: StatePort = 5555,
    backend: Backends = BackendName.AUTO,
    domain: Domain = None,
    network: Network = None,
    robots: Robots = None,
    cameras: Cameras = None,
    rate: Rate = 200.0,
    qos: Qos = None,
    services: Services = None,
    ready_file: ReadyFile = None,
    list_topics: List = False,
    as_json: opt.AsJson = False,
    log_level: opt.Log = LogLevel.INFO,
) -> None:
    """Be a node in a ROS 2 graph for a running server, whether or not ROS is installed here.

    Robots, sensors, cameras and the clock are topics of standard types; commands go to the robots over the control
    socket, and the services of simulation_interfaces control the simulation: the driving client keeps its session.
    Other machines reach it only if --network or ROS's own variables say so. On a terminal there is a live table. It
    waits for a server that is not there yet, and follows it through restarts and from scene to scene. Ctrl-C ends it.

    Example: [bold]urlab ros2 --robots panda --rate 100[/bold]; what there would be: [bold]urlab ros2 --list[/bold]
    """
    set_up_logging(log_level)
    opt.use_key(key)
    with StopSignals():
        settings = _settings(address, step_port, state_port, (robots, cameras), rate)
        reach = _reach(network)
        settings = replace(settings, services=reach.is_loopback if services is None else services)
        if list_topics:
            rows = listing(settings)
            if as_json:
                print_json(rows)
            else:
                stdout().print(_listing_table(rows))
        else:
            settings = replace(settings, qos_rules=_rules(qos or ()))
            _say_reach(reach, services=settings.services)
            reach.export(os.environ)
            _serve(_open(backend, domain), settings, ready_file)


def _reach(network: bool | None) -> "Reach":
    from urlab.ros2.reach import reach_of

    return reach_of(os.environ, network)


def _say_reach(reach: "Reach", *, services: bool) -> None:
    able = "command the robots and control the simulation" if services else "command the robots"
    if reach.is_loopback:
        log.info("on this machine only (--network changes that), where every user can %s: DDS tells none apart", able)
        return
    how = "its network settings are those of CYCLONEDDS_URI" if reach.own_interfaces else reach.discovery
    off = "" if services else "; services are off (--services)"
    log.warning("on the network (%s): every machine that reaches this one can %s%s", how, able, off)


def _rules(words: Sequence[str]) -> tuple["QosRule", ...]:
    from urlab.ros2.qos import BadRule, parse_rule

    try:
        return tuple(parse_rule(word) for word in words)
    except BadRule as wrong:
        raise typer.BadParameter(str(wrong), param_hint="--qos") from wrong


def _settings(
    address: str, step_port: int, state_port: int, chosen: tuple[str | None, str | None], rate_hz: float
) -> "BridgeSettings":
    try:
        from urlab.ros2.bridge import BridgeSettings
        from urlab.ros2.topics import TopicChoice
    except ImportError as missing:
        raise CommandError(str(missing)) from missing
    _check_address(address)
    robots, cameras = chosen
    choice = TopicChoice(_words(robots), () if cameras == "none" else _words(cameras))
    return BridgeSettings(address, step_port, state_port, choice, rate_hz)


def _check_address(address: str) -> None:
    """Do not wait for what can never be a server."""
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
        if backend is not BackendName.DDS:
            try:
                from urlab.ros2.rclpy_backend import RclpyBackend

                return RclpyBackend(domain=domain)
            except ImportError:
                if backend is BackendName.RCLPY:
                    raise
        from urlab.ros2.dds import DdsBackend

        return DdsBackend(domain=domain)
    except (ImportError, BackendError) as failed:
        raise CommandError(str(failed)) from failed


def _serve(node: "Backend", settings: "BridgeSettings", ready_file: Path | None) -> None:
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
        remove_ready_file(ready_file)
        stderr().print("stopped")


def _close(node: "Backend") -> None:
    """Leave the graph; a request that a stuck server does not answer is left behind."""
    closing = threading.Thread(target=node.close, name="urlab-ros2-close", daemon=True)
    closing.start()
    closing.join(_STOP_LIMIT_S)


# -- the live table ----------------------------------------------------------------------------------------------------


def _watch(bridge: "Bridge", node: "Backend", ready_file: Path | None) -> None:
    """Show the bridge until interrupted; when it first has topics, warn of unused rules and write the ready file."""
    is_ready = False
    for topics in _show(bridge, node.name):
        if topics and not is_ready:
            is_ready = True
            for pattern in bridge.unused_rules:
                log.warning("no topic of this scene fits --qos %s", pattern)
            write_ready_file(ready_file, {"pid": os.getpid(), "backend": node.name, "topics": sorted(topics)})


def _show(bridge: "Bridge", backend: str) -> Iterator["Mapping[str, TopicStatistics]"]:
    """Show the bridge's topics, on a terminal once a second, until interrupted; yields them as often."""
    if not sys.stderr.isatty():
        while True:
            yield bridge.statistics() if bridge.is_ready else {}
            time.sleep(_PERIOD_S / 4 if not bridge.is_ready else _PERIOD_S)
    with Live(console=stderr(), auto_refresh=False, transient=True) as live:
        while True:
            topics = bridge.statistics()
            live.update(Group(heading(backend, bridge.problem), live_table(topics)), refresh=True)
            yield topics if bridge.is_ready else {}
            time.sleep(_PERIOD_S)


def heading(backend: str, problem: str | None) -> Text:
    """How the bridge does; as wide as the terminal, where a title would be as narrow as an empty table."""
    return Text(f"urlab ros2, {backend}: {f'waiting: {problem}' if problem else 'running'}", style="italic")


def live_table(topics: "Mapping[str, TopicStatistics]") -> Table:
    """What a terminal shows of the topics."""
    table = Table(box=None, pad_edge=False)
    table.add_column("topic")
    table.add_column("type")
    for column in ("Hz", "subscribers", "refused"):
        table.add_column(column, justify="right")
    for topic, one in sorted(topics.items(), key=_place):
        listening = _SUBSCRIBED if one.subscribers is None else str(one.subscribers)
        table.add_row(topic, one.type_name, f"{one.rate_hz:.1f}", listening, str(one.refused or ""))
    return table


def _place(row: "tuple[str, TopicStatistics]") -> tuple[bool, str]:
    """Topics in use come first: a terminal seldom has room for all."""
    topic, one = row
    return not (one.subscribers or one.rate_hz), topic


# -- what there would be -----------------------------------------------------------------------------------------------


def listing(settings: "BridgeSettings") -> list[Row]:
    """``topic``, ``type`` and ``direction`` (published, heard, served) of every topic and service of the scene."""
    from urlab.ros2.services import SERVICES
    from urlab.ros2.topics import SceneTopics, clock_topic
    from urlab_client import URLabClient

    with URLabClient(
        settings.address, step_port=settings.step_port, observer=True, step_mode="direct", camera_streams=False
    ) as client:
        client.discover()
        topics = SceneTopics(client, settings.choice) if client.manager_present else None
    clock, clock_type, _ = clock_topic()
    published, commands = {(clock, clock_type)}, []
    if topics is not None:
        for warning in topics.warnings:
            log.warning("%s", warning)
        published |= {(name, one.type_name) for one in topics.states for name in one.names}
        published |= {(name, one.type_name) for one in topics.constants for name in one.names}
        published |= {(name, kind) for one in topics.cameras for names, kind, _ in one.published for name in names}
        commands = [(name, one.type_name) for one in topics.commands for name in one.names]
    served = [_row(one.topic, one.type_name, "served") for one in SERVICES] if settings.services else []
    return [
        *(_row(name, kind, "published") for name, kind in sorted(published)),
        *(_row(name, kind, _SUBSCRIBED) for name, kind in sorted(commands)),
        *served,
    ]


def _row(topic: str, kind: str, direction: str) -> Row:
    return {"topic": topic, "type": kind, "direction": direction}


def _listing_table(rows: list[Row]) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in ("topic", "type", ""):
        table.add_column(column)
    for row in rows:
        direction = row["direction"]
        table.add_row(row["topic"], row["type"], "" if direction == "published" else direction)
    return table

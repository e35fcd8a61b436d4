"""What is shown of a scene at one moment: the data, the table on a terminal, plain snapshots, one JSON document."""

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from urlab.cli.watch.rates import Rate
from urlab_client import URLabArticulation
from urlab_client.types import PIEStatus
from urlab_wire.ops.stepping import ArticulationState
from urlab_wire.streams import parse_row_topic

Numbers = list[float]
BEAT_S = 0.1
SNAPSHOT_S = 1.0
_SHOWN_NUMBERS = 4
_LARGE = 1e4


@dataclass(frozen=True, slots=True)
class JointReading:
    """Position and velocity: one number each for hinges (rad) and slides (m), several for ball and free joints."""

    pos: Numbers
    vel: Numbers


@dataclass(frozen=True, slots=True)
class RobotReading:
    """One robot. ``twist`` is the commanded vx, vy (m/s) and yaw rate (rad/s), None without a twist controller."""

    joints: dict[str, JointReading]
    sensors: dict[str, Numbers]
    twist: tuple[float, float, float] | None


@dataclass(frozen=True, slots=True)
class CameraReading:
    """One camera; ``resolution`` is (width, height)."""

    mode: str
    resolution: tuple[int, int]
    rate: Rate


@dataclass(frozen=True, slots=True)
class Reading:
    """A whole scene. Rates are over the last ``seconds``; ``status`` is None while the server does not answer."""

    endpoint: str
    state_endpoint: str
    version: str
    status: PIEStatus | None
    interruptions: int
    seconds: float
    sim_time_s: float | None
    real_time_factor: float | None
    topics: dict[str, Rate]
    robots: dict[str, RobotReading]
    cameras: dict[str, CameraReading]
    problem: str | None


def fits(robots: Mapping[str, URLabArticulation], states: Mapping[str, ArticulationState]) -> bool:
    """Whether these states are those of these robots."""
    sizes = {name: sum(joint.qpos_dim for joint in robot.joints.values()) for name, robot in robots.items()}
    return sizes == {name: len(state.qpos) for name, state in states.items()}


def read_robot(robot: URLabArticulation, state: ArticulationState) -> RobotReading:
    """A robot's part of the state, with its names."""
    joints = {
        name: JointReading(
            state.qpos[joint.qpos_local_offset : joint.qpos_local_offset + joint.qpos_dim],
            state.qvel[joint.qvel_local_offset : joint.qvel_local_offset + joint.qvel_dim],
        )
        for name, joint in robot.joints.items()
    }
    twist = None if state.twist is None else (state.twist.linear[0], state.twist.linear[1], state.twist.angular[2])
    return RobotReading(joints, state.sensors or {}, twist)


class Display:
    """On a terminal it is redrawn in place; elsewhere there is a snapshot every `SNAPSHOT_S`, as plain text."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None
        self._next_snapshot_s = time.monotonic() + SNAPSHOT_S

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *failure: object) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, draw: Callable[[], RenderableType], *, is_last: bool) -> None:
        """Show what ``draw`` gives, if it is time to; the last one is always shown."""
        if self._live is not None:
            self._live.update(draw(), refresh=True)
        elif is_last or time.monotonic() >= self._next_snapshot_s:
            self._next_snapshot_s += SNAPSHOT_S
            self._console.print(draw())


def beats(seconds: float | None) -> Iterator[bool]:
    """Ten times a second until the time is over; each tells whether it is the last. None goes on for ever."""
    end_s = math.inf if seconds is None else time.monotonic() + seconds
    is_last = False
    while not is_last:
        time.sleep(min(BEAT_S, max(0.0, end_s - time.monotonic())))
        is_last = time.monotonic() >= end_s
        yield is_last


def table(reading: Reading, *, message: str | None = None) -> RenderableType:
    """The whole screen; ``message`` stands below the head."""
    parts: list[RenderableType] = [_head(reading)]
    if reading.problem is not None:
        parts.append(Text(reading.problem, "bold yellow"))
    if message is not None:
        parts.append(Text(message, "cyan"))
    side_by_side = Table.grid(padding=(0, 3))
    side_by_side.add_row(_topics(reading.topics), _cameras(reading.cameras))
    parts.append(side_by_side)
    for name, robot in reading.robots.items():
        parts += _robot(name, robot)
    return Group(*parts)


def number(value: float) -> str:
    """A number in nine columns, so that nothing jumps when it changes."""
    return f"{value:9.3f}" if abs(value) < _LARGE else f"{value:9.2e}"


def _head(reading: Reading) -> RenderableType:
    status = reading.status
    words = [Text.assemble((reading.endpoint, "green"), f"  {reading.version}")]
    if status is not None and status.level:
        words.append(Text(status.level))
    if status is not None and status.mode:
        words.append(Text(f"{status.mode}, paused" if status.paused else status.mode, "bold"))
    if reading.problem is not None:
        return Text("   ").join(words)
    if reading.sim_time_s is not None:
        words.append(Text(f"simulated {reading.sim_time_s:.3f} s"))
    if reading.real_time_factor is not None:
        words.append(Text(f"{reading.real_time_factor:.3f} x real time"))
    return Text("   ").join(words)


def _topics(topics: dict[str, Rate]) -> Table:
    """One line per group of topics: rows of one kind of one robot are together."""
    groups: defaultdict[str, list[Rate]] = defaultdict(list)
    for topic, rate in sorted(topics.items()):
        groups[_group(topic)].append(rate)
    shown = _with_numbers("stream", "topics", "each at Hz", "messages/s", "kB/s")
    for name, rates in groups.items():
        hz, size = sum(rate.hz for rate in rates), sum(rate.bytes_per_s for rate in rates)
        shown.add_row(Text(name), str(len(rates)), f"{hz / len(rates):.1f}", f"{hz:.0f}", f"{size / 1000:.1f}")
    return shown


def _group(topic: str) -> str:
    row = parse_row_topic(topic)
    if row is not None:
        return f"{row.prefix}/{row.kind}" + ("/*" if row.name else "")
    return "scene/*" if topic.startswith("scene/") else topic


def _cameras(cameras: dict[str, CameraReading]) -> RenderableType:
    if not cameras:
        return ""
    shown = _with_numbers("camera", "mode", "size", "frames/s", "MB/s")
    for name, camera in cameras.items():
        width, height = camera.resolution
        rate = (f"{camera.rate.hz:.1f}", f"{camera.rate.bytes_per_s / 1e6:.1f}")
        shown.add_row(Text(name), camera.mode, f"{width}x{height}", *rate)
    return shown


def _with_numbers(heading: str, *numbers: str) -> Table:
    shown = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    shown.add_column(heading, no_wrap=True)
    for one in numbers:
        shown.add_column(one, justify="right", no_wrap=True)
    return shown


def _robot(name: str, robot: RobotReading) -> Iterable[RenderableType]:
    title = Text.assemble("\n", (name, "bold cyan"), ("  joints: position, velocity (rad or m)", "dim"))
    if robot.twist is not None:
        vx, vy, yaw_rate = robot.twist
        title.append(f"   twist {vx:.2f} {vy:.2f} m/s, {yaw_rate:.2f} rad/s")
    yield title
    yield _aligned(
        {joint: [*one.pos, *one.vel] if len(one.pos) == 1 else one.pos for joint, one in robot.joints.items()}
    )
    if robot.sensors:
        yield Text("sensors", "dim")
        yield _aligned(robot.sensors)


def _aligned(rows: dict[str, Numbers]) -> Columns:
    width = max((len(name) for name in rows), default=0)
    lines = [Text(f"{name:<{width}} {_short(numbers)}", no_wrap=True) for name, numbers in rows.items()]
    return Columns(lines, equal=True, column_first=True, padding=(0, 3))


def _short(numbers: Numbers) -> str:
    """The first few, and how many there are in all."""
    text = "".join(number(one) for one in numbers[:_SHOWN_NUMBERS])
    return text if len(numbers) <= _SHOWN_NUMBERS else f"{text} .. ({len(numbers)})"


def report(reading: Reading) -> dict[str, Any]:
    """Plain data. Numbers that JSON cannot say (NaN, infinity) are null."""
    status, factor = reading.status, reading.real_time_factor
    return {
        "endpoint": reading.endpoint,
        "state_endpoint": reading.state_endpoint,
        "seconds": round(reading.seconds, 3),
        "state": None if status is None else status.state.value,
        "mode": None if status is None else status.mode,
        "paused": None if status is None else status.paused,
        "sim_time_s": reading.sim_time_s,
        "real_time_factor": None if factor is None else round(factor, 4),
        "interruptions": reading.interruptions,
        "problem": reading.problem,
        "topics": {topic: rate_in_json(rate) for topic, rate in sorted(reading.topics.items())},
        "robots": {name: _robot_in_json(robot) for name, robot in reading.robots.items()},
        "cameras": {name: _camera(camera) for name, camera in reading.cameras.items()},
    }


def rate_in_json(rate: Rate) -> dict[str, Any]:
    """A rate as it stands in the JSON document."""
    return {"rate_hz": round(rate.hz, 2), "bytes_per_s": round(rate.bytes_per_s)}


def _robot_in_json(robot: RobotReading) -> dict[str, Any]:
    return {
        "joints": {name: {"pos": _value(one.pos), "vel": _value(one.vel)} for name, one in robot.joints.items()},
        "sensors": {name: [_finite(number) for number in values] for name, values in robot.sensors.items()},
        "twist": None if robot.twist is None else [_finite(number) for number in robot.twist],
    }


def _camera(camera: CameraReading) -> dict[str, Any]:
    return {"mode": camera.mode, "resolution": list(camera.resolution), **rate_in_json(camera.rate)}


def _value(numbers: Numbers) -> float | list[float | None] | None:
    """One number as itself, several as a list."""
    return _finite(numbers[0]) if len(numbers) == 1 else [_finite(number) for number in numbers]


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None

"""What is watched, for people."""

from collections import defaultdict
from collections.abc import Iterable

from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from urlab.cli.watch.reading import CameraReading, Numbers, Reading, RobotReading
from urlab.cli.watch.window import Rate
from urlab_wire.streams import parse_row_topic

_SHOWN_NUMBERS = 4
_LARGE = 1e4


def table(reading: Reading) -> RenderableType:
    """The whole screen."""
    parts: list[RenderableType] = [_head(reading)]
    if reading.problem is not None:
        parts.append(Text(reading.problem, "bold yellow"))
    parts.append(_side_by_side(_topics(reading.topics), _cameras(reading.cameras)))
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


def _side_by_side(*parts: RenderableType) -> RenderableType:
    grid = Table.grid(padding=(0, 3))
    grid.add_row(*parts)
    return grid


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

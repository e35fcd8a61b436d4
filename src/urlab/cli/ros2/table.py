"""The live table of `urlab ros2`."""

import sys
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from urlab.cli.console import stderr

if TYPE_CHECKING:
    from urlab.ros2.bridge import Bridge
    from urlab.ros2.tally import TopicTally

_PERIOD_S = 1.0


def show(bridge: "Bridge", backend: str) -> Iterator["Mapping[str, TopicTally]"]:
    """Show the bridge's topics, on a terminal once a second, until interrupted; yields them as often."""
    if not sys.stderr.isatty():
        while True:
            yield bridge.look() if bridge.is_ready else {}
            time.sleep(_PERIOD_S / 4 if not bridge.is_ready else _PERIOD_S)
    with Live(console=stderr(), auto_refresh=False, transient=True) as live:
        while True:
            topics = bridge.look()
            live.update(Group(heading(backend, bridge.problem), live_table(topics)), refresh=True)
            yield topics if bridge.is_ready else {}
            time.sleep(_PERIOD_S)


def listing_table(rows: list[dict[str, str]]) -> Table:
    """What `--list` prints."""
    table = Table(box=None, pad_edge=False)
    for column in ("topic", "type", ""):
        table.add_column(column)
    for row in rows:
        direction = row["direction"]
        table.add_row(row["topic"], row["type"], "" if direction == "published" else direction)
    return table


def heading(backend: str, problem: str | None) -> Text:
    """How the bridge does; as wide as the terminal, where a title would be as narrow as an empty table."""
    return Text(f"urlab ros2, {backend}: {f'waiting: {problem}' if problem else 'running'}", style="italic")


def live_table(topics: "Mapping[str, TopicTally]") -> Table:
    """What a terminal shows of the topics."""
    table = Table(box=None, pad_edge=False)
    table.add_column("topic")
    table.add_column("type")
    for column in ("Hz", "subscribers", "refused"):
        table.add_column(column, justify="right")
    for topic, one in sorted(topics.items(), key=_place):
        listening = "heard" if one.subscribers is None else str(one.subscribers)
        table.add_row(topic, one.type_name, f"{one.rate_hz:.1f}", listening, str(one.refused or ""))
    return table


def _place(row: "tuple[str, TopicTally]") -> tuple[bool, str]:
    """Topics in use come first: a terminal seldom has room for all."""
    topic, one = row
    return not (one.subscribers or one.rate_hz), topic

"""The server's log, for clients that follow it: its records, and the ops that changed the world."""

import logging
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def nothing_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine the watchdog would write into the log as well."""
    monkeypatch.setattr("urlab.monitoring.watchdog.LATE_S", 1e9)


def follow(wire: Any, after: int) -> tuple[list[Any], int]:
    reply = wire.ok("recent_log", after=after)
    return reply["records"], reply["last"]


def newest(wire: Any) -> int:
    return int(wire.ok("recent_log")["last"])


def test_ops_that_change_the_world_are_told_with_who_asked_and_what_became_of_it(
    make_server: Any, connect: Any
) -> None:
    server = make_server()  # of its own: of one op, only so many within ten seconds are told
    wire, stranger = connect(server), connect(server)
    wire.hello()
    stranger.hello(operator=True)
    last = newest(wire)
    wire.ok("reset")
    wire.refused("set_qpos", target="nothing", qpos=[1])
    stranger.ok("set_sim_speed", percent=100)
    stranger.refused("set_mode", mode="sideways")
    records, last = follow(wire, last)
    told = [(one["level"], one["caller"], one["session"], one["op"], one.get("code")) for one in records]
    assert told == [
        ("info", "local user", "driver", "reset", None),
        ("warning", "local user", "driver", "set_qpos", records[1]["code"]),
        ("info", "local user", "operator", "set_sim_speed", None),
        ("warning", "local user", "operator", "set_mode", "bad_mode"),
    ]
    assert "there is no mode 'sideways'" in records[-1]["message"]
    assert [one["number"] for one in records] == list(range(last - 3, last + 1))
    assert follow(wire, last) == ([], last)


def test_steps_and_what_only_reads_are_not_told(wire: Any, stranger: Any) -> None:
    stranger.hello(observer=True)
    last = newest(wire)
    wire.ok("step", n_steps=3)
    wire.refused("step", n_steps=-1)
    wire.ok("forward")
    for op in ("pie_status", "list_recordings", "get_contacts", "recent_log", "snapshot"):
        stranger.ok(op)
    wire.hello()
    assert newest(wire) == last


def test_what_an_observer_or_a_stranger_was_refused_is_told(wire: Any, stranger: Any) -> None:
    stranger.hello(observer=True)
    last = newest(wire)
    stranger.refused("reset")
    stranger.session_id = "that of another"
    stranger.refused("reset")
    records, _ = follow(wire, last)
    assert [(one.get("session"), one["code"]) for one in records] == [
        ("observer", "observer_read_only"),
        (None, "session_expired"),
    ]


def test_records_of_the_log_are_among_them(wire: Any) -> None:
    last = newest(wire)
    logging.getLogger("urlab.physics").warning("the table shakes")
    ((record,), _) = follow(wire, last)
    assert (record["level"], record["logger"], record["message"]) == ("warning", "urlab.physics", "the table shakes")
    assert "op" not in record


def test_a_flood_of_one_op_is_bounded(make_server: Any, connect: Any) -> None:
    wire = connect(make_server())  # of its own: for others, ten seconds may be over in the midst of the flood
    wire.hello()
    last = newest(wire)
    for _ in range(200):
        wire.ok("set_sim_speed", percent=100)
    wire.ok("untrack")
    records, _ = follow(wire, last)
    assert sum(one["op"] == "set_sim_speed" for one in records) <= 10
    assert records[-1]["op"] == "untrack"


def test_a_number_that_was_never_reached_gets_everything_as_after_a_restart(wire: Any) -> None:
    wire.ok("reset")
    assert follow(wire, 2**62)[0] == follow(wire, 0)[0] == follow(wire, -5)[0] != []

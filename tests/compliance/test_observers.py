"""Observer sessions: beside the plain one, free to look, not to touch."""

import json
from typing import Any

import numpy as np
import pytest

from urlab_wire import CATALOGUE


@pytest.fixture
def watcher(wire: Any, stranger: Any) -> Any:
    """An observer beside a driver (``wire``)."""
    stranger.hello(observer=True)
    return stranger


def test_observers_expire_nobody(wire: Any, watcher: Any, server: Any, connect: Any) -> None:
    others = [connect(server) for _ in range(3)]
    for one in others:
        one.hello(observer=True)
    assert len({one.session_id for one in (wire, watcher, *others)}) == 5
    for one in (wire, watcher, *others):
        assert one.ok("pie_status")["state"] == "ready"


def test_a_plain_hello_leaves_observers_alone(wire: Any, watcher: Any) -> None:
    wire.hello()
    assert watcher.ok("pie_status")["state"] == "ready"


def test_an_observer_may_not_change_anything(watcher: Any, world: Any, sample: Any) -> None:
    changing = [name for name, spec in CATALOGUE.items() if not spec.reads]
    before = world()
    codes = {op: watcher.refused(op, **sample(op)) for op in changing}
    assert codes == dict.fromkeys(changing, "observer_read_only")
    assert world() == before


READS = ["get_contacts", "list_keyframes", "replay_list_sessions", "pie_status", "read_mocap_pose"]


@pytest.mark.parametrize("op", READS)
def test_an_observer_may_read(watcher: Any, sample: Any, op: str) -> None:
    watcher.ok(op, **sample(op))


@pytest.mark.parametrize("mode", ["direct", "puppet"])
def test_an_observer_may_not_step_where_requests_are_the_clock(
    wire: Any, watcher: Any, engine: Any, mode: str, full_state: Any
) -> None:
    wire.ok("set_mode", mode=mode)
    before = full_state(engine())
    assert watcher.refused("step") == "observer_read_only"
    assert np.array_equal(full_state(engine()), before)


def test_a_live_step_without_commands_reads(wire: Any, watcher: Any) -> None:
    wire.ok("set_paused", paused=True)
    wire.ok("set_mode", mode="live")
    seen = watcher.ok("step", n_steps=50)
    assert seen["per_articulation"] == wire.ok("step")["per_articulation"]
    assert seen["time"] == 0


def test_a_live_step_with_commands_is_refused(wire: Any, watcher: Any, server: Any) -> None:
    wire.ok("set_paused", paused=True)
    wire.ok("set_mode", mode="live")
    assert watcher.refused("step", per_articulation={"arm": {"ctrl": [1, 1]}}) == "observer_read_only"
    assert server.play.manager.articulations["arm"].staged.active.tolist() == [0, 0]


def test_an_observer_has_its_own_encoding_and_level(wire: Any, stranger: Any) -> None:
    stranger.hello(observer=True, encoding="json", observations="full")
    wire.ok("set_paused", paused=True)
    wire.ok("set_mode", mode="live")
    request = {"op": "step", "session_id": stranger.session_id}
    stranger.json = True
    frame = stranger.send(json.dumps(request).encode())
    assert frame[:1] == b"{"
    assert "bodies" in stranger.decode(frame)["per_articulation"]["arm"]
    assert "bodies" not in wire.ok("step")["per_articulation"]["arm"]


def test_an_observer_that_reads_does_not_count_steps_for_the_driver(wire: Any, watcher: Any) -> None:
    wire.ok("step", n_steps=3)
    watcher.hello(observer=True)
    assert wire.ok("step")["step"] == 4

"""A step that takes too long, and cameras that a step asks for."""

import re
from typing import Any

import pytest

from urlab.manager import manager

pytestmark = pytest.mark.every_transport


def test_a_step_stops_at_its_time_limit_and_says_how_far_it_came(wire: Any, monkeypatch: Any, engine: Any) -> None:
    with monkeypatch.context() as limited:
        limited.setattr(manager, "STEP_TIME_LIMIT_S", 0.5)
        reply = wire.ask("step", n_steps=10_000_000)
    assert reply["code"] == "step_timeout"
    ran = int(re.match(r"(\d+) of 10000000 steps", reply["message"])[1])
    assert ran > 1
    assert engine().data.time == pytest.approx(ran * 0.002)
    assert wire.ok("pie_status")["sim_time"] == engine().data.time
    assert wire.ok("step")["step"] == ran + 1


def test_a_force_does_not_outlive_a_step_that_was_cut_short(wire: Any, monkeypatch: Any, engine: Any) -> None:
    push = {"crate": {"xfrc_applied": {"crate": [1, 0, 0, 0, 0, 0]}}, "walker": {"control_mode": "raw"}}
    with monkeypatch.context() as limited:
        limited.setattr(manager, "STEP_TIME_LIMIT_S", 0.05)
        assert wire.refused("step", n_steps=10_000_000, per_articulation=push) == "step_timeout"
    assert not engine().data.xfrc_applied.any()
    assert wire.ok("step")["per_articulation"]["walker"]["ctrl"] != [0, 0], "the controller is back"


@pytest.mark.parametrize("n_steps", [10**9 + 1, 2**63, "3", 1.5, [1]])
def test_a_count_of_steps_that_is_none_is_refused(wire: Any, world: Any, n_steps: Any) -> None:
    before = world()
    assert wire.refused("step", n_steps=n_steps) == "bad_value"
    assert world() == before


@pytest.mark.parametrize("asked", [{"eye": "soon"}, {"ear": "sync"}, {"walker/eye": "latest"}, {"eye": 5}, "eye", 7])
def test_cameras_that_do_not_exist_are_refused(wire: Any, world: Any, asked: Any) -> None:
    before = world()
    reply = wire.ask("step", include_cameras=asked)
    assert reply["code"] == "bad_value"
    assert world() == before


def test_a_refused_camera_is_told_which_ones_exist(wire: Any) -> None:
    message = wire.ask("step", include_cameras={"ear": "sync"})["message"]
    assert "arm/eye" in message


@pytest.mark.parametrize("asked", [{"eye": "sync"}, {"arm/eye": "latest"}, {"eye": "LATEST"}, True, False, {}])
def test_cameras_that_exist_may_be_asked_for(wire: Any, asked: Any) -> None:
    assert wire.ok("step", include_cameras=asked)["step"] == 1

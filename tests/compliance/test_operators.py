"""Operator sessions: beside the plain one, free to change the world, without taking it over."""

from typing import Any

import numpy as np
import pytest

TIMESTEP = 0.002


@pytest.fixture
def operator(wire: Any, stranger: Any) -> Any:
    """An operator beside a driver (``wire``)."""
    stranger.hello(operator=True)
    return stranger


def pause_live(wire: Any) -> None:
    wire.ok("set_paused", paused=True)
    wire.ok("set_mode", mode="live")


def test_operators_expire_nobody(wire: Any, operator: Any, server: Any, connect: Any) -> None:
    others = [connect(server) for _ in range(3)]
    for one, kind in zip(others, ("operator", "operator", "observer"), strict=True):
        one.hello(**{kind: True})
    assert len({one.session_id for one in (wire, operator, *others)}) == 5
    for one in (wire, operator, *others):
        assert one.ok("pie_status")["state"] == "ready"


def test_a_plain_hello_leaves_operators_alone(wire: Any, operator: Any) -> None:
    wire.hello()
    assert operator.ok("set_paused", paused=True)["paused"] is True


def test_nobody_is_an_observer_and_an_operator(wire: Any, stranger: Any) -> None:
    assert stranger.refused("hello", observer=True, operator=True) == "bad_value"
    assert wire.ok("pie_status")["state"] == "ready"
    assert stranger.refused("hello", operator="yes") == "bad_value"


def test_an_operator_steps_in_direct_mode_and_the_driver_counts_its_steps(wire: Any, operator: Any) -> None:
    assert wire.ok("step", n_steps=3)["step"] == 3
    told = operator.ok("step", n_steps=4)
    assert (told["step"], told["time"]) == (7, pytest.approx(7 * TIMESTEP))
    reply = wire.ok("step")
    assert (reply["step"], reply["time"]) == (8, pytest.approx(8 * TIMESTEP))


@pytest.mark.parametrize("mode", ["direct", "puppet", "live"])
def test_no_steps_and_no_commands_only_read(wire: Any, operator: Any, engine: Any, mode: str, full_state: Any) -> None:
    wire.ok("set_paused", paused=True)
    wire.ok("step", n_steps=2)
    wire.ok("set_mode", mode=mode)
    before = full_state(engine())
    told = operator.ok("step", n_steps=0)
    assert told["time"] == pytest.approx(2 * TIMESTEP)
    assert np.array_equal(full_state(engine()), before)


def test_a_live_simulation_that_is_paused_runs_an_operator_s_steps(wire: Any, operator: Any, plain: Any) -> None:
    mujoco_alone = plain(wire.play("arena", mode=None)["mjb"])
    pause_live(wire)
    wire.ok("reset")
    mujoco_alone.step(25)
    told = operator.ok("step", n_steps=25)
    assert told["time"] == mujoco_alone.data.time
    assert told["entities"]["crate"]["qpos"] == pytest.approx(mujoco_alone.data.joint("crate_free").qpos)
    seen = wire.ok("step", n_steps=10)
    assert (seen["time"], seen["step"]) == (told["time"], 25), "a driver's live step reads, as ever"
    assert wire.ok("pie_status")["paused"] is True


def test_a_live_simulation_that_runs_takes_no_steps_from_anybody(wire: Any, operator: Any, server: Any) -> None:
    wire.ok("set_mode", mode="live")
    begin = wire.ok("step")["step"]
    ran = operator.ok("step", n_steps=1_000_000)["step"] - begin
    assert ran < 100_000


def test_an_operator_may_put_setpoints_into_a_paused_simulation(wire: Any, operator: Any, server: Any) -> None:
    pause_live(wire)
    told = operator.ok("step", n_steps=0, per_articulation={"arm": {"ctrl": [0.25, -0.25]}})
    assert told["time"] == wire.ok("step")["time"]
    assert server.play.manager.articulations["arm"].staged.active.tolist() == [0.25, -0.25]


def test_after_an_operator_s_reset_the_driver_counts_anew(wire: Any, operator: Any) -> None:
    wire.ok("step", n_steps=5)
    assert operator.ok("reset")["time"] == 0
    reply = wire.ok("step", n_steps=2)
    assert (reply["step"], reply["time"]) == (2, pytest.approx(2 * TIMESTEP))


def test_an_operator_begins_a_play_in_the_mode_that_the_driver_asked_for(wire: Any, operator: Any) -> None:
    operator.ok("set_mode", mode="live")
    operator.ok("stop_pie")
    assert wire.refused("step") == "no_active_manager"
    assert operator.ok("begin_pie")["state"] == "ready"
    assert wire.ok("pie_status")["mode"] == "direct"
    reply = wire.ok("step", n_steps=2)
    assert (reply["step"], reply["time"]) == (2, pytest.approx(2 * TIMESTEP))


def test_an_operator_may_name_the_mode_of_a_play(wire: Any, operator: Any) -> None:
    operator.ok("begin_pie", level_path="arena", step_mode="puppet")
    assert wire.ok("pie_status")["mode"] == "puppet"
    wire.ok("begin_pie", level_path="arena")
    assert wire.ok("pie_status")["mode"] == "direct", "what the driver asked for last"


def test_a_mode_that_an_operator_sets_is_in_force_for_everybody(wire: Any, operator: Any) -> None:
    wire.ok("set_paused", paused=True)
    assert operator.ok("set_mode", mode="live")["current_mode"] == "live"
    assert wire.ok("step", n_steps=5)["time"] == 0
    wire.ok("set_mode", mode="direct")
    assert wire.ok("step", n_steps=5)["time"] == pytest.approx(5 * TIMESTEP)


def test_an_operator_s_level_is_its_own(wire: Any, stranger: Any) -> None:
    wire.hello(observations="minimal")
    stranger.hello(operator=True, observations="full")
    assert "bodies" in stranger.ok("step")["per_articulation"]["arm"]
    assert "ctrl" not in wire.ok("step")["per_articulation"]["arm"]
    wire.hello()
    assert "bodies" in stranger.ok("step")["per_articulation"]["arm"]


def test_a_reset_of_the_state_lets_the_time_go_on(wire: Any, operator: Any, engine: Any) -> None:
    wire.ok("step", n_steps=50)
    told = operator.ok("reset", scope="state")
    assert told["time"] == pytest.approx(50 * TIMESTEP)
    fresh = engine().data.qpos.copy()
    wire.ok("reset")
    assert np.array_equal(engine().data.qpos, fresh)
    assert engine().data.time == 0


def test_a_reset_of_the_time_leaves_the_state_alone(wire: Any, operator: Any, engine: Any) -> None:
    wire.ok("step", n_steps=50)
    qpos, qvel = engine().data.qpos.copy(), engine().data.qvel.copy()
    assert operator.ok("reset", scope="time")["time"] == 0
    assert np.array_equal(engine().data.qpos, qpos)
    assert np.array_equal(engine().data.qvel, qvel)


@pytest.mark.parametrize("asked", [{"scope": "space"}, {"scope": "time", "keyframe_name": "walker_crouch"}])
def test_a_strange_reset_is_refused(wire: Any, world: Any, asked: Any) -> None:
    before = world()
    assert wire.refused("reset", **asked) == "bad_value"
    assert world() == before


def test_velocities_can_be_set_with_a_pose_and_without(wire: Any, engine: Any) -> None:
    wire.ok("set_qpos", target="crate_0", qpos=[1, 2, 3, 1, 0, 0, 0], qvel=[1, 2, 3, 4, 5, 6])
    crate = engine().data.joint("crate_free")
    assert (crate.qpos.tolist(), crate.qvel.tolist()) == ([1, 2, 3, 1, 0, 0, 0], [1, 2, 3, 4, 5, 6])
    wire.ok("set_qpos", target="crate", qpos=[], qvel=[0, 0, 1, 0, 0, 0])
    assert (crate.qpos.tolist(), crate.qvel.tolist()) == ([1, 2, 3, 1, 0, 0, 0], [0, 0, 1, 0, 0, 0])
    wire.ok("set_qpos", target="arm_0", qpos=[0.1, 0.2], qvel=[0.3, 0.4])
    assert engine().data.qvel[:2].tolist() == [0.3, 0.4]
    wire.ok("set_qpos", target="walker", qpos=[], qvel=[9, 0, 0, 0, 0, 0])
    assert engine().data.qvel[2:9].tolist() == [9, 0, 0, 0, 0, 0, 0]


WRONG = [
    ({"target": "crate", "qpos": [], "qvel": [1, 2]}, "dim_mismatch"),
    ({"target": "arm", "qpos": [0, 0], "qvel": [1]}, "dim_mismatch"),
    ({"target": "arm", "qpos": [0, 0], "qvel": [0, float("inf")]}, "bad_value"),
    ({"target": "goal", "qpos": [], "qvel": [0] * 6}, "no_joints"),
]


@pytest.mark.parametrize(("asked", "code"), WRONG)
def test_wrong_velocities_are_refused(wire: Any, world: Any, asked: Any, code: str) -> None:
    before = world()
    assert wire.refused("set_qpos", **asked) == code
    assert world() == before

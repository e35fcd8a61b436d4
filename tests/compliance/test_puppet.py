"""Puppet mode: the client's state is shown as it is, and nothing integrates."""

from typing import Any

import numpy as np
import pytest


@pytest.fixture
def puppet(wire: Any) -> Any:
    """A client in puppet mode."""
    wire.ok("set_mode", mode="puppet")
    return wire


@pytest.fixture
def alone(puppet: Any, plain: Any) -> Any:
    """The client's own simulation of the same model."""
    return plain(puppet.hello()["mjb"])


def push(wire: Any, alone: Any, **more: Any) -> Any:
    data = alone.data
    return wire.ok("step", time=data.time, qpos=data.qpos.tolist(), qvel=data.qvel.tolist(), **more)


def test_a_pushed_state_is_written_as_it_is(puppet: Any, alone: Any, engine: Any) -> None:
    alone.step(40)
    alone.data.ctrl[:] = range(alone.model.nu)
    seen = push(puppet, alone, ctrl=alone.data.ctrl.tolist())
    data = engine().data
    assert np.array_equal(data.qpos, alone.data.qpos)
    assert np.array_equal(data.qvel, alone.data.qvel)
    assert np.array_equal(data.ctrl, alone.data.ctrl)
    assert seen["time"] == data.time == alone.data.time


def test_derived_values_are_those_of_mj_forward(puppet: Any, alone: Any, engine: Any) -> None:
    alone.data.qpos[:] += 0.1
    alone.data.qvel[:] = 0.3
    seen = push(puppet, alone, observations="full")
    alone.forward()
    data = engine().data
    for name in ("xpos", "xquat", "sensordata", "qacc", "site_xpos", "actuator_force"):
        assert np.array_equal(getattr(data, name), getattr(alone.data, name)), name
    assert seen["per_articulation"]["arm"]["bodies"]["fore"]["xpos"] == alone.data.body("arm_fore").xpos.tolist()
    assert seen["entities"]["crate"]["xpos"] == alone.data.body("crate").xpos.tolist()


def test_nothing_is_integrated_whatever_n_steps_says(puppet: Any, alone: Any, engine: Any) -> None:
    alone.data.qvel[:] = 1
    push(puppet, alone, n_steps=50)
    before = engine().data.qpos.copy()
    seen = puppet.ok("step", n_steps=50, per_articulation={"arm": {"ctrl": [1, 1]}})
    assert np.array_equal(engine().data.qpos, before)
    assert seen["time"] == 0


def test_every_push_counts_one(puppet: Any, alone: Any) -> None:
    assert [push(puppet, alone, n_steps=9)["step"] for _ in range(3)] == [1, 2, 3]


def test_what_is_not_pushed_stays(puppet: Any, alone: Any, engine: Any) -> None:
    alone.step(10)
    push(puppet, alone)
    seen = puppet.ok("step", qvel=[0.0] * alone.model.nv)
    assert seen["time"] == alone.data.time
    assert np.array_equal(engine().data.qpos, alone.data.qpos)
    assert not engine().data.qvel.any()


def test_forces_are_inert(puppet: Any, engine: Any) -> None:
    seen = puppet.ok("step", per_articulation={"walker": {"xfrc_applied": {"trunk": [0, 0, 1e4, 0, 0, 0]}}})
    assert not engine().data.xfrc_applied.any()
    assert seen["per_articulation"]["walker"]["qvel"] == [0] * 11


WRONG = [
    ({"qpos": [0.0] * 5}, "dim_mismatch"),
    ({"qvel": [0.0]}, "dim_mismatch"),
    ({"ctrl": [0.0]}, "dim_mismatch"),
    ({"qpos": "home"}, "bad_value"),
    ({"time": float("nan")}, "bad_value"),
    ({"time": "now"}, "bad_value"),
    ({"ctrl": [float("inf")] * 4}, "bad_value"),
    ({"per_articulation": {"robot": {}}}, "unknown_articulation"),
]


@pytest.mark.parametrize(("wrong", "code"), WRONG, ids=str)
def test_a_wrong_push_leaves_the_state_alone(puppet: Any, alone: Any, world: Any, wrong: Any, code: str) -> None:
    alone.step(10)
    before = world()
    good = {"qpos": alone.data.qpos.tolist(), "qvel": alone.data.qvel.tolist(), "time": 1.0}
    assert puppet.refused("step", **{**good, **wrong}) == code
    assert world() == before


def test_a_vector_with_one_nan_is_refused(puppet: Any, alone: Any, world: Any) -> None:
    before = world()
    qpos = alone.data.qpos.tolist()
    qpos[3] = float("nan")
    reply = puppet.ask("step", qpos=qpos)
    assert (reply["code"], "3" in reply["message"]) == ("bad_value", True)
    assert world() == before


@pytest.mark.parametrize("time", [1e15, 1e25, 1e300, -1e300, -3.25])
def test_any_finite_time_can_be_told(puppet: Any, time: float) -> None:
    assert puppet.ok("step", time=time)["time"] == time


def test_a_dragged_body_is_told_to_the_client(puppet: Any) -> None:
    assert "perturbation" not in puppet.ok("step")
    held = puppet.ok("perturb", body="crate", force=[1, 2, 3])
    first = puppet.ok("step")["perturbation"]
    assert first == {"body_id": held["body_id"], "version": held["version"], "xfrc": [1, 2, 3, 0, 0, 0]}
    puppet.ok("perturb", body="crate", force=[4, 5, 6])
    second = puppet.ok("step")["perturbation"]
    assert second["version"] > first["version"]
    puppet.ok("release_perturbation")
    assert "perturbation" not in puppet.ok("step")


def test_a_drag_is_told_for_the_state_that_was_pushed(puppet: Any, alone: Any) -> None:
    puppet.ok("perturb", body="crate", target=[0, 0, 3])
    place = alone.model.jnt_qposadr[alone.model.body("crate").jntadr[0]]
    qpos, pulls = alone.data.qpos.copy(), []
    for height in (1.0, 2.0):
        qpos[place + 2] = height
        pulls.append(puppet.ok("step", qpos=qpos.tolist())["perturbation"]["xfrc"][2])
    assert pulls[0] == pytest.approx(2 * pulls[1])


def test_every_body_that_is_held_is_told_to_the_client(puppet: Any) -> None:
    puppet.ok("perturb", body="crate", force=[0, 0, 1])
    newest = puppet.ok("perturb", body="arm_upper", torque=[0, 0, 2])
    seen = puppet.ok("step")
    assert seen["perturbation"]["body_id"] == newest["body_id"]
    assert [one["xfrc"] for one in seen["perturbations"]] == [[0, 0, 1, 0, 0, 0], [0, 0, 0, 0, 0, 2]]

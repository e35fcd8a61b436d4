"""Direct mode is bit for bit a plain mj_step loop on the model that the handshake carries."""

from typing import Any

import mujoco
import numpy as np
import pytest

pytestmark = pytest.mark.every_transport

SPLITS = {"one by one": [1] * 1000, "tens": [10] * 100, "uneven": [1, 7, 92, 300, 600], "at once": [1000]}


@pytest.mark.parametrize("level", ["panda", "quadruped", "muscles"])
@pytest.mark.parametrize("split", SPLITS.values(), ids=SPLITS)
def test_a_thousand_steps_equal_a_plain_loop(
    wire: Any, plain: Any, engine: Any, level: str, split: list[int], full_state: Any
) -> None:
    alone = plain(wire.play(level)["mjb"])
    for index, n_steps in enumerate(split):
        ctrl = 0.3 * np.sin(np.arange(alone.model.nu) + 0.1 * index)
        alone.data.ctrl[:] = ctrl
        alone.step(n_steps)
        command = {"ctrl": ctrl.tolist(), "control_mode": "raw"}
        seen = wire.ok("step", n_steps=n_steps, per_articulation={level: command})
    assert np.array_equal(full_state(engine()), alone.state())
    assert seen["time"] == alone.data.time
    assert seen["step"] == 1000
    assert seen["per_articulation"][level]["qpos"] == alone.data.qpos.tolist()
    assert seen["per_articulation"][level]["qvel"] == alone.data.qvel.tolist()


def test_a_robot_in_company_steps_like_a_plain_loop_too(wire: Any, plain: Any, engine: Any, full_state: Any) -> None:
    alone = plain(wire.play("demo")["mjb"])
    mujoco.mj_setState(alone.model, alone.data, full_state(engine()), mujoco.mjtState.mjSTATE_INTEGRATION)
    raw = {"quadruped": {"ctrl": [0.5] * 12, "control_mode": "raw"}}
    seen = wire.ok("step", n_steps=100, per_articulation=raw, observations="full")
    alone.data.ctrl[8:] = 0.5
    alone.step(100)
    assert np.array_equal(full_state(engine()), alone.state())
    boxes = {name: alone.data.body(name) for name in ("box", "box-2", "box-3")}
    assert {name: seen["entities"][name]["xpos"] for name in boxes} == {
        name: body.xpos.tolist() for name, body in boxes.items()
    }


def test_a_reset_begins_the_same_thousand_steps_again(wire: Any, engine: Any, full_state: Any) -> None:
    wire.play("muscles")
    runs = []
    for _ in range(2):
        wire.ok("reset")
        wire.ok("step", n_steps=200, per_articulation={"muscles": {"ctrl": [0.5, 1.0, -0.3, 0.1]}})
        runs.append(full_state(engine()))
    assert np.array_equal(*runs)


def test_what_a_step_says_of_bodies_and_sensors_is_what_mj_step_left(wire: Any, plain: Any) -> None:
    alone = plain(wire.play("muscles")["mjb"])
    ctrl = [0.5, 1.0, -0.3, 0.1]
    seen = wire.ok("step", n_steps=50, observations="full", per_articulation={"muscles": {"ctrl": ctrl}})
    alone.data.ctrl[:] = ctrl
    alone.step(50)
    muscles = seen["per_articulation"]["muscles"]
    assert muscles["sensors"] == {"pull": alone.data.sensordata.tolist()}
    assert muscles["act"] == [*alone.data.act.tolist(), 0.0]
    assert muscles["actuator_force"] == alone.data.actuator_force.tolist()
    assert muscles["bodies"]["limb"]["xpos"] == alone.data.body("muscles_limb").xpos.tolist()
    assert muscles["bodies"]["limb"]["xquat"] == alone.data.body("muscles_limb").xquat.tolist()


def test_pd_control_follows_its_law_in_every_sub_step(wire: Any, plain: Any, engine: Any, full_state: Any) -> None:
    alone = plain(wire.play("arena")["mjb"])
    model, data = alone.model, alone.data
    target = {"hip": 1.7, "knee": -0.4}
    kp, kv, limit = {"hip": 40.0, "knee": 25.0}, 5.0, 200.0
    wire.ok("step", n_steps=300, per_articulation={"walker": {"ctrl": list(target.values())}})
    for _ in range(300):
        for joint, actuator in (("hip", "hip"), ("knee", "knee_motor")):
            one = model.joint(f"walker_{joint}")
            low, high = one.range if one.limited else (-np.inf, np.inf)
            wanted = min(max(target[joint], low), high)
            torque = kp[joint] * (wanted - data.joint(one.name).qpos[0]) - kv * data.joint(one.name).qvel[0]
            data.actuator(f"walker_{actuator}").ctrl[0] = min(max(torque, -limit), limit)
        alone.step()
    assert np.array_equal(full_state(engine()), alone.state())


def test_raw_control_bypasses_the_controller_for_one_step_only(wire: Any, plain: Any) -> None:
    walker = {"walker": {"ctrl": [0.7, -0.2], "control_mode": "raw"}}
    seen = wire.ok("step", per_articulation=walker)["per_articulation"]["walker"]
    assert seen["ctrl"] == [0.7, -0.2]
    seen = wire.ok("step")["per_articulation"]["walker"]
    assert seen["ctrl"] != [0.7, -0.2]
    assert seen["ctrl"][0] == pytest.approx(40 * 0.7, abs=3.0)

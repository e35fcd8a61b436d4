"""What hello_ok says of a running scene, and that its model can be rebuilt from it."""

from typing import Any

import mujoco
import numpy as np
import pytest

from urlab.mujoco_versions import VERSION

pytestmark = pytest.mark.every_transport


def test_articulations_are_described(wire: Any) -> None:
    arm, walker = wire.hello()["articulations"]
    assert (arm["prefix"], arm["actor_id"], arm["default_control_mode"]) == ("arm", "arm_0", "raw")
    assert "controller" not in arm
    assert arm["actuator_types"] == {"lift": "motor", "bend": "position"}
    assert set(arm["original_names"]) == {"actuators", "joints", "sensors", "bodies"}
    assert walker["default_control_mode"] == "ue_controller"
    assert walker["controller"]["kind"] == "pd"
    assert walker["controller"]["params"]["kp"] == {"hip": 40.0, "knee": 25.0}
    assert walker["controller"]["schema"]["kp"] == {"type": "per_joint", "dtype": "float32", "min": 0.0}


def test_actuator_kinds_are_the_authors(wire: Any) -> None:
    (muscles,) = wire.play("muscles")["articulations"]
    assert muscles["actuator_types"] == {
        "biceps": "muscle", "lagged": "motor", "servo": "intvelocity", "plain": "motor",
    }  # fmt: skip


def test_cameras_are_described(wire: Any) -> None:
    eye = wire.hello()["articulations"][0]["camera_topics"]["eye"]
    assert {key: eye[key] for key in ("mode", "resolution", "fovy", "zmq_topic")} == {
        "mode": "real", "resolution": [64, 48], "fovy": 58.0, "zmq_topic": "arm/camera/eye",
    }  # fmt: skip
    assert wire.hello()["global_cameras"] == {}


def test_entities_tell_where_their_numbers_are(wire: Any, plain: Any) -> None:
    hello = wire.hello()
    model = plain(hello["mjb"]).model
    crate, joint = hello["entities"]["crate"], model.joint("crate_free")
    assert crate == {
        "id": model.body("crate").id, "has_free_base": True, "free_joint": "crate_free", "free_joint_id": joint.id,
        "qpos_offset": joint.qposadr[0], "qvel_offset": joint.dofadr[0],
    }  # fmt: skip
    assert hello["entities"]["goal"] == {"id": model.body("goal").id, "has_free_base": False}


def test_every_name_of_a_robot_begins_with_its_prefix(wire: Any, plain: Any) -> None:
    model = plain(wire.hello()["mjb"]).model
    joints = [model.joint(index).name for index in range(model.njnt)]
    expected = ["arm_shoulder", "arm_elbow", "walker_root", "walker_hip", "walker_knee", "walker_neck", "crate_free"]
    assert joints == expected


def test_a_session_that_wants_no_model_gets_none_by_any_handshake(wire: Any) -> None:
    whole, without = wire.hello(), wire.hello(include_model=False)
    assert "mjb" in whole
    assert "mjb" not in without
    assert without["articulations"] == whole["articulations"]
    assert "mjb" not in wire.play("arena")
    assert "mjb" in wire.hello()


def arrays_of(model: Any) -> dict[str, Any]:
    names = (name for name in dir(model) if not name.startswith("_"))
    values = {name: getattr(model, name) for name in names if not callable(getattr(model, name))}
    return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}


@pytest.mark.parametrize("level", ["arena", "muscles", "demo"])
def test_the_assets_rebuild_the_same_model(wire: Any, plain: Any, level: str) -> None:
    wire.play(level)
    wire.ok("set_sim_options", options={"timestep": 1 / 300})
    hello = wire.hello(include_assets=True)
    rebuilt = mujoco.MjModel.from_xml_string(hello["mjcf_compiled"], hello["vfs_assets"])
    shipped = plain(hello["mjb"]).model
    if VERSION < (4,):  # XML has six digits there, and bodies without mass may have another inertial frame
        assert np.allclose(fallen(rebuilt), fallen(shipped), atol=1e-4)
        return
    expected = arrays_of(shipped)
    for name, array in arrays_of(rebuilt).items():
        if not name.startswith(("names", "paths", "name_", "text_")):
            assert np.array_equal(array, expected[name]), name
    assert rebuilt.opt.timestep == 1 / 300


def fallen(model: Any) -> Any:
    """Where everything is after some steps of MuJoCo alone."""
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, 20)
    return data.qpos


def test_assets_come_only_when_asked_for(wire: Any) -> None:
    assert not {"mjcf_compiled", "vfs_assets"} & set(wire.hello())
    assert "mjcf_compiled" not in wire.play("solo")


def test_the_handshake_tells_the_state_and_the_setpoints_in_force(wire: Any) -> None:
    stepped = wire.ok("step", n_steps=5, per_articulation={"arm": {"ctrl": [0.25, -0.5]}})
    hello = wire.hello()
    assert hello["state"]["time"] == stepped["time"]
    assert hello["state"]["per_articulation"] == stepped["per_articulation"]
    assert hello["state"]["entities"] == stepped["entities"]
    (arm,) = (one for one in hello["articulations"] if one["prefix"] == "arm")
    assert arm["setpoints"] == [0.25, -0.5]


def test_a_reset_tells_the_setpoints_that_it_puts_in_force(wire: Any) -> None:
    wire.ok("step", per_articulation={"arm": {"ctrl": [0.25, -0.5]}})
    reply = wire.ok("reset")
    assert reply["setpoints"]["arm"] == wire.hello()["articulations"][0]["setpoints"]

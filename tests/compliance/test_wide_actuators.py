"""Actuators with several control signals, which MuJoCo 4 has: one setpoint per signal, by position and by name."""

from pathlib import Path

import mujoco
import numpy as np
import pytest

import urlab

WIDE = """
<mujoco model="wide">
  <option gravity="0 0 0"/>
  <worldbody>
    <body name="a"><joint name="lever"/><geom size=".1" pos=".2 0 0"/></body>
    <body name="b" pos="0 1 0"><joint name="ball" type="ball"/><geom type="box" size=".1 .2 .05"/></body>
    <body name="c" pos="0 2 0"><joint name="rail" type="slide"/><geom size=".1"/></body>
  </worldbody>
  <actuator>
    <orientation name="turn" joint="ball" input="quat" kp="1" dampratio="1"/>
    <motor name="push" joint="lever"/>
    <dcmotor name="drive" joint="rail" motorconst="1" resistance="1" input="pos vel" controller="10 0 5"/>
  </actuator>
</mujoco>"""
NAMES = ["turn", "turn[1]", "turn[2]", "turn[3]", "push", "drive", "drive[1]"]
CTRL = [0.8, 0.6, 0.0, 0.0, 0.3, 0.5, 0.1]

pytestmark = pytest.mark.skipif(not hasattr(mujoco.mjtGain, "mjGAIN_PID"), reason="MuJoCo 3 has one control each")


@pytest.fixture
def model_file(tmp_path: Path) -> Path:
    path = tmp_path / "wide.xml"
    path.write_text(WIDE)
    return path


def plain_loop(path: Path, steps: int) -> mujoco.MjData:
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    data.ctrl[:] = CTRL
    for _ in range(steps):
        mujoco.mj_step(model, data)
    return data


def test_every_control_has_a_name_and_a_place_and_drives_what_it_drives_in_mujoco(model_file: Path) -> None:
    expected = plain_loop(model_file, 50)
    with urlab.launch(model_file, observations="full") as client:
        robot = client.articulations["wide"]
        assert list(robot.actuators) == NAMES
        robot.ctrl_array[:] = CTRL
        reply = client.step(50)
        np.testing.assert_array_equal(robot.qpos_array, expected.qpos)
        block = reply["per_articulation"]["wide"]
        assert block["ctrl"] == CTRL
        force = expected.actuator_force
        assert block["actuator_force"] == [*force[:3], 0.0, force[3], force[4], 0.0]
        np.testing.assert_array_equal(client.data.ctrl, CTRL)


def test_controls_can_be_set_by_name(model_file: Path) -> None:
    expected = plain_loop(model_file, 10)
    with urlab.launch(model_file) as client:
        robot = client.articulations["wide"]
        robot.set_ctrl(dict(zip(NAMES, CTRL, strict=True)))
        client.step(10)
        np.testing.assert_array_equal(robot.qpos_array, expected.qpos)
        with pytest.raises(KeyError, match="turn"):
            robot.set_ctrl({"turn[4]": 1.0})


def test_a_puppet_has_them_in_its_own_data(model_file: Path) -> None:
    expected = plain_loop(model_file, 10)
    with urlab.launch(model_file, step_mode="puppet") as client:
        client.articulations["wide"].ctrl_array[:] = CTRL
        client.step(10)
        np.testing.assert_allclose(client.data.qpos, expected.qpos)

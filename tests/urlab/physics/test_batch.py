"""Many simulations of one model: each goes as one MjData would."""

import mujoco
import numpy as np
import pytest

from urlab.physics.batch import SimulationBatch

PENDULUM = """
<mujoco><worldbody><body><joint name="hinge" axis="0 1 0"/><geom size=".1" mass="1" pos=".3 0 0"/></body></worldbody>
  <actuator><motor joint="hinge" ctrlrange="-5 5"/></actuator><sensor><jointpos joint="hinge"/></sensor></mujoco>"""


@pytest.fixture
def model() -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(PENDULUM)


def test_control_before_each_sub_step_sees_the_state_of_then(model: mujoco.MjModel) -> None:
    batch, data = SimulationBatch(model, 3), mujoco.MjData(model)
    batch.qpos[:] = data.qpos[:] = 0.3

    def control() -> None:
        batch.ctrl[:] = -4.0 * batch.qpos

    batch.advance(7, control)
    for _ in range(7):
        data.ctrl[:] = -4.0 * data.qpos
        mujoco.mj_step(model, data)
    assert batch.qpos.tolist() == [data.qpos.tolist()] * 3
    assert batch.sensordata.tolist() == [data.sensordata.tolist()] * 3


def test_an_evaluation_brings_the_sensors_and_leaves_the_states(model: mujoco.MjModel) -> None:
    batch = SimulationBatch(model, 3)
    batch.advance(2)
    before = batch.rows.copy()
    before[1, 1] = batch.qpos[1, 0] = 1.5
    batch.evaluate(np.array([1]))
    assert np.array_equal(batch.rows, before)
    assert batch.sensordata[1, 0] == 1.5


def test_a_batch_of_none_is_refused(model: mujoco.MjModel) -> None:
    with pytest.raises(ValueError, match="a batch has at least one simulation, not 0"):
        SimulationBatch(model, 0)

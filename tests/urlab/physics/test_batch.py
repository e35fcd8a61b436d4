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


@pytest.mark.parametrize("steps_before", [0, 3])
@pytest.mark.parametrize("has_control", [False, True])
def test_a_simulation_that_mujoco_resets_keeps_its_controls_as_one_alone_does(
    model: mujoco.MjModel, has_control: bool, steps_before: int
) -> None:
    batch, data = SimulationBatch(model, 3), [mujoco.MjData(model) for _ in range(3)]
    control = (lambda: None) if has_control else None
    for commands in ([1.0, 2.0, 3.0], [-1.0, 0.5, 2.0]):
        batch.ctrl[:, 0] = commands
        for steps in (steps_before, 5):
            if not steps:
                continue
            batch.ctrl[:, 0] = commands
            batch.advance(steps, control)
            for one, command in zip(data, commands, strict=True):
                for _ in range(steps):
                    one.ctrl[0] = command
                    mujoco.mj_step(model, one)
            assert batch.time.tolist() == [one.time for one in data]
            assert batch.qvel.tolist() == [one.qvel.tolist() for one in data]
            assert batch.sensordata.tolist() == [one.sensordata.tolist() for one in data]
            batch.qpos[1] = data[1].qpos[:] = np.nan


def test_a_batch_of_none_is_refused(model: mujoco.MjModel) -> None:
    with pytest.raises(ValueError, match="a batch has at least one simulation, not 0"):
        SimulationBatch(model, 0)

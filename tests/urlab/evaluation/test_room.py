import mujoco
import pytest

from urlab.evaluation.embodiments import TABLE_TOP_Z_M
from urlab.evaluation.room import room_mjcf, table_mjcf
from urlab.evaluation.tasks.objects import TABLE_POSE_W, TABLE_SIZE_M


def test_the_table_is_where_goals_and_layouts_expect_it():
    model = mujoco.MjModel.from_xml_string(table_mjcf())
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    top = data.geom("top").xpos
    assert top == pytest.approx(TABLE_POSE_W.pos)
    assert 2 * model.geom("top").size == pytest.approx(TABLE_SIZE_M)
    assert top[2] + model.geom("top").size[2] == pytest.approx(TABLE_TOP_Z_M)
    assert model.njnt == 0


def test_legs_and_walls_are_for_the_eye_only():
    for text, solid in ((table_mjcf(), {"top"}), (room_mjcf(), {"plane"})):
        model = mujoco.MjModel.from_xml_string(text)
        colliding = {model.geom(index).name for index in range(model.ngeom) if model.geom_contype[index]}
        assert colliding == solid


def test_the_legs_stand_on_the_floor_and_carry_the_top():
    model = mujoco.MjModel.from_xml_string(table_mjcf())
    for number in range(1, 5):
        leg = model.geom(f"leg_{number}")
        assert leg.pos[2] - leg.size[2] == pytest.approx(0.0)
        assert leg.pos[2] + leg.size[2] == pytest.approx(TABLE_TOP_Z_M - TABLE_SIZE_M[2])

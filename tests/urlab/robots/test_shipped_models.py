"""The front door to the shipped models, and what every model and prop promises."""

import mujoco
import numpy as np
import pytest

from urlab.robots import level_names, level_path, model_names, model_path

PROPS = ("box", "floor", "pallet", "table", "target", "terrain")
ROBOTS = ("aloha", "franka_robotiq", "panda", "quadruped")


def load(name):
    return mujoco.MjModel.from_xml_path(str(model_path(name)))


def test_the_shipped_names_are_known():
    assert model_names() == tuple(sorted(PROPS + ROBOTS))
    assert level_names() == ("demo",)
    assert level_path("demo").is_file()


@pytest.mark.parametrize("name", ["nonsense", "", "../panda", "panda.xml"])
def test_an_unknown_name_is_refused_with_what_exists(name):
    with pytest.raises(ValueError, match="aloha, box, floor, franka_robotiq, pallet, panda"):
        model_path(name)
    with pytest.raises(ValueError, match="demo"):
        level_path(name)


@pytest.mark.parametrize("name", PROPS + ROBOTS)
def test_every_model_loads_under_its_own_name_and_runs(name):
    spec = mujoco.MjSpec.from_file(str(model_path(name)))
    assert spec.modelname == name
    model = spec.compile()
    data = mujoco.MjData(model)
    for _ in range(50):
        mujoco.mj_step(model, data)
    assert np.isfinite(data.qpos).all()
    assert not data.warning.number.any()


@pytest.mark.parametrize("name", PROPS)
def test_a_prop_is_one_body_named_after_its_file(name):
    model = load(name)
    assert model.nbody == 2
    assert model.body(1).name == name
    assert 0 not in model.geom_bodyid
    assert 0 not in model.site_bodyid
    assert 0 not in model.cam_bodyid
    assert 0 not in model.light_bodyid


@pytest.mark.parametrize("name", ROBOTS)
def test_a_robot_brings_no_floor_and_no_light(name):
    model = load(name)
    assert model.nlight == 0
    assert mujoco.mjtGeom.mjGEOM_PLANE not in model.geom_type
    assert set(np.flatnonzero(model.body_parentid == 0)) == {0, 1}
    assert 0 not in model.geom_bodyid
    assert 0 not in model.cam_bodyid


@pytest.mark.parametrize("name", PROPS + ROBOTS)
def test_every_geom_and_joint_has_a_name(name):
    model = load(name)
    assert all(model.geom(i).name for i in range(model.ngeom))
    assert all(model.joint(i).name for i in range(model.njnt))


def test_the_props_have_their_stated_size_and_mass():
    pallet = load("pallet")
    corners = np.concatenate([pallet.geom_pos + pallet.geom_size, pallet.geom_pos - pallet.geom_size])
    np.testing.assert_allclose(np.ptp(corners, axis=0), [1.2, 0.8, 0.144], atol=1e-9)
    assert pallet.body("pallet").mass[0] == pytest.approx(22.0, abs=3.0)
    box = load("box")
    np.testing.assert_allclose(box.geom("cube").size, 0.025)
    assert box.body("box").mass[0] == pytest.approx(0.1)
    table = load("table")
    assert table.geom("top").pos[2] + table.geom("top").size[2] == pytest.approx(0.4)


def test_movable_props_float_freely_and_fixed_ones_have_no_joint():
    for name in ("box", "pallet"):
        assert load(name).joint("free").type[0] == mujoco.mjtJoint.mjJNT_FREE
    for name in ("floor", "table", "target", "terrain"):
        assert load(name).njnt == 0


def test_the_target_is_a_marker_nothing_can_touch():
    model = load("target")
    assert model.nmocap == 1
    assert not model.geom_contype.any()
    assert not model.geom_conaffinity.any()


def test_the_terrain_is_gentle_and_flat_at_its_edges():
    model = load("terrain")
    rows, columns = int(model.hfield_nrow[0]), int(model.hfield_ncol[0])
    heights = model.hfield_data.reshape(rows, columns)
    half_x, half_y, top, _ = model.hfield_size[0]
    for edge in (heights[0], heights[-1], heights[:, 0], heights[:, -1]):
        np.testing.assert_allclose(edge, 0.0)
    assert heights.max() == pytest.approx(1.0)
    assert top <= 0.15
    slope_y, slope_x = np.gradient(heights * top, 2 * half_y / (rows - 1), 2 * half_x / (columns - 1))
    assert np.degrees(np.arctan(np.hypot(slope_x, slope_y))).max() < 16.0

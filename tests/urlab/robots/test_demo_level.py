"""The shipped demo level, composed the way the server composes a level."""

import mujoco
import numpy as np
import pytest

import urlab
from urlab.robots import model_names, model_path

HOME = [0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785, 0.04]


@pytest.fixture
def started(demo_model, drive_legs):
    data = mujoco.MjData(demo_model)
    arm = [*(f"panda_joint{i}" for i in range(1, 8)), "panda_gripper"]
    for name, value in zip(arm, HOME, strict=True):
        data.actuator(name).ctrl = value
    mujoco.mj_forward(demo_model, data)
    return data, drive_legs(demo_model, "quadruped_")


def test_the_level_names_known_models_and_unique_actors(demo_level):
    actors = demo_level["actors"]
    assert demo_level["version"] == 1
    assert demo_level["name"] == "demo"
    assert {actor["blueprint"] for actor in actors} <= set(model_names())
    assert len({actor["name"] for actor in actors}) == len(actors)
    assert len({actor["actor_id"] for actor in actors}) == len(actors)
    ids = {actor["name"]: actor["actor_id"] for actor in actors}
    assert ids["panda"] == "arm"
    assert ids["quadruped"] == "dog"
    assert ids["target"] == "target"
    assert [ids[name] for name in ("box", "box-2", "box-3")] == ["box_0", "box_1", "box_2"]


def test_composing_keeps_the_models_joint_ranges_and_home_poses(demo_model):
    for blueprint in ("panda", "quadruped"):
        single = mujoco.MjModel.from_xml_path(str(model_path(blueprint)))
        for i in range(single.njnt):
            name = single.joint(i).name
            np.testing.assert_allclose(demo_model.joint(f"{blueprint}_{name}").range, single.joint(i).range)
            if single.jnt_type[i] != mujoco.mjtJoint.mjJNT_FREE:
                composed = demo_model.joint(f"{blueprint}_{name}").qpos0
                np.testing.assert_allclose(composed, single.joint(i).qpos0)
    assert demo_model.opt.timestep == pytest.approx(0.002)


def test_nothing_interpenetrates_at_the_start(demo_model, started):
    data, _ = started
    deepest = min((data.contact[i].dist for i in range(data.ncon)), default=0.0)
    assert deepest > -0.002


def test_everything_stays_where_it_was_put_for_two_seconds(demo_model, started):
    data, legs = started
    start = data.qpos.copy()
    places = {
        name: data.body(name).xpos.copy()
        for name in ("box_box", "box-2_box", "box-3_box", "pallet_pallet", "quadruped_trunk")
    }
    for _ in range(1000):
        legs.apply(data)
        mujoco.mj_step(demo_model, data)
    assert np.isfinite(data.qpos).all()
    assert not data.warning.number.any()
    for name, place in places.items():
        allowed = 0.02 if name == "quadruped_trunk" else 0.01
        assert np.linalg.norm(data.body(name).xpos - place) < allowed, name
    arm = [demo_model.joint(f"panda_joint{i}").qposadr[0] for i in range(1, 8)]
    np.testing.assert_allclose(data.qpos[arm], start[arm], atol=0.02)
    upward = data.body("quadruped_trunk").xmat[8]
    assert upward > 0.995
    assert np.abs(data.qvel).max() < 0.05


def test_the_arm_can_reach_every_box(demo_model, started):
    data, _ = started
    shoulder = data.body("panda_link2").xpos
    for name in ("box_box", "box-2_box", "box-3_box"):
        assert np.linalg.norm(data.body(name).xpos - shoulder) < 0.75


def test_a_step_has_little_to_solve(demo_model, started):
    """Contacts, constraints and the solver's iterations are what a step costs."""
    data, legs = started
    costs = []
    for _ in range(500):
        legs.apply(data)
        mujoco.mj_step(demo_model, data)
        costs.append((data.ncon, data.nefc, int(data.solver_niter[: data.nisland or 1].max())))
    assert (np.max(costs, axis=0) < (60, 200, 10)).all()


def test_home_is_a_keyframe_of_the_whole_demo_level(tmp_path):
    with urlab.launch(project=tmp_path) as client:
        start = {name: robot.qpos_array for name, robot in client.articulations.items()}
        client.step(50)
        client.reset(keyframe_name="home")
        for name, robot in client.articulations.items():
            np.testing.assert_array_equal(robot.qpos_array, start[name])

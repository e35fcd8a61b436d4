"""Every shape: what it is made of agrees with MuJoCo, and it stays where it is put."""

import math

import mujoco
import numpy as np
import pytest

from urlab.evaluation.goals.solids import PlacedObjects
from urlab.evaluation.tasks.objects import COLORS, ObjectSpec, PlacementRange, object_mjcf
from urlab.evaluation.tasks.shapes import (
    SHAPES,
    Bin,
    Bowl,
    BoxShape,
    CapsuleShape,
    Cup,
    CylinderShape,
    DoorCabinet,
    DrawerCabinet,
    HandledBlock,
    Plate,
    SphereShape,
    Tray,
)
from urlab.geometry import Pose, wxyz_from_axis_angle

EXAMPLES = {
    "box": BoxShape((0.04, 0.05, 0.06)),
    "cylinder": CylinderShape(0.03, 0.08),
    "sphere": SphereShape(0.03),
    "capsule": CapsuleShape(0.02, 0.12),
    "plate": Plate(0.08),
    "handled_block": HandledBlock((0.06, 0.1, 0.05)),
    "bin": Bin((0.2, 0.15, 0.06)),
    "tray": Tray((0.16, 0.24, 0.04)),
    "bowl": Bowl(0.09, 0.06),
    "cup": Cup(0.03, 0.07),
    "drawer_cabinet": DrawerCabinet((0.2, 0.2, 0.1), 0.15),
    "door_cabinet": DoorCabinet((0.14, 0.18, 0.14)),
}
JOINTS = {"drawer_cabinet": ("drawer", 0.07), "door_cabinet": ("door", 1.1)}


def spec_of(name: str, *, fixed: bool = False) -> ObjectSpec:
    return ObjectSpec("thing", EXAMPLES[name], PlacementRange((0.0, 0.0), (0.0, 0.0)), "red", mass_kg=0.12, fixed=fixed)


def on_a_table(spec: ObjectSpec) -> tuple[mujoco.MjModel, mujoco.MjData]:
    text = object_mjcf(spec).replace(
        "<worldbody>",
        """<option timestep="0.0020833333" integrator="implicitfast" cone="elliptic" impratio="10"/>
        <worldbody><geom type="box" size="0.6 0.8 0.025" pos="0 0 0.975" friction="0.7 0.01 0.0005" condim="4"/>""",
    )
    model = mujoco.MjModel.from_xml_string(text)
    return model, mujoco.MjData(model)


def geom_surface(model: mujoco.MjModel, data: mujoco.MjData, geom: int) -> np.ndarray:
    """The corners of a box, or points around a round geom, by MuJoCo's own frames."""
    size, kind = model.geom_size[geom], int(model.geom_type[geom])
    if kind == int(mujoco.mjtGeom.mjGEOM_BOX):
        local = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * size
    else:
        angles = np.linspace(0, 2 * math.pi, 721)
        ring = np.column_stack((np.cos(angles), np.sin(angles), 0 * angles)) * size[0]
        tall = 0.0 if kind == int(mujoco.mjtGeom.mjGEOM_SPHERE) else size[1]
        local = np.concatenate([ring + np.array([0, 0, z]) for z in (-tall, tall)])
        if kind != int(mujoco.mjtGeom.mjGEOM_CYLINDER):
            local = np.concatenate([local, ring[:, [2, 0, 1]], [[0, 0, tall + size[0]], [0, 0, -tall - size[0]]]])
    return local @ data.geom_xmat[geom].reshape(3, 3).T + data.geom_xpos[geom]


def test_there_is_an_example_of_every_shape() -> None:
    assert EXAMPLES.keys() == SHAPES.keys()


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_model_has_the_mass_the_colour_and_the_bounds_of_the_object(name: str) -> None:
    spec = spec_of(name)
    model, data = on_a_table(spec)
    mujoco.mj_forward(model, data)
    assert model.body_subtreemass[model.body("thing").id] == pytest.approx(0.12, rel=1e-6)
    assert model.geom_rgba[1][:3] / model.geom_rgba[1][0] == pytest.approx(np.array(COLORS["red"]) / COLORS["red"][0])
    points = np.concatenate([geom_surface(model, data, geom) for geom in range(1, model.ngeom)])
    assert points.min(axis=0) == pytest.approx(spec.bounds[0], abs=2e-6)
    assert points.max(axis=0) == pytest.approx(spec.bounds[1], abs=2e-6)


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("fixed", [False, True])
def test_an_object_on_the_table_does_not_creep_in_two_seconds(name: str, fixed: bool) -> None:
    spec = spec_of(name, fixed=fixed)
    model, data = on_a_table(spec)
    pose = Pose((0.1, -0.05, 1.0 - spec.bounds[0][2]), wxyz_from_axis_angle((0.0, 0.0, 1.0), 0.3))
    if fixed:
        data.mocap_pos[0], data.mocap_quat[0] = pose.pos, pose.quat_wxyz
    else:
        data.qpos[:7] = (*pose.pos, *pose.quat_wxyz)
    for _ in range(960):
        mujoco.mj_step(model, data)
    body = data.body("thing")
    assert np.linalg.norm(body.xpos - pose.pos) < 1e-3
    assert abs(float(np.dot(body.xquat, pose.quat_wxyz))) > math.cos(math.radians(0.5) / 2)
    joints = data.qpos if fixed else data.qpos[7:]
    assert np.abs(joints).max(initial=0.0) < 1e-3


@pytest.mark.parametrize("name", JOINTS)
def test_links_move_as_in_mujoco(name: str) -> None:
    spec, (joint, value) = spec_of(name, fixed=True), JOINTS[name]
    model, data = on_a_table(spec)
    pose = Pose((0.2, 0.1, 1.05), wxyz_from_axis_angle((0.0, 0.0, 1.0), -0.4))
    data.mocap_pos[0], data.mocap_quat[0] = pose.pos, pose.quat_wxyz
    data.joint(joint).qpos[0] = value
    mujoco.mj_forward(model, data)
    ours = pose.apply(spec.link(joint).pose({joint: value}))
    assert ours.pos == pytest.approx(data.body(joint).xpos, abs=1e-9)
    assert ours.quat_wxyz == pytest.approx(data.body(joint).xquat, abs=1e-9)
    placed = PlacedObjects({"thing": spec}, {"thing": pose}, {"thing": {joint: value}})
    assert placed.pose(f"thing/{joint}") == ours


@pytest.mark.parametrize("name", JOINTS)
def test_a_joint_opens_towards_the_robot_and_stays_where_it_is_left(name: str) -> None:
    spec, (joint, value) = spec_of(name, fixed=True), JOINTS[name]
    model, data = on_a_table(spec)
    closed, opened = (spec.link(joint).parts[-1].moved(spec.link(joint).pose({joint: at})) for at in (0.0, value))
    assert opened.pos[0] < closed.pos[0] - 0.02, "the handle comes towards -X"
    data.mocap_pos[0] = (0.2, 0.0, 1.0 - spec.bounds[0][2])
    data.joint(joint).qpos[0] = value
    for _ in range(960):
        mujoco.mj_step(model, data)
    assert float(data.joint(joint).qpos[0]) == pytest.approx(value, abs=1e-3)


@pytest.mark.parametrize("name", ["bin", "tray", "bowl", "cup", "drawer_cabinet", "plate"])
def test_a_ball_let_go_over_the_support_comes_to_rest_on_it(name: str) -> None:
    spec = spec_of(name, fixed=True)
    link = spec.links[-1]
    joints = {joint: limits.range[1] for joint, limits in spec.joints.items()}
    at_x = -0.035 if spec.joints else 0.0
    world = link.pose(joints).apply(Pose((at_x, 0.0, link.support_z + 0.02)))
    text = object_mjcf(spec).replace(
        "</worldbody>",
        f'<body name="ball" pos="{world.pos[0]} {world.pos[1]} {world.pos[2]}"><freejoint/>'
        '<geom type="sphere" size="0.008" mass="0.01" condim="6" friction="1 0.01 0.001"/></body></worldbody>',
    )
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    for joint, value in joints.items():
        data.joint(joint).qpos[0] = value
    for _ in range(500):
        mujoco.mj_step(model, data)
    assert float(data.body("ball").xpos[2]) == pytest.approx(link.support_z + 0.008, abs=1e-3)


@pytest.mark.parametrize(
    ("shape", "reason"),
    [
        (CapsuleShape(0.03, 0.05), "length must be greater than twice the radius"),
        (HandledBlock((0.06, 0.05, 0.05)), "the handle must fit"),
        (Bin((0.2, 0.2, 0.01)), "wall is too thick"),
        (Tray((0.2, 0.2, 0.015)), "handle_thickness must be"),
        (Tray((0.2, 0.2, 0.03), wall=0.02), "wall is too thick"),
        (Bowl(0.08, 0.01), "wall is too thick"),
        (Cup(0.01, 0.08), "wall is too thick"),
        (Bowl(0.05, 0.06, lean_deg=40.0), "leave a floor"),
        (DrawerCabinet((0.2, 0.2, 0.1), 0.19), "travel must be"),
        (DoorCabinet((0.14, 0.18, 0.08)), "handle_length must be"),
    ],
)
def test_measures_that_do_not_fit_are_told(shape, reason: str) -> None:
    assert reason in (shape.problem() or "")


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_fit(name: str) -> None:
    assert EXAMPLES[name].problem() is None

"""Rows against MuJoCo's own arrays, bit for bit as float32."""

import struct

import mujoco
import numpy as np
import pytest

from urlab.manager import Manager, View
from urlab.manager.stream_source import StreamSource
from urlab_wire.enums import RowLayout
from urlab_wire.ops.stepping import StepRequest
from urlab_wire.rows import pack_row, sensor_row, unpack_twist

LAYOUTS = list(RowLayout)
FREE = int(mujoco.mjtJoint.mjJNT_FREE)


def everything(topic: bytes) -> bool:
    return True


def rows_of(manager: Manager, layout: RowLayout, wanted=everything) -> dict[str, bytes]:
    take = StreamSource(manager, layout).select_rows(wanted)
    with manager.engine.locked():
        messages = [] if take is None else take()
    rows = {topic.decode(): payload for topic, payload in messages}
    assert len(rows) == len(messages)
    return rows


def as_float32(*numbers: float) -> tuple[float, ...]:
    return tuple(np.array(numbers, dtype=np.float64).astype(np.float32).tolist())


@pytest.fixture
def moving(demo_manager: Manager) -> Manager:
    """The demo, some steps after its start, with every joint in motion."""
    data = demo_manager.engine.data
    data.qvel[:] = np.linspace(-1, 1, len(data.qvel))
    demo_manager.step(StepRequest(n_steps=7), View())
    return demo_manager


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_joint_has_its_row(moving: Manager, layout: RowLayout) -> None:
    rows, data = rows_of(moving, layout), moving.engine.data
    joints = [(robot.prefix, joint) for robot in moving.scene.articulations for joint in robot.joints]
    assert {prefix for prefix, _ in joints} == {"panda", "quadruped"}
    for prefix, joint in joints:
        if joint.kind == FREE:
            assert f"{prefix}/joint/{joint.short}" not in rows
            continue
        q, v = moving.engine.model.jnt_qposadr[joint.id], moving.engine.model.jnt_dofadr[joint.id]
        row = struct.unpack("<ifff", rows[f"{prefix}/joint/{joint.short}"])
        assert row[0] == mujoco.mj_name2id(moving.engine.model, mujoco.mjtObj.mjOBJ_JOINT, f"{prefix}_{joint.short}")
        assert row[1:] == as_float32(data.qpos[q], data.qvel[v], data.qacc[v])
    assert np.any(data.qacc)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_sensor_has_its_row(moving: Manager, layout: RowLayout) -> None:
    rows, model, data = rows_of(moving, layout), moving.engine.model, moving.engine.data
    sensors = [(robot.prefix, sensor) for robot in moving.scene.articulations for sensor in robot.sensors]
    assert len(sensors) == model.nsensor > 0
    for prefix, sensor in sensors:
        values = data.sensor(f"{prefix}_{sensor.short}").data
        assert rows[f"{prefix}/sensor/{sensor.short}"] == pack_row(sensor_row(sensor.id, values, layout))


def test_the_base_of_a_walking_robot_in_the_first_layout(moving: Manager) -> None:
    payload = rows_of(moving, RowLayout.V1)["quadruped/base_state/root"]
    assert struct.unpack("<7d", payload) == tuple(moving.engine.data.joint("quadruped_root").qpos)


def test_the_base_of_a_walking_robot_in_the_second_layout(moving: Manager) -> None:
    payload = rows_of(moving, RowLayout.V2)["quadruped/base_state/root"]
    base = moving.engine.data.joint("quadruped_root")
    x, y, z, qw, qx, qy, qz = base.qpos
    assert np.frombuffer(payload, "<f4").tolist() == list(as_float32(x, y, z, qx, qy, qz, qw, *base.qvel))


def test_entities_have_rows_in_the_second_layout_only(moving: Manager) -> None:
    data, rows = moving.engine.data, rows_of(moving, RowLayout.V2)
    free = [one for one in moving.scene.entities if one.free_joint is not None]
    assert free
    for entity in moving.scene.entities:
        body = data.body(entity.name)
        assert rows[f"scene/{entity.name}/xpos"] == body.xpos.tobytes()
        assert rows[f"scene/{entity.name}/xquat"] == body.xquat.tobytes()
        assert (f"scene/{entity.name}/qpos" in rows) is (entity in free)
    joint = data.joint(free[0].free_joint.name)
    assert rows[f"scene/{free[0].name}/qpos"] == joint.qpos.tobytes()
    assert rows[f"scene/{free[0].name}/qvel"] == joint.qvel.tobytes()
    assert not any(topic.startswith("scene/") for topic in rows_of(moving, RowLayout.V1))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_twist_is_always_told_and_actions_only_when_there_are_any(moving: Manager, layout: RowLayout) -> None:
    twist = moving.articulation("quadruped").twist
    before = rows_of(moving, layout)
    assert unpack_twist(before["quadruped/twist"]) == (0, 0, 0)
    assert "quadruped/actions" not in before
    twist.set([0.5, -0.25], [0, 0, 1e300], 513)
    after = rows_of(moving, layout)
    assert unpack_twist(after["quadruped/twist"]) == (0.5, -0.25, np.inf)
    assert struct.unpack("<i", after["quadruped/actions"]) == (513,)
    assert "panda/actions" not in after


@pytest.mark.parametrize("prefix", ["panda/", "panda/joint/joint3", "quadruped/sensor/", "quadruped/tw", "scene/", ""])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_only_what_is_wanted_is_filled(moving: Manager, layout: RowLayout, prefix: str) -> None:
    every = rows_of(moving, layout)
    some = rows_of(moving, layout, lambda topic: topic.startswith(prefix.encode()))
    assert some == {topic: payload for topic, payload in every.items() if topic.startswith(prefix)}


def test_nothing_wanted_is_no_work(demo_manager: Manager) -> None:
    assert StreamSource(demo_manager).select_rows(lambda topic: topic.startswith(b"robot/")) is None


def test_numbers_that_float32_cannot_hold_travel_as_infinity(moving: Manager) -> None:
    data, joint = moving.engine.data, moving.scene.articulation("panda").joints[0]
    data.qpos[joint.qpos.start], data.qvel[joint.qvel.start], data.qacc[joint.qvel.start] = 1e300, np.nan, -np.inf
    row = struct.unpack("<ifff", rows_of(moving, RowLayout.V1)[f"panda/joint/{joint.short}"])
    assert np.array_equal(row[1:], [np.inf, np.nan, -np.inf], equal_nan=True)


def test_a_selection_follows_the_simulation(demo_manager: Manager) -> None:
    take = StreamSource(demo_manager).select_rows(lambda topic: topic == b"quadruped/base_state/root")
    heights = []
    for _ in range(3):
        demo_manager.step(StepRequest(), View())
        with demo_manager.engine.locked():
            heights.append(struct.unpack("<7d", take()[0][1])[2])
            assert heights[-1] == demo_manager.engine.data.joint("quadruped_root").qpos[2]
    assert len(set(heights)) == 3

"""Late or at once, the local data is that of a plain loop which writes every reply; reading finds it current."""

import copy
import random
import threading
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

import urlab
from urlab_client import URLabClient

STATISTICS = {"maxuse_arena", "maxuse_con", "maxuse_efc", "maxuse_stack", "solver_niter", "solver_nnz"}
ONLY_SPARSE = {"efc_J_rownnz", "efc_J_rowadr", "efc_J_rowsuper", "efc_J_colind"}
"""Not filled in for models as small as these: MuJoCo keeps their Jacobian dense."""

LEVELS = (None, "minimal", "standard", "full")


class PlainLoop:
    """What a client should show: writes each reply where the model's names say, then evaluates."""

    def __init__(self, client: URLabClient) -> None:
        self.client = client
        self.model = client.model
        self.data = mujoco.MjData(self.model)
        mujoco.mj_forward(self.model, self.data)

    def reset(self, reply: dict[str, Any]) -> None:
        mujoco.mj_resetData(self.model, self.data)
        self.absorb(reply)

    def absorb(self, reply: dict[str, Any]) -> None:
        self.data.time = reply.get("time", self.data.time)
        for prefix, block in reply.get("per_articulation", {}).items():
            self._write_robot(prefix, block)
        entities = reply.get("entities", {})
        for name, block in entities.items():
            self._write_state(name, block)
        mujoco.mj_forward(self.model, self.data)
        for name, block in entities.items():
            if self.client.entities[name].qpos_offset is None:
                for key in block:
                    getattr(self.data.body(name), key)[:] = block[key]

    def _write_robot(self, prefix: str, block: dict[str, Any]) -> None:
        robot = self.client.articulations[prefix]
        for joint in robot.joints.values():
            for key, dim in (("qpos", joint.qpos_dim), ("qvel", joint.qvel_dim)):
                start, local = getattr(joint, f"{key}_offset"), getattr(joint, f"{key}_local_offset")
                getattr(self.data, key)[start : start + dim] = block[key][local : local + dim]
        for local, actuator in enumerate(robot.actuators.values()):
            if len(block.get("ctrl") or ()) == len(robot.actuators):
                self.data.ctrl[actuator.id] = block["ctrl"][local]
            if len(block.get("act") or ()) == len(robot.actuators) and self.model.actuator_actnum[actuator.id]:
                self.data.act[self.model.actuator_actadr[actuator.id]] = block["act"][local]

    def _write_state(self, name: str, block: dict[str, Any]) -> None:
        mocap = int(self.model.body(name).mocapid[0])
        if self.client.entities[name].qpos_offset is not None:
            joint = self.data.joint(self.client.entities[name].free_joint)
            joint.qpos[:], joint.qvel[:] = block.get("qpos", joint.qpos), block.get("qvel", joint.qvel)
        elif mocap >= 0:
            self.data.mocap_pos[mocap] = block.get("xpos", self.data.mocap_pos[mocap])
            self.data.mocap_quat[mocap] = block.get("xquat", self.data.mocap_quat[mocap])

    def set_qpos(self, start: int, qpos: list[float]) -> None:
        self.data.qpos[start : start + len(qpos)] = qpos
        mujoco.mj_forward(self.model, self.data)

    def set_mocap(self, pos: list[float]) -> None:
        self.data.mocap_pos[0] = pos
        mujoco.mj_forward(self.model, self.data)


def assert_same(data: Any, expected: Any) -> None:
    """Every number of both, contacts and constraints included, bit for bit."""
    names = [name for name in dir(expected) if not name.startswith("_") and name not in STATISTICS | ONLY_SPARSE]
    arrays = [name for name in names if isinstance(getattr(expected, name), np.ndarray | int | float)]
    assert len(arrays) > 100
    for name in arrays:
        assert np.array_equal(getattr(data, name), getattr(expected, name), equal_nan=True), name
    for name in ("dist", "pos", "frame", "geom"):
        assert np.array_equal(getattr(data.contact, name), getattr(expected.contact, name)), f"contact.{name}"


class Walk:
    """A random sequence of calls on a real simulation, with a plain loop beside it."""

    def __init__(self, client: URLabClient, seed: int) -> None:
        self.client = client
        self.plain = PlainLoop(client)
        self.random = random.Random(seed)
        self.plain.reset(client.reset())

    def go(self, n_calls: int) -> None:
        calls = [self.step] * 12 + [self.look] * 4 + [self.reset, self.forward, self.set_qpos, self.set_options]
        calls += [self.set_mocap] * ("target" in self.client.entities)
        for _ in range(n_calls):
            self.random.choice(calls)()

    def step(self) -> None:
        for robot in self.client.articulations.values():
            robot.ctrl_array[:] = [self.random.uniform(-1, 1) for _ in robot.actuators]
        reply = self.client.step(self.random.choice((1, 2, 10)), observations=self.random.choice(LEVELS))
        self.plain.absorb(reply)

    def reset(self) -> None:
        keyframe = next(iter(self.client.articulations)) + "_home"
        self.plain.reset(self.client.reset(keyframe_name=self.random.choice((None, keyframe))))

    def forward(self) -> None:
        self.plain.absorb(self.client.runtime.forward())

    def set_qpos(self) -> None:
        robot = self.random.choice(list(self.client.articulations.values()))
        qpos = (self.plain.data.qpos[robot._qpos_index] + self.random.uniform(-0.1, 0.1)).tolist()
        self.client.runtime.set_qpos(robot, qpos)
        self.plain.set_qpos(next(iter(robot.joints.values())).qpos_offset, qpos)

    def set_mocap(self) -> None:
        pos = [self.random.uniform(-1, 1) for _ in range(3)]
        self.client.runtime.set_mocap_pose("target", pos=pos)
        self.plain.set_mocap(pos)

    def set_options(self) -> None:
        self.client.runtime.set_sim_options(gravity=[0.0, 0.0, self.random.uniform(-10, -9)])

    def look(self) -> None:
        data, handle = self.plain.data, self.random.choice(list(self.client.entities.values()))
        if self.random.random() < 0.5:
            assert np.array_equal(handle.root_pos_w, data.xpos[handle.body_id])
        for robot in self.client.articulations.values():
            assert np.array_equal(robot.qpos_array, data.qpos[robot._qpos_index])
            assert np.array_equal(robot.qvel_array, data.qvel[robot._qvel_index])


@pytest.mark.parametrize("level", ["panda", "quadruped", "demo"])
@pytest.mark.parametrize("seed", range(4))
def test_late_data_is_bit_for_bit_that_of_a_loop_which_is_never_late(level: str, seed: int):
    with urlab.launch(level) as client:
        walk = Walk(client, seed)
        for _ in range(4):
            walk.go(25)
            assert_same(client._evaluated_data(), walk.plain.data)
        assert not client._watched
        kept = client.data
        for _ in range(10):
            walk.go(2)
            assert_same(kept, walk.plain.data)


def maimed(reply: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """The reply with other numbers, and without some of its parts."""
    maimed = copy.deepcopy(reply)
    maimed["time"] = chance.random()
    for block in (*maimed["per_articulation"].values(), *maimed["entities"].values()):
        for key, values in block.items():
            if key in ("qpos", "qvel", "ctrl", "act", "xpos", "xquat"):
                block[key] = [chance.choice((chance.uniform(-1, 1), -0.0)) for _ in values]
    for block in maimed["per_articulation"].values():
        for key in ("ctrl", "act"):
            if chance.random() < 0.5:
                block[key] = chance.choice(([], block[key][1:], block[key] + [1.0]))
            elif chance.random() < 0.5:
                del block[key]
    for block in maimed["entities"].values():
        for key in [key for key in block if chance.random() < 0.1]:
            del block[key]
    for part in ("per_articulation", "entities"):
        for name in [name for name in maimed[part] if chance.random() < 0.1]:
            del maimed[part][name]
    return {key: value for key, value in maimed.items() if key == "op" or chance.random() < 0.8}


@pytest.mark.parametrize("seed", range(20))
def test_what_replies_leave_out_stays_as_it_was_told(client: URLabClient, server: Any, state_reply: Any, seed: int):
    chance, plain = random.Random(seed), PlainLoop(client)
    for _ in range(40):
        reply = state_reply if chance.random() < 0.3 else maimed(state_reply, chance)
        server.replies["step"] = reply
        client.step()
        plain.absorb(reply)
        if chance.random() < 0.2:
            assert_same(client._evaluated_data(), plain.data)
    assert_same(client.data, plain.data)


def test_an_entity_inside_a_robot_is_where_the_last_reply_says(
    client: URLabClient, server: Any, handshake: dict[str, Any], state_reply: dict[str, Any]
):
    trunk = {"has_free_base": True, "free_joint": "dog_root", "qpos_offset": 2, "qvel_offset": 2}
    handshake["entities"] = {"dog_trunk": {"id": client.model.body("dog_trunk").id, **trunk}}
    client.discover()
    dog = state_reply["per_articulation"]["dog"]
    state_reply["entities"] = {"dog_trunk": {"qpos": dog["qpos"][:7], "qvel": dog["qvel"][:6]}}
    server.replies["step"] = state_reply
    client.step()
    server.replies["step"] = {"per_articulation": {"dog": {**dog, "qpos": [9.0, *dog["qpos"][1:]]}}}
    client.step()
    assert client.articulations["dog"].qpos_array[0] == client.entities["dog_trunk"].root_pos_w[0] == 9.0


def test_a_reply_with_too_few_numbers_fails_the_step(client: URLabClient, server: Any, state_reply: dict[str, Any]):
    state_reply["per_articulation"]["arm"]["qpos"] = [0.1]
    server.replies["step"] = state_reply
    with pytest.raises(ValueError, match="1 qpos of 'arm', whose joints have 2"):
        client.step()
    state_reply["per_articulation"]["arm"]["qpos"] = [0.1, 0.2, 0.3]
    state_reply["entities"]["box"]["qpos"] = [0.1]
    with pytest.raises(ValueError, match="numbers in entities"):
        client.step()


def test_numbers_that_are_not_finite_are_shown_as_they_come(client: URLabClient, server: Any, state_reply: Any):
    state_reply["per_articulation"]["arm"]["qvel"] = [float("nan"), float("inf")]
    server.replies["step"] = state_reply
    client.step()
    assert np.array_equal(client.articulations["arm"].qvel_array, [np.nan, np.inf], equal_nan=True)
    assert np.array_equal(client.data.qvel[:2], [np.nan, np.inf], equal_nan=True)


def test_an_error_reply_leaves_what_earlier_steps_told(client: URLabClient, server: Any, refuse: Any):
    client.step()
    server.replies["step"] = refuse("step_timeout")
    with pytest.raises(Exception, match="step_timeout"):
        client.step()
    assert client.data.time == 0.5


def test_a_reset_forgets_what_was_never_looked_at(client: URLabClient, server: Any, state_reply: dict[str, Any]):
    client.step()
    server.replies["reset"] = {"time": 0.0, "per_articulation": {"arm": {"qpos": [0.1, 0.2], "qvel": [0.0, 0.0]}}}
    client.reset()
    fresh = mujoco.MjData(client.model)
    fresh.qpos[:2] = [0.1, 0.2]
    mujoco.mj_forward(client.model, fresh)
    assert_same(client.data, fresh)


def test_a_model_whose_evaluations_remember_is_never_late(client: URLabClient, server: Any, handshake: dict[str, Any]):
    mirror = client._mirror
    assert mirror is not None
    client.model.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_SLEEP
    client.step()
    assert mirror.settled
    delayed = """<mujoco><worldbody><body name="arm_base"><joint name="arm_j"/><geom size=".1"/></body></worldbody>
      <sensor><jointpos joint="arm_j" delay=".01" nsample="10"/></sensor></mujoco>"""
    server.replies["hello"] = {**handshake, "mjb": None, "mjcf_compiled": delayed, "entities": {}}
    client.discover()
    server.replies["step"] = {"per_articulation": {"arm": {"qpos": [0.5], "qvel": [0.0]}}}
    client.step()
    assert client._mirror is not None
    assert client._mirror.settled


def test_a_step_waits_for_a_look_and_a_look_at_the_state_evaluates_nothing(client: URLabClient):
    mirror, arm = client._mirror, client.articulations["arm"]
    assert mirror is not None
    client.step()
    assert (mirror.written, mirror.settled) == (False, False)
    assert arm.qpos_array.tolist() == [0.7, -0.3]
    assert (mirror.written, mirror.settled) == (True, False)
    assert np.allclose(arm.bodies["hand"].xpos, [0, 0, 0.5])
    assert mirror.settled
    client.step()
    assert not mirror.settled


@pytest.mark.parametrize("look", ["data", "model"])
def test_after_a_look_at_the_model_or_the_data_everything_is_there(client: URLabClient, look: str):
    client.step()
    assert getattr(client, look) is not None
    assert client._mirror is not None
    assert client._mirror.settled
    assert client._watched is (look == "data")


def test_data_that_the_caller_keeps_follows_every_step_until_a_handshake_makes_a_new_one(
    client: URLabClient, server: Any, state_reply: dict[str, Any]
):
    kept = client.data
    client.step()
    assert (kept.time, kept.qpos[0], kept.body("shelf").xpos[0]) == (0.5, 0.7, 5.0)
    assert np.allclose(kept.body("arm_hand").xpos, [0, 0, 0.5])
    server.replies["step"] = {**state_reply, "time": 0.75}
    client.step()
    assert kept.time == 0.75
    client.discover()
    client.step()
    assert client._mirror is not None
    assert not client._mirror.settled
    assert client.data is not kept
    assert client.data.time == 0.75


def test_the_caller_may_change_the_reply_before_it_looks_at_the_state(client: URLabClient):
    reply = client.step()
    reply["per_articulation"]["arm"]["qpos"][:] = [9.0, 9.0, 9.0]
    reply["per_articulation"]["dog"]["ctrl"].clear()
    reply["entities"]["box"]["qpos"][0] = 9.0
    reply.clear()
    assert client.data.qpos.tolist() == [0.7, -0.3, 2.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.2, 0.0, 3.0, 2.0, 1.0, 0, 0, 0]
    assert client.data.ctrl.tolist() == [0.4, 0.6, 0.9]


def test_a_puppet_begins_with_what_earlier_steps_told(client: URLabClient, server: Any):
    client.step()
    client.runtime.set_mode("puppet")
    client.step(0)
    assert server.last("step")["qpos"][:2] == [0.7, -0.3]
    assert server.last("step")["time"] == 0.5


def test_a_handshake_that_keeps_the_data_keeps_what_steps_told(client: URLabClient, handshake: dict[str, Any]):
    client.step()
    del handshake["mjb"]
    client._apply_handshake(handshake)
    assert (client.data.time, client.data.qpos[0]) == (0.5, 0.7)
    assert client.entities["shelf"].root_pos_w.tolist() == [5.0, 6.0, 7.0]


@pytest.mark.parametrize("watched", [False, True])
def test_a_thread_that_holds_the_lock_sees_one_reply_whole(
    client: URLabClient, server: Any, state_reply: dict[str, Any], watched: bool
):
    def answer(_: dict[str, Any]) -> dict[str, Any]:
        angle = next(angles)
        reply = copy.deepcopy(state_reply)
        reply["per_articulation"]["arm"].update(qpos=[angle, angle], qvel=[angle, angle])
        return {**reply, "time": angle}

    angles = count(0.001, 0.001)
    server.replies["step"] = answer
    arm = client.articulations["arm"]
    assert not watched or client.data is not None
    fresh = mujoco.MjData(client.model)

    def read() -> None:
        with client._data_lock:
            time, qpos, tip = client.sim_time, arm.qpos_array, arm.bodies["hand"].xquat
            assert not watched or client.data.time == time
        assert qpos.tolist() == [time, time]
        fresh.qpos[:2] = qpos
        mujoco.mj_kinematics(client._model, fresh)
        assert np.array_equal(tip, fresh.body("arm_hand").xquat)

    reader = Reader(read, 200)
    client.step()
    reader.start()
    while reader.is_alive():
        client.step()
        assert arm.qvel_array.tolist() == [client.sim_time] * 2
        assert arm.root_pos_w.tolist() == [0.0, 0.0, 0.0]
    assert reader.failure is None


class Reader(threading.Thread):
    """Reads so many times, and keeps what went wrong."""

    def __init__(self, read: Callable[[], None], times: int) -> None:
        super().__init__()
        self._read, self._times = read, times
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            for _ in range(self._times):
                self._read()
        except BaseException as failure:  # noqa: BLE001 - for the assertion on the main thread
            self.failure = failure


WITH_TARGET = """
<mujoco model="arm"><worldbody><body name="link"><joint name="turn"/><geom size=".1"/></body>
  <body name="target" mocap="true" pos="0 1 0"/></worldbody><actuator><motor name="push" joint="turn"/></actuator>
  <keyframe><key name="up" qpos=".3" mpos="0 3 0" mquat="0 0 0 1"/></keyframe></mujoco>"""


def test_a_mocap_body_of_a_robots_own_file_is_where_a_reset_puts_it(tmp_path: Path):
    (tmp_path / "arm.xml").write_text(WITH_TARGET)
    with urlab.launch(tmp_path / "arm.xml", project=tmp_path / "project") as client:
        client.reset(keyframe_name="up")
        assert client.data.mocap_pos.tolist() == [[0, 3, 0]]
        assert client.data.mocap_quat.tolist() == [[0, 0, 0, 1]]
        client.reset()
        assert client.data.body("arm_target").xpos.tolist() == [0, 1, 0]


WITH_SCALES = """<mujoco model="table"><worldbody><body name="top" pos="0 0 .5"><geom type="box" size=".5 .5 .05"/>
  <site name="plate" type="box" size=".5 .5 .1"/></body>
  <body name="load" pos="0 0 .65"><freejoint/><geom type="box" size=".1 .1 .1" mass="2"/></body></worldbody>
  <sensor><touch name="load" site="plate"/></sensor></mujoco>"""


def test_sensors_of_what_is_no_robot_are_in_the_local_data(tmp_path: Path):
    (tmp_path / "table.xml").write_text(WITH_SCALES)
    with urlab.launch(tmp_path / "table.xml", project=tmp_path / "project") as client:
        assert not client.articulations
        client.step(500)
        assert client.data.sensor("table_load").data[0] == pytest.approx(2 * 9.81, rel=0.01)

"""Data that nobody looks at may be late; whoever looks finds it current."""

import copy
import threading
from collections.abc import Callable
from itertools import count
from typing import Any

import mujoco
import numpy as np
import pytest

from urlab_client import URLabClient


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


def test_data_that_somebody_keeps_follows_every_step_until_a_handshake_makes_a_new_one(
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


def test_the_caller_may_change_the_reply_before_anybody_looks(client: URLabClient):
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

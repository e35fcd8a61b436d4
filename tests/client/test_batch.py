"""Many simulations over the wire: the same numbers as the scene itself gives, to the last bit."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import urlab
from urlab.child_process import ServerProcess
from urlab_client import URLabClient, URLabRPCError

HEAVY = {"kind": "body", "name": "quadruped_trunk", "field": "mass", "distribution": "uniform", "low": 3, "high": 9}


@pytest.fixture(scope="module", params=["inprocess", "shm", "zmq"])
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[URLabClient]:
    """A quadruped, which has a PD controller, and an arm, which has servos; over each transport."""
    folder = tmp_path_factory.mktemp("project")
    scene = ["floor", "quadruped", "panda@2,0,0"]
    if request.param == "inprocess":
        with urlab.launch(scene, project=folder) as opened:
            yield opened
        return
    with urlab.launch(scene, project=folder) as setup:
        setup.scene.save_level("pair")
    with ServerProcess("pair", "--project", str(folder), "--no-web") as server:
        address, _, port = server.endpoints["step"].rpartition(":")
        with URLabClient(address, step_port=int(port), transport=request.param, step_mode="direct") as one:
            one.discover()
            yield one


def setpoints(count: int, width: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-0.5, 0.5, (count, width))


def stepped(client: URLabClient, rows: np.ndarray, n_steps: int) -> tuple[np.ndarray, np.ndarray]:
    """The state of the scene itself after each row of setpoints was held for some steps."""
    for row in rows:
        begin = 0
        for robot in client.articulations.values():
            robot.ctrl_array = row[begin : begin + len(robot.ctrl_array)]
            begin += len(robot.ctrl_array)
        client.step(n_steps)
    return client.data.qpos.copy(), client.data.qvel.copy()


def test_each_simulation_goes_as_the_scene_would(client: URLabClient) -> None:
    client.reset()
    client.step(3)
    state = client.runtime.save_state()
    with client.batch(3) as batch:
        orders = np.array([setpoints(4, batch.n_setpoints, seed) for seed in range(3)])
        for turn in range(4):
            batch.step(orders[:, turn], n_steps=5)
        for row in range(3):
            client.runtime.restore_state(state)
            qpos, qvel = stepped(client, orders[row], 5)
            assert batch.qpos[row].tolist() == qpos.tolist()
            assert batch.qvel[row].tolist() == qvel.tolist()
        assert batch.time.tolist() == [client.data.time] * 3


def test_some_are_reset_and_the_scene_does_not_notice(client: URLabClient) -> None:
    client.reset()
    before = client.step(0)["time"]
    with client.batch(4) as batch:
        start = batch.qpos.copy()
        batch.step(setpoints(4, batch.n_setpoints), n_steps=20)
        moved = batch.qpos.copy()
        batch.reset([1, 3])
        assert batch.qpos[[1, 3]].tolist() == start[[1, 3]].tolist()
        assert batch.qpos[[0, 2]].tolist() == moved[[0, 2]].tolist()
        assert batch.time.tolist()[1] == before
    assert client.step(0)["time"] == before


def test_seeds_draw_the_worlds_that_a_reset_draws(client: URLabClient) -> None:
    client.reset()
    with client.batch(2, randomize={"heavy": HEAVY}) as batch:
        batch.reset(seeds=[7, 8])
        batch.step(n_steps=50)
        client.reset(seed=8, randomize={"heavy": HEAVY})
        client.step(50)
        assert batch.qpos[1].tolist() == client.data.qpos.tolist()
        assert batch.qpos[0].tolist() != batch.qpos[1].tolist()
        batch.reset()
        client.reset()
        batch.step(n_steps=50)
        client.step(50)
        assert batch.qpos[0].tolist() == batch.qpos[1].tolist() == client.data.qpos.tolist()


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda client, _: client.batch(0), "num must be from 1 to 16,384, but is 0"),
        (lambda client, _: client.batch(10**6), "num must be from 1 to 16,384"),
        (lambda client, _: client.batch(2, threads=-1), "threads must be from 0"),
        (lambda _, batch: batch.step(n_steps=0), "n_steps is at least 1, not 0"),
        (lambda _, batch: batch.step(np.full((2, batch.n_setpoints), np.nan)), "not finite"),
        (lambda _, batch: batch.step(np.zeros((2, 3))), r"shape \(2, 3\), expected"),
        (lambda _, batch: batch.reset([2]), "ids are different numbers from 0 to 1"),
        (lambda _, batch: batch.reset([0, 0]), "ids are different numbers"),
        (lambda _, batch: batch.reset(seeds=[1, 2]), "seeds need a batch that was opened with randomize"),
    ],
)
def test_what_cannot_be_is_refused(client: URLabClient, act: Any, said: str) -> None:
    with client.batch(2) as batch, pytest.raises((URLabRPCError, ValueError), match=said):
        act(client, batch)


def test_batches_end_with_the_play(client: URLabClient) -> None:
    batch = client.batch(1)
    client.sim.stop()
    client.sim.start(step_mode="direct")
    with pytest.raises(URLabRPCError, match="this session has no batch"):
        batch.step()


def test_a_closed_batch_is_gone_and_a_session_has_so_many(client: URLabClient) -> None:
    batches = [client.batch(1) for _ in range(4)]
    with pytest.raises(URLabRPCError, match="4 batches at most: batch_close one first"):
        client.batch(1)
    for one in batches:
        one.close()
    with pytest.raises(URLabRPCError, match="this session has no batch"):
        batches[0].step()

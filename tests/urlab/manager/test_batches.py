"""Batches of clients: disturbances as in the scene itself, and what they may take of the server."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

import urlab
from urlab.manager.batches import randomisation, table
from urlab_client import URLabClient, URLabRPCError

DRAWN = {"kind": "geom", "name": "*", "field": "friction", "distribution": "uniform", "low": 0.5, "high": 1}


def test_the_memory_of_all_batches_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with urlab.launch(["floor", "quadruped"], project=tmp_path) as client:
        row = mujoco.mj_stateSize(client.model, mujoco.mjtState.mjSTATE_INTEGRATION) + client.model.nsensordata
        monkeypatch.setattr(table, "MAX_STATE_BYTES", 20 * 8 * row)
        first = client.batch(8)
        with pytest.raises(URLabRPCError, match="ask for fewer, or batch_close one first"):
            client.batch(16)
        first.close()
        client.batch(16).close()


def test_what_a_draw_takes_for_every_simulation_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with urlab.launch(["floor", "quadruped"], project=tmp_path) as client:
        monkeypatch.setattr(randomisation, "MAX_FIELD_BYTES", 1 << 12)
        with pytest.raises(URLabRPCError, match="draw for fewer elements, or ask for fewer simulations"):
            client.batch(8, randomize={"slip": DRAWN})
        client.batch(8).close()  # what was refused holds no place


CART = """
<mujoco model="cart"><option timestep=".01"/><worldbody>
  <body name="car"><joint name="x" type="slide" axis="1 0 0"/><geom size=".1" mass="2"/></body></worldbody>
  <actuator><motor name="drive" joint="x" ctrlrange="-50 50"/></actuator>
  <sensor><jointpos name="where" joint="x"/><framepos name="place" objtype="body" objname="car"/></sensor></mujoco>"""
PD = '[controller]\nkind = "pd"\n[controller.params]\ndefault_kp = 40.0\n'


def entry(kind: str, name: str, field: str, low: Any, high: Any, **more: Any) -> dict[str, Any]:
    return {"kind": kind, "name": name, "field": field, "distribution": "uniform", "low": low, "high": high, **more}


DISTURBED = {
    "shove": entry("push", "car", "force", [-9, 0, 0], [9, 0, 0], count=3, within_s=[0, 0.2], duration_s=0.05),
    "blur": entry("sensor", "where", "noise_std", 0.01, 0.2),
    "late": entry("sensor", "place", "latency_s", 0, 0.05),
    "slow": entry("actuator", "drive", "latency_s", 0, 0.06),
    "start": entry("joint", "x", "qpos", -1, 1),
}


def test_a_scene_whose_bodies_sleep_is_told_how_it_can_be_batched(tmp_path: Path) -> None:
    sleepy = '<option timestep=".01"><flag sleep="enable"/></option>'
    (tmp_path / "cart.xml").write_text(CART.replace('<option timestep=".01"/>', sleepy))
    with urlab.launch(tmp_path / "cart.xml", project=tmp_path) as client:
        with pytest.raises(URLabRPCError, match=r"set_sim_options\(enable_sleep=False\)") as refused:
            client.batch(2)
        assert refused.value.code == "bad_value"
        client.runtime.set_sim_options(enable_sleep=False)
        client.batch(2).close()


def test_gains_are_drawn_as_in_the_scene_and_taken_back(tmp_path: Path) -> None:
    (tmp_path / "cart.xml").write_text(CART)
    (tmp_path / "cart.urlab.toml").write_text(PD)
    gains = {"stiff": entry("controller", "x", "kp", 10, 90), "weak": entry("controller", "x", "torque_limit", 1, 9)}
    with urlab.launch(tmp_path / "cart.xml", project=tmp_path) as cart:
        with cart.batch(2, randomize=gains) as batch:
            for seeds in ([3, 4], None):
                batch.reset(seeds=seeds)
                batch.step(np.full((2, 1), 0.7), n_steps=9)
                for index in range(2):
                    cart.reset(**({"seed": seeds[index], "randomize": gains} if seeds else {}))
                    cart.articulations["cart"].ctrl_array[0] = 0.7
                    assert read(cart.step(9)) == row(batch, index)


@pytest.fixture(params=["", PD], ids=["raw", "pd"])
def cart(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[URLabClient]:
    """A cart whose setpoints are forces, or positions."""
    (tmp_path / "cart.xml").write_text(CART)
    (tmp_path / "cart.urlab.toml").write_text(request.param)
    with urlab.launch(tmp_path / "cart.xml", project=tmp_path) as client:
        yield client


def read(reply: Any) -> list[list[float]]:
    """Positions, velocities and sensors as the server tells them."""
    block = reply["per_articulation"]["cart"]
    return [list(block["qpos"]), list(block["qvel"]), [one for values in block["sensors"].values() for one in values]]


def row(batch: Any, index: int) -> list[list[float]]:
    return [one[index].tolist() for one in (batch.qpos, batch.qvel, batch.sensordata)]


def test_disturbances_go_bit_for_bit_as_in_the_scene(cart: URLabClient) -> None:
    seeds, orders = (5, 6, 7), np.random.default_rng(0).uniform(-1, 1, (6, 3, 1))
    cart.reset()
    with cart.batch(3, randomize=DISTURBED) as batch:
        batch.reset(seeds=seeds)
        seen = [[row(batch, index) for index in range(3)]]
        for order in orders:
            batch.step(order, n_steps=4)
            seen.append([row(batch, index) for index in range(3)])
    for index, seed in enumerate(seeds):
        assert read(cart.reset(seed=seed, randomize=DISTURBED)) == seen[0][index]
        for turn, order in enumerate(orders, 1):
            cart.articulations["cart"].ctrl_array[0] = order[index, 0]
            assert read(cart.step(4)) == seen[turn][index]


def test_a_reset_takes_back_setpoints_and_disturbances(cart: URLabClient) -> None:
    cart.reset()
    with cart.batch(2, randomize=DISTURBED) as batch:
        batch.reset(seeds=[5, 6])
        batch.step(np.full((2, 1), 0.7), n_steps=5)
        batch.reset()
        cart.reset()
        batch.step(n_steps=5)
        assert read(cart.step(5)) == row(batch, 1)


def test_a_simulation_that_mujoco_resets_goes_on_as_the_scene_does(cart: URLabClient) -> None:
    cart.reset()
    kick = {"kick": entry("joint", "x", "qvel", 2e10, 2e10)}
    with cart.batch(1, randomize=kick) as batch:
        batch.reset(seeds=[1])
        cart.reset(seed=1, randomize=kick)
        for n_steps in (7, 3):
            batch.step(np.array([[0.3]]), n_steps=n_steps)
            cart.articulations["cart"].ctrl_array[0] = 0.3
            assert read(cart.step(n_steps)) == row(batch, 0)
        assert 0 < batch.qvel[0, 0] < 100, "it was reset, and is driven again"


def test_a_restored_state_is_disturbed_from_the_begin(cart: URLabClient) -> None:
    first = read(cart.reset(seed=5, randomize=DISTURBED))
    state = cart.runtime.save_state()
    after = [read(cart.step(1)) for _ in range(8)]
    assert read(cart.runtime.restore_state(state)) == first
    assert [read(cart.step(1)) for _ in range(8)] == after


def test_what_would_have_no_effect_is_refused(cart: URLabClient) -> None:
    look = {"kind": "material", "name": "*", "field": "texture", "distribution": "choice", "values": ["a"]}
    with pytest.raises(URLabRPCError, match="pushes, not look: leave these out"):
        cart.batch(2, randomize={"look": look})


def test_what_latencies_keep_is_bounded_and_nothing_is_half_reset(
    cart: URLabClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(randomisation, "MAX_LATE_BYTES", 100)
    with cart.batch(2, randomize={"slow": entry("actuator", "drive", "latency_s", 0.0, 1.0)}) as batch:
        batch.step(n_steps=3)
        before = batch.time.copy()
        with pytest.raises(URLabRPCError, match="draw shorter ones, or ask for fewer simulations"):
            batch.reset(seeds=[1, 2])
        batch.step()
        assert np.all(batch.time > before)

"""The level's own entries, and what disturbs a simulation: noise, latency, pushes, gains."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

import urlab
from urlab.compile import compile_scene
from urlab.compile.library import Library
from urlab.errors import BadValue
from urlab.manager import Manager, StepCounter, View
from urlab.paths import FileRoots
from urlab.scene.blueprint_record import file_record
from urlab.scene.level import Actor, Level
from urlab_client import URLabClient, URLabRPCError
from urlab_wire.enums import StepMode
from urlab_wire.ops.stepping import ArticulationCommand, StepRequest

CART = """
<mujoco model="cart"><option gravity="0 0 0" timestep=".01"/><worldbody>
  <body name="car"><joint name="x" type="slide" axis="1 0 0" range="-9 9"/><geom size=".1" mass="2"/></body></worldbody>
  <actuator><motor name="drive" joint="x"/></actuator>
  <sensor><jointpos name="where" joint="x"/><framepos name="place" objtype="body" objname="car"/></sensor></mujoco>"""
Start = Callable[..., Manager]
VIEW = View("standard")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Plays the cart, in direct mode, with a level's own entries."""
    with ExitStack() as stack:

        def begin(sidecar: str = "", **table: Any) -> Manager:
            (tmp_path / "cart.xml").write_text(CART)
            (tmp_path / "cart.urlab.toml").write_text(sidecar)
            scene = compile_scene(Level("l", (Actor("cart", str(tmp_path / "cart.xml")),)), Library(file_record))
            manager = Manager(
                scene, replays_dir=tmp_path, roots=FileRoots(), counter=StepCounter(), randomize=table
            )  # fmt: skip
            manager.start(StepMode.DIRECT)
            stack.callback(manager.stop)
            return manager

        yield begin


def entry(kind: str, name: str, field: str, low: Any, high: Any = None, **more: Any) -> dict[str, Any]:
    high = low if high is None else high
    return {"kind": kind, "name": name, "field": field, "distribution": "uniform", "low": low, "high": high, **more}


def run(manager: Manager, n_steps: int, ctrl: float = 0.0) -> None:
    command = {"cart": ArticulationCommand(ctrl=[ctrl])}
    manager.step(StepRequest(n_steps=n_steps, per_articulation=command), VIEW)


def hooks(manager: Manager) -> int:
    return len(manager.engine.pre_step) + len(manager.engine.post_step)


def test_a_seed_alone_draws_what_the_level_says(start: Start) -> None:
    manager = start(mass=entry("body", "car", "mass", 1, 3), x=entry("joint", "x", "qpos", -1, 1))
    assert manager.engine.model.body("cart_car").mass == 2
    drawn = manager.reset(VIEW, seed=4).extras["randomized"]
    mass, x = (one.value[0] for one in drawn.changes)
    assert manager.engine.model.body("cart_car").mass == mass != 2
    assert manager.engine.data.qpos[0] == x != 0
    assert manager.reset(VIEW, randomize=True).extras["randomized"].seed == manager.seed
    for rest in ({}, {"seed": 4, "randomize": False}):
        assert "randomized" not in manager.reset(VIEW, **rest).extras
        assert manager.engine.model.body("cart_car").mass == 2


def test_a_level_whose_entries_name_what_is_not_there_does_not_start(start: Start) -> None:
    with pytest.raises(BadValue, match=r"entry 'mass': there is no body 'train'.*cart_car"):
        start(mass=entry("body", "train", "mass", 1, 3))


def test_a_drawn_position_stays_within_the_joint_s_range(start: Start) -> None:
    manager = start(x=entry("joint", "x", "qpos", 20))
    manager.reset(VIEW, seed=1)
    assert manager.engine.data.qpos[0] == 9


def test_sensors_are_noisy_and_biased_and_the_same_seed_repeats_it(start: Start) -> None:
    noise = entry("sensor", "where", "noise_std", 0.1)
    manager = start(noise=noise, bias=entry("sensor", "place", "bias", [0, 5, 0]))
    seen = []
    for _ in range(2):
        manager.reset(VIEW, seed=4)
        readings = []
        for _ in range(200):
            run(manager, 1)
            readings.append(manager.engine.data.sensordata.copy())
        seen.append(np.array(readings))
    assert np.array_equal(*seen)
    assert 0.07 < seen[0][:, 0].std() < 0.13
    assert np.all(seen[0][:, 1:] == [0, 5, 0])
    assert np.all(manager.engine.data.qpos == 0)


def test_a_late_sensor_says_what_was_some_steps_ago(start: Start) -> None:
    manager = start(late=entry("sensor", "where", "latency_s", 0.03))
    manager.engine.data.qvel[:] = 1
    manager.reset(VIEW, seed=1)
    manager.engine.data.qvel[:] = 1
    now, late = [], []
    for _ in range(10):
        run(manager, 1)
        now.append(manager.engine.data.sensordata[1])
        late.append(manager.engine.data.sensordata[0])
    assert np.array_equal(late[3:], now[:-3])


def test_a_late_actuator_acts_some_steps_later_as_in_mujoco(start: Start) -> None:
    manager = start(late=entry("actuator", "drive", "latency_s", 0.05))
    manager.reset(VIEW, seed=1)
    model, data = manager.engine.model, mujoco.MjData(manager.engine.model)
    for step in range(20):
        run(manager, 1, ctrl=float(step))
        data.ctrl[:] = max(0, step - 5)
        mujoco.mj_step(model, data)
        assert manager.engine.data.ctrl[0] == step
    assert np.array_equal(manager.engine.data.qpos, data.qpos)


def test_a_push_is_a_force_for_its_time_as_in_mujoco(start: Start) -> None:
    push = entry("push", "car", "force", [6, 0, 0], count=1, within_s=[0.1, 0.2], duration_s=0.05)
    manager = start(shove=push)
    ((begin, end, *_),) = manager.reset(VIEW, seed=3).extras["randomized"].changes[0].value
    model, data = manager.engine.model, mujoco.MjData(manager.engine.model)
    for _ in range(50):
        run(manager, 1)
        data.xfrc_applied[1, 0] = 6 if begin <= data.time < end else 0
        mujoco.mj_step(model, data)
    assert data.qvel[0] > 0
    assert np.array_equal(manager.engine.data.qpos, data.qpos)
    assert not manager.engine.data.xfrc_applied.any()


def test_gains_of_a_controller_are_drawn_and_taken_back(start: Start) -> None:
    sidecar = '[controller]\nkind = "pd"\n[controller.params]\ndefault_kp = 40.0\n'
    manager = start(sidecar, gain=entry("controller", "x", "kp", 2, apply="scale"))
    controller = manager.articulation("cart").controller
    assert controller is not None
    for _ in range(2):
        manager.reset(VIEW, seed=1)
        assert controller.params()["kp"] == {"x": 80.0}
    manager.reset(VIEW)
    assert controller.params()["kp"] == {"x": 40.0}


def test_without_disturbances_a_step_has_no_more_to_do_than_ever(start: Start) -> None:
    plain = start()
    before = hooks(plain)
    plain.reset(VIEW, seed=1, randomize={"mass": entry("body", "car", "mass", 1, 3)})
    assert hooks(plain) == before
    table = {
        "noise": entry("sensor", "where", "noise_std", 0.1),
        "late": entry("actuator", "drive", "latency_s", 0.05),
        "shove": entry("push", "car", "force", [6, 0, 0], count=1, within_s=[0, 1], duration_s=0.1),
    }
    plain.reset(VIEW, seed=1, randomize=table)
    assert hooks(plain) == before + 5
    plain.reset(VIEW)
    assert hooks(plain) == before


ROOM = """
<mujoco model="room"><asset><texture name="red" type="2d" builtin="flat" rgb1="1 0 0" width="8" height="8"/>
  <texture name="blue" type="2d" builtin="flat" rgb1="0 0 1" width="8" height="8"/>
  <material name="paint" texture="red"/></asset>
<worldbody><light pos="0 0 3"/><camera name="eye" pos="0 0 2" resolution="32 24"/>
  <geom name="floor" type="plane" size="2 2 .1" material="paint"/>
  <body pos="0 0 .2"><joint name="turn"/><geom size=".05"/></body></worldbody>
<actuator><motor joint="turn"/></actuator></mujoco>"""
LOOK = {"kind": "material", "name": "paint", "field": "texture", "distribution": "choice", "values": ["red", "blue"]}


def seen(client: URLabClient) -> bytes:
    return bytes(client.step(0, include_cameras=["eye"])["cameras"]["eye"]["data"])


def test_a_drawn_texture_is_seen_as_if_it_had_been_compiled(tmp_path: Path) -> None:
    pictures = {}
    for texture in ("red", "blue"):
        (tmp_path / texture).mkdir()
        file = tmp_path / texture / "room.xml"
        file.write_text(ROOM.replace('texture="red"', f'texture="{texture}"'))
        with urlab.launch(file, project=tmp_path) as client:
            pictures[f"room_{texture}"] = seen(client)
    assert len(set(pictures.values())) == 2
    with urlab.launch(tmp_path / "red" / "room.xml", project=tmp_path) as client:
        drawn = set()
        for seed in range(6):
            (change,) = client.reset(seed=seed, randomize={"look": LOOK})["randomized"]["changes"]
            drawn.add(change["value"])
            assert seen(client) == pictures[change["value"]]
            assert client.model.mat_texid[0, 1] == client.model.tex(change["value"]).id
        assert drawn == set(pictures)
        client.reset()
        assert seen(client) == pictures["room_red"]
        client.runtime.set_model_params(("material", "paint", "texture", "blue"))
        assert seen(client) == pictures["room_blue"]
        with pytest.raises(URLabRPCError, match=r"entry 'look': there is no texture for a material 'green'.*room_blue"):
            client.reset(seed=1, randomize={"look": {**LOOK, "values": ["green"]}})

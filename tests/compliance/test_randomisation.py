"""`reset(seed, randomize)` and `set_model_params` over the wire: what is drawn, where it shows, and how it ends."""

import json
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

HEAVY = {"kind": "body", "name": "crate", "field": "density_scale", "distribution": "uniform", "low": 2, "high": 3}
PLACE = {
    "kind": "object", "name": "crate", "field": "pos", "distribution": "uniform",
    "low": [-0.1, -0.1, 0], "high": [0.1, 0.1, 0], "apply": "add",
}  # fmt: skip
ELBOW = {"kind": "joint", "name": "elbow", "field": "qpos", "distribution": "uniform", "low": -0.3, "high": 0.3}
PULL = {"kind": "option", "field": "gravity", "distribution": "uniform", "low": [0, 0, -12], "high": [0, 0, -8]}
TABLE = {"heavy": HEAVY, "place": PLACE, "elbow": ELBOW, "pull": PULL}


def model_of(engine: Any) -> dict[str, bytes]:
    model = engine.model
    arrays = [name for name in dir(model) if isinstance(getattr(model, name), np.ndarray)]
    return {name: getattr(model, name).tobytes() for name in arrays} | {"gravity": model.opt.gravity.tobytes()}


def test_the_same_seed_gives_the_same_world_bit_for_bit(wire: Any, engine: Any, full_state: Any) -> None:
    worlds = []
    for seed in (5, 6, 5):
        drawn = wire.ok("reset", seed=seed, randomize=TABLE)["randomized"]
        wire.ok("step", n_steps=50)
        worlds.append((drawn, model_of(engine()), full_state(engine()).tobytes()))
    assert worlds[0] == worlds[2]
    assert worlds[0] != worlds[1]
    assert worlds[0][0]["seed"] == 5
    assert [one["name"] for one in worlds[0][0]["changes"]] == ["crate", "crate", "arm_elbow", ""]


def test_the_mode_makes_no_difference_to_what_is_drawn(wire: Any) -> None:
    seen = []
    for mode in ("direct", "puppet", "live"):
        wire.ok("set_mode", mode=mode)
        wire.ok("set_paused", paused=True)
        seen.append(wire.ok("reset", seed=5, randomize=TABLE))
    assert seen[0]["randomized"] == seen[1]["randomized"] == seen[2]["randomized"]
    assert seen[0]["entities"] == seen[1]["entities"] == seen[2]["entities"]


def test_what_was_drawn_is_what_runs(wire: Any, engine: Any) -> None:
    mass, elbow = engine().model.body("crate").mass.copy(), engine().model.joint("arm_elbow")
    reply = wire.ok("reset", seed=1, randomize=TABLE)
    heavy, place, bent, pull = (one["value"] for one in reply["randomized"]["changes"])
    model, data = engine().model, engine().data
    assert model.body("crate").mass == mass * heavy[0]
    assert reply["entities"]["crate"]["qpos"][:3] == place
    assert data.qpos[elbow.qposadr[0]] == bent[0]
    assert model.opt.gravity.tolist() == pull


def test_a_reset_without_randomisation_is_the_compiled_model_again(wire: Any, engine: Any) -> None:
    start, before = wire.ok("reset"), model_of(engine())
    wire.ok("reset", seed=1, randomize=TABLE)
    assert model_of(engine()) != before
    reply = wire.ok("reset")
    assert model_of(engine()) == before
    assert reply["entities"] == start["entities"]
    assert "randomized" not in reply


def test_joint_values_of_the_request_win_over_drawn_ones(wire: Any) -> None:
    reply = wire.ok("reset", seed=1, randomize={"elbow": ELBOW}, per_articulation_qpos={"arm": {"elbow": 0.25}})
    assert 0.25 in reply["per_articulation"]["arm"]["qpos"]


def test_a_wrong_entry_changes_nothing(wire: Any, engine: Any, full_state: Any) -> None:
    wire.ok("step", n_steps=5)
    before = model_of(engine()), full_state(engine()).tobytes()
    wrong = {**TABLE, "typo": {**HEAVY, "name": "crates"}}
    reply = wire.ask("reset", seed=1, randomize=wrong)
    assert reply["code"] == "bad_value"
    assert "'typo'" in reply["message"]
    assert "crate" in reply["message"]
    assert (model_of(engine()), full_state(engine()).tobytes()) == before
    assert wire.refused("reset", randomize=True) == "bad_value"  # the level has no table
    assert wire.refused("reset", scope="time", randomize=TABLE) == "bad_value"


def test_without_a_seed_one_is_drawn_and_told(wire: Any) -> None:
    first = wire.ok("reset", randomize=TABLE)["randomized"]
    assert wire.ok("reset", randomize=TABLE)["randomized"]["seed"] != first["seed"]
    assert wire.ok("reset", seed=first["seed"], randomize=TABLE)["randomized"] == first
    assert wire.ok("pie_status")["seed"] == first["seed"]


def test_a_recording_keeps_what_was_drawn(wire: Any) -> None:
    drawn = wire.ok("reset", seed=9, randomize=TABLE)["randomized"]
    wire.ok("recording_start")
    wire.ok("step", n_steps=3)
    wire.ok("recording_stop")
    kept = json.loads(Path(wire.ok("recording_save")["absolute_path"]).read_text())["urlab"]
    assert kept["seed"] == 9
    assert kept["randomized"] == drawn


def test_changed_parameters_act_as_in_mujoco(wire: Any, plain: Any, engine: Any) -> None:
    alone = plain(wire.play("arena")["mjb"])
    model, data = alone.model, alone.data
    body = model.body("crate").id
    model.body_mass[body] *= 3
    model.body_inertia[body] *= 3
    mujoco.mj_setConst(model, mujoco.MjData(model))
    model.dof_damping[model.joint("arm_elbow").dofadr[0]] = 2
    reply = wire.ok("set_model_params", changes=[
        {"kind": "body", "name": "crate", "field": "density_scale", "value": 3},
        {"kind": "joint", "name": "elbow", "field": "damping", "value": 2.0},
    ])  # fmt: skip
    assert reply["changes"][1] == {"kind": "joint", "name": "arm_elbow", "field": "damping", "value": [2.0]}
    assert reply["until"] == "stop"
    wire.ok("step", n_steps=100)
    alone.step(100)
    crate = int(model.jnt_qposadr[model.body_jntadr[model.body("crate").id]])
    for part in (slice(2), slice(crate, crate + 7)):  # the walker beside them has a controller
        assert np.allclose(engine().data.qpos[part], data.qpos[part], rtol=0, atol=1e-12)


@pytest.mark.parametrize("until", ["reset", "stop"])
def test_changed_parameters_last_as_long_as_asked(wire: Any, engine: Any, until: str) -> None:
    before = model_of(engine())
    change = {"kind": "geom", "name": "crate", "field": "friction", "value": 0.1}
    name = engine().model.geom(engine().model.body("crate").geomadr[0]).name
    wire.ok("set_model_params", changes=[{**change, "name": name}], until=until)
    changed = model_of(engine())
    assert changed != before
    wire.ok("reset")
    assert model_of(engine()) == (before if until == "reset" else changed)
    wire.play("arena")
    assert model_of(engine()) == before


def test_one_wrong_change_and_none_is_applied(wire: Any, engine: Any) -> None:
    before = model_of(engine())
    fine = {"kind": "body", "name": "crate", "field": "mass", "value": 3}
    for wrong in ({"name": "crat"}, {"field": "weight"}, {"value": -1}, {"value": "x"}):
        assert wire.refused("set_model_params", changes=[fine, {**fine, **wrong}]) == "bad_value"
    assert wire.refused("set_model_params", changes=[{**fine, "value": [1, 2]}]) == "dim_mismatch"
    assert wire.refused("set_model_params", changes=[fine], until="noon") == "bad_value"
    assert wire.refused("set_model_params", changes=[]) == "missing_field"
    assert model_of(engine()) == before


def test_a_new_handshake_has_the_model_as_it_is_and_older_ones_are_warned(wire: Any, plain: Any, stranger: Any) -> None:
    operator = stranger
    operator.hello(operator=True)
    operator.ok("set_model_params", changes=[{"kind": "body", "name": "crate", "field": "mass", "value": 3}])
    assert "discover" in wire.ok("step", n_steps=1)["warnings"][0]
    assert "warnings" not in wire.ok("step", n_steps=1)
    assert plain(wire.hello()["mjb"]).model.body("crate").mass == 3
    assert "warnings" not in wire.ok("step", n_steps=1)


def picture(wire: Any) -> Any:
    frame = wire.ok("step", n_steps=1, include_cameras={"eye": "sync"})["cameras"]["eye"]
    return frame, np.frombuffer(frame["data"], np.float32 if frame["mode"] == "depth" else np.uint8)


def test_a_drawn_camera_shows_in_its_pictures_and_intrinsics(wire: Any) -> None:
    still, _ = picture(wire)
    lens = {"kind": "camera", "name": "eye", "field": "fovy", "distribution": "choice", "values": [30]}
    wire.ok("reset", seed=1, randomize={"lens": lens})
    zoomed, _ = picture(wire)
    focal = still["height"] / 2 / np.tan(np.radians(15))
    assert np.isclose(np.ravel(zoomed["K"])[0], focal)
    assert not np.isclose(np.ravel(still["K"])[0], focal)


def test_pictures_are_noisy_and_the_same_seed_repeats_them(wire: Any) -> None:
    _, clean = picture(wire)
    noise = {"kind": "camera", "name": "eye", "field": "noise_std", "distribution": "choice", "values": [0.05]}
    pictures = []
    for seed in (1, 1, 2):
        wire.ok("reset", seed=seed, randomize={"noise": noise})
        pictures.append(picture(wire)[1])
    assert np.array_equal(pictures[0], pictures[1])
    assert not np.array_equal(pictures[0], pictures[2])
    assert not np.array_equal(pictures[0], clean)
    assert np.abs(pictures[0].astype(int) - clean).mean() < 0.05 * 255
    wire.ok("reset")
    assert np.array_equal(picture(wire)[1], clean)

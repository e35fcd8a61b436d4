"""Snapshots: one coherent frame each, that never changes."""

from typing import Any

import mujoco
import numpy as np
import pytest

from urlab.physics import Engine, Snapshot

ARRAYS = ("qpos", "qvel", "act", "ctrl", "qacc", "sensordata", "xpos", "xquat", "mocap_pos", "mocap_quat")


def values(snapshot: Snapshot) -> dict[str, Any]:
    return {name: getattr(snapshot, name).tolist() for name in ARRAYS} | {"time": snapshot.sim_time}


def test_an_engine_has_a_snapshot_from_the_start(engine: Engine) -> None:
    assert (engine.snapshot.frame_id, engine.snapshot.sim_time) == (0, 0)
    assert engine.snapshot.xpos[1].tolist() == [0, 0, 1]


def test_a_snapshot_is_the_state_that_it_was_taken_of(engine: Engine) -> None:
    engine.data.ctrl[:] = 0.5
    engine.data.mocap_pos[:] = (1, 2, 3)
    engine.data.mocap_quat[:] = (0, 1, 0, 0)
    engine.advance(7, np.inf)
    engine.publish()
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(engine.snapshot, name), getattr(engine.data, name), err_msg=name)
        assert getattr(engine.snapshot, name).shape == getattr(engine.data, name).shape
    assert engine.snapshot.sim_time == engine.data.time


def test_stepping_on_leaves_a_snapshot_alone(engine: Engine) -> None:
    engine.data.ctrl[:] = 0.5
    engine.advance(3, np.inf)
    engine.publish()
    old = engine.snapshot
    before = values(old)
    engine.advance(50, np.inf)
    engine.publish()
    assert values(old) == before
    assert values(engine.snapshot) != before


@pytest.mark.parametrize("name", ARRAYS)
def test_nobody_can_write_to_a_snapshot(name: str, engine: Engine) -> None:
    with pytest.raises(ValueError, match="read-only"):
        getattr(engine.snapshot, name)[...] = 1


def test_frame_ids_grow_whatever_happens_to_the_state(engine: Engine) -> None:
    ids = []
    for action in (lambda: engine.advance(2, np.inf), engine.reset, engine.forward, lambda: None):
        action()
        engine.publish()
        ids.append(engine.snapshot.frame_id)
    assert ids == [1, 2, 3, 4]


def test_whoever_is_told_of_a_publication_finds_its_snapshot(engine: Engine) -> None:
    heard: list[Snapshot] = []
    engine.on_publish += [lambda: heard.append(engine.snapshot)] * 2
    engine.publish()
    assert heard == [engine.snapshot, engine.snapshot]
    assert engine.snapshot.frame_id == 1


def test_publishing_copies_nothing_for_those_who_do_not_look(engine: Engine) -> None:
    heard: list[float] = []
    engine.on_publish.append(lambda: heard.append(engine.data.time))
    first = engine._snapshot
    engine.publish()
    assert heard == [0]
    assert engine._snapshot is first


def test_a_model_of_nothing_has_empty_snapshots() -> None:
    snapshot = Engine(mujoco.MjModel.from_xml_string("<mujoco/>")).snapshot
    assert snapshot.qpos.shape == (0,)
    assert snapshot.mocap_pos.shape == (0, 3)
    assert snapshot.mocap_quat.shape == (0, 4)
    assert snapshot.xpos.shape == (1, 3)

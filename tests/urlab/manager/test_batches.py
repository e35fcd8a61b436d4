"""What batches of clients may take of the server."""

from pathlib import Path

import mujoco
import pytest

import urlab
from urlab.manager.batches import randomisation, table
from urlab_client import URLabRPCError

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

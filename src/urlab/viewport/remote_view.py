"""What a viewer elsewhere needs in order to draw the viewport's world by itself: a model once, then states."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np

from urlab.viewport.posed_model import PosedModel


@dataclass(frozen=True, slots=True)
class RemoteView:
    """One state of the world, for a viewer that has the model, or gets it with it.

    ``model`` is a word, another one whenever the model is; ``mjb`` is the model, or None where the viewer has it.
    ``state`` is float64, little endian: qpos, qvel, act, ctrl, mocap_pos, mocap_quat, sensordata, in the sizes of the
    model. ``posed`` is what it was made of.
    """

    model: str
    mjb: bytes | None
    state: bytes
    posed: PosedModel

    @property
    def actors(self) -> Mapping[str, list[int]]:
        """The ids of each actor's bodies, by its name."""
        return {name: sorted(bodies) for name, bodies in self.posed.actors.items()}


class RemoteViews:
    """Makes remote views. Any thread may call it; the bytes of one model are made once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._model: Any = None
        self._number = 0
        self._mjb: bytes | None = None

    def view(self, posed: PosedModel, known_model: str | None) -> RemoteView:
        """The view of a posed model; without its bytes when ``known_model`` is its word."""
        with self._lock:
            if self._model is not posed.model:
                self._model, self._mjb = posed.model, None
                self._number += 1
            word = str(self._number)
            if word != known_model and self._mjb is None:
                self._mjb = _mjb(posed.model)
            mjb = None if word == known_model else self._mjb
        return RemoteView(word, mjb, _state(posed), posed)


def _mjb(model: Any) -> bytes:
    buffer = np.empty(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, None, buffer)
    return buffer.tobytes()


def _state(posed: PosedModel) -> bytes:
    model = posed.model
    parts = (
        posed.qpos,
        np.zeros(model.nv) if posed.qvel is None else posed.qvel,
        np.zeros(model.na) if posed.act is None else posed.act,
        np.zeros(model.nu) if posed.ctrl is None else posed.ctrl,
        posed.mocap_pos.ravel(),
        posed.mocap_quat.ravel(),
        np.zeros(model.nsensordata) if posed.sensordata is None else posed.sensordata,
    )
    return np.concatenate(parts).astype("<f8", copy=False).tobytes()

"""What a viewer elsewhere needs in order to draw the viewport's world by itself: a model once, then states."""

import fcntl
import mmap
import os
import sys
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

    ``model`` is a word, another one whenever the model is; ``mjb`` is the model, or ``mjb_file`` a file that has it;
    both are None where the viewer has the model.
    ``state`` is float64, little endian: qpos, qvel, act, ctrl, mocap_pos, mocap_quat, sensordata, in the sizes of the
    model. ``posed`` is what it was made of.
    """

    model: str
    mjb: bytes | None
    mjb_file: str | None
    state: bytes
    posed: PosedModel

    @property
    def actors(self) -> Mapping[str, list[int]]:
        """The ids of each actor's bodies, by its name."""
        return {name: sorted(bodies) for name, bodies in self.posed.actors.items()}


class RemoteViews:
    """Makes remote views. Any thread may call it; the bytes of one model, and the file with them, are made once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._model: Any = None
        self._number = 0
        self._mjb: bytes | None = None
        self._file: int | None = None

    def view(self, posed: PosedModel, known_model: str | None, *, as_file: bool = False) -> RemoteView:
        """The view of a posed model; without its bytes when ``known_model`` is its word, or with a file of them."""
        with self._lock:
            if self._model is not posed.model:
                self._forget()
                self._model = posed.model
                self._number += 1
            word, mjb, file = str(self._number), None, None
            if word != known_model and as_file:
                file = self._named_file(posed.model)
            if word != known_model and file is None:
                mjb = self._mjb = self._mjb or _mjb(posed.model)
        return RemoteView(word, mjb, file, _state(posed), posed)

    def close(self) -> None:
        """Let go of the model."""
        with self._lock:
            self._forget()

    def _forget(self) -> None:
        self._model, self._mjb = None, None
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _named_file(self, model: Any) -> str | None:
        """A file in memory that is gone with this process, however it ends; None where there can be none."""
        if self._file is None:
            self._file = _saved(model)
        return None if self._file is None else f"/proc/{os.getpid()}/fd/{self._file}"


def _saved(model: Any) -> int | None:
    """The descriptor of a file in memory with the whole model; None where there is no such thing, or no room."""
    if sys.platform != "linux":
        return None
    size = mujoco.mj_sizeModel(model)
    try:
        file = os.memfd_create("urlab-view", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    except OSError:
        return None
    try:
        os.posix_fallocate(file, 0, size)  # so that writing to it cannot fail
        with mmap.mmap(file, size) as memory:
            _save(model, memory)
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE)
    except OSError:
        os.close(file)
        return None
    return file


def _save(model: Any, memory: Any) -> None:
    """Write a model into memory of its size. To a file MuJoCo would make a copy first, half a second for 200 MB."""
    mujoco.mj_saveModel(model, None, np.frombuffer(memory, np.uint8))


def _mjb(model: Any) -> bytes:
    buffer = bytearray(mujoco.mj_sizeModel(model))
    _save(model, buffer)
    return bytes(buffer)


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

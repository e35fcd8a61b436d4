"""The states of an episode, one for every control step: what its pictures can be drawn from again, and learners take.

They are kept beside the trace as ``states.npz``: arrays of float64, and ``about``, one JSON object.
"""

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from urlab.evaluation.camera_config import CameraMount
from urlab.evaluation.runs.results import STATES, RunFolderError
from urlab.files import replacing

Array = NDArray[np.float64]
StateRow = tuple[float, Array, Array, Array, Array]
"""Simulated time (s), qpos, qvel, ctrl, and seven numbers for each mocap body."""

_ARRAYS = ("time", "qpos", "qvel", "ctrl", "fixed")


class StatesAbout(msgspec.Struct, frozen=True):
    """What states are of. ``robot`` is a key of `EMBODIMENTS`; by ``task_digest`` one sees that a task was changed.

    ``joints`` are the model's, as (name, numbers of qpos, of qvel); ``cameras`` those that the policy saw through, or
    would have if it had seen anything.
    """

    robot: str
    task_digest: str
    joints: tuple[tuple[str, int, int], ...]
    cameras: tuple[CameraMount, ...]


@dataclass(frozen=True, eq=False)
class EpisodeStates:
    """``time`` (n,), ``qpos`` (n, nq), ``qvel`` (n, nv) and ``ctrl`` (n, nu) of the whole scene; row 0 is the start.

    ``fixed`` (nmocap, 7) are positions and quaternions, w first, of objects that no robot can move.
    """

    about: StatesAbout
    time: Array
    qpos: Array
    qvel: Array
    ctrl: Array
    fixed: Array

    @classmethod
    def of(cls, about: StatesAbout, rows: Sequence[StateRow]) -> "EpisodeStates":
        """From what was kept of every control step; there is one at least."""
        time, qpos, qvel, ctrl, fixed = zip(*rows, strict=True)
        return cls(about, np.array(time), np.array(qpos), np.array(qvel), np.array(ctrl), fixed[0])

    def write(self, folder: Path) -> None:
        """Keep them in an episode's folder; PathNotWritable if that cannot be."""
        about = np.frombuffer(msgspec.json.encode(self.about), np.uint8)
        with replacing(folder / STATES) as file:
            np.savez_compressed(
                file, allow_pickle=False, about=about, **{name: getattr(self, name) for name in _ARRAYS}
            )


def read_states(folder: Path) -> EpisodeStates | None:
    """The states of the episode in a folder; None if none were kept, RunFolderError if they cannot be read."""
    path = folder / STATES
    try:
        with np.load(path, allow_pickle=False) as kept:
            about = msgspec.json.decode(kept["about"].tobytes(), type=StatesAbout)
            states = EpisodeStates(about, *(np.asarray(kept[name], np.float64) for name in _ARRAYS))
        _check(states)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as wrong:
        raise RunFolderError(f"cannot read {path}: {wrong}") from wrong
    return states


def _check(states: EpisodeStates) -> None:
    """ValueError when arrays do not fit each other."""
    count, joints = len(states.time), states.about.joints
    for name, width in {"qpos": sum(nq for _, nq, _ in joints), "qvel": sum(nv for _, _, nv in joints)}.items():
        if getattr(states, name).shape != (count, width):
            raise ValueError(f"{name} has shape {getattr(states, name).shape}, its joints need {(count, width)}")
    if not count or len(states.ctrl) != count or states.fixed.shape[1:] != (7,):
        raise ValueError("its arrays do not fit each other")

"""What the workers simulate now, for those who watch: a small file for each worker, which holds up no worker.

A worker replaces its file at most thirty times a second. Neither that it does so nor that the file is read changes
anything in its episode.
"""

import contextlib
import os
import time
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from urlab.evaluation.simulation.episode import Episode

_SUFFIX = ".live"
_PERIOD_S = 1 / 30
_NUMBERS = "<f8"

Numbers = NDArray[np.float64]

_encoder = msgspec.msgpack.Encoder()


class LiveEpisode(msgspec.Struct, frozen=True):
    """An episode as it is now. ``time_s`` and the state (qpos, qvel, ctrl; float64) are those of the whole scene.

    ``fixed`` has seven numbers for each mocap body, position and quaternion: objects that no robot can move.

    ``score`` is what it would get if it ended now; ``instruction`` is the goal in words.
    """

    pid: int
    task: str
    robot: str
    seed: int
    instruction: str
    step: int
    num_steps: int
    score: float
    is_done: bool
    time_s: float
    qpos: bytes
    qvel: bytes
    ctrl: bytes
    fixed: bytes

    def arrays(self) -> tuple[Numbers, Numbers, Numbers, Numbers]:
        """Positions, velocities, controls; a row for each mocap body."""
        given = (self.qpos, self.qvel, self.ctrl, self.fixed)
        qpos, qvel, ctrl, fixed = (np.frombuffer(one, _NUMBERS) for one in given)
        return qpos, qvel, ctrl, fixed.reshape(-1, 7)


_decoder = msgspec.msgpack.Decoder(LiveEpisode)


class LiveFile:
    """This process's file. A folder that cannot be written costs the watchers their view, and the episode nothing."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / f"{os.getpid()}{_SUFFIX}"
        self._part = self._file.with_suffix(".part")
        self._due_s = 0.0

    def tell(self, episode: Episode) -> None:
        """Keep an episode as it is now, unless that was just done; its begin and its end are always kept."""
        now_s = time.monotonic()
        if now_s < self._due_s and episode.timestep and not episode.done:
            return
        self._due_s = now_s + _PERIOD_S
        time_s, *arrays = episode.simulation.state()
        state = [array.astype(_NUMBERS).tobytes() for array in arrays]
        live = LiveEpisode(
            os.getpid(), episode.task.name, episode.simulation.embodiment.name, episode.seed, episode.instruction,
            episode.timestep, episode.task.num_steps, episode.score, episode.done, time_s, *state,
        )  # fmt: skip
        with contextlib.suppress(OSError):
            self._part.write_bytes(_encoder.encode(live))
            self._part.replace(self._file)

    def remove(self) -> None:
        """Nothing is simulated any more."""
        for file in (self._file, self._part):
            with contextlib.suppress(OSError):
                file.unlink(missing_ok=True)


def read_live(folder: Path) -> list[LiveEpisode]:
    """What the workers that live simulate, the one that was started first at the front."""
    found = []
    for file in folder.glob(f"*{_SUFFIX}"):
        with contextlib.suppress(OSError, msgspec.DecodeError):
            found.append(_decoder.decode(file.read_bytes()))
    return sorted((one for one in found if _is_alive(one.pid)), key=lambda one: one.pid)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True

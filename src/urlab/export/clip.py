"""The part of a recording that is exported, as states of a model."""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from urlab.errors import BadValue
from urlab.recording import PlayableRecording

Array = NDArray[np.float64]

MAX_SAMPLES = 200_000
_ROUNDING = 1e-9
"""Times are sums of timesteps: without a little room, rounding would decide which frame is shown."""


class RecordedState(NamedTuple):
    """A frame of a recording as a state of a model: its full arrays. ``frame_id`` is the frame's number from 1.

    ``recording`` is the name of the recording.
    """

    frame_id: int
    sim_time: float
    qpos: Array
    qvel: Array
    mocap_pos: Array
    mocap_quat: Array
    recording: str


@dataclass(frozen=True, eq=False)
class Clip:
    """Frames ``first`` to ``last`` of a recording that fits a model.

    What the recording lacks, other joints and mocap bodies, is as in ``qpos`` (nq,), ``mocap_pos`` (nmocap, 3) and
    ``mocap_quat`` (nmocap, 4), w first. ``nv`` is the length of the model's qvel.
    """

    playable: PlayableRecording
    first: int
    last: int
    nv: int
    qpos: Array
    mocap_pos: Array
    mocap_quat: Array

    def state(self, frame: int) -> RecordedState:
        """One frame of the recording, by its index."""
        qpos, qvel = self.qpos.copy(), np.zeros(self.nv)
        time_s = self.playable.write(frame, qpos, qvel)
        return RecordedState(frame + 1, time_s, qpos, qvel, self.mocap_pos, self.mocap_quat, self.playable.name)

    def part(self, first: int, last: int) -> "Clip":
        """Other frames of the same recording."""
        return replace(self, first=first, last=last)

    def all_frames(self) -> NDArray[np.intp]:
        """Every frame, in their order."""
        return np.arange(self.first, self.last + 1, dtype=np.intp)

    def sampled(self, rate_hz: float) -> NDArray[np.intp]:
        """The frames at a steady rate of simulated time, each the last one at that moment; BadValue if too many.

        Where the simulation was reset the time goes on.
        """
        elapsed = self.playable.recording.elapsed()[self.first : self.last + 1]
        seconds = float(elapsed[-1] - elapsed[0])
        samples = seconds * rate_hz * (1 + _ROUNDING) + 1
        if not math.isfinite(samples) or samples >= MAX_SAMPLES + 1:
            raise BadValue(
                f"{seconds:g} s at {rate_hz:g} per second are more than {MAX_SAMPLES} pictures; take a part of it, by "
                "from and to, or a lower fps"
            )
        moments = elapsed[0] + np.arange(int(samples)) / rate_hz
        places = np.searchsorted(elapsed, moments * (1 + _ROUNDING) + _ROUNDING / rate_hz, side="right") - 1
        return np.asarray(self.first + places, dtype=np.intp)


def frame_range(playable: PlayableRecording, from_s: float | None, to_s: float | None) -> tuple[int, int]:
    """The first and the last frame between two timestamps; without them, of all. BadValue when there is none."""
    recording = playable.recording
    first = 0 if from_s is None else recording.frame_at(from_s)
    last = recording.frame_count - 1 if to_s is None else recording.frame_at(to_s)
    if last < first:
        raise BadValue(f"from {from_s} is frame {first} of {playable.name!r}, to {to_s} is frame {last}, before it")
    return first, last

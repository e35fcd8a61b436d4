"""A recording as data: what was captured, frame by frame: joints, controls and sensors of a model."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from urlab.compile.compiled_scene import CompiledScene, JointSlot
from urlab.errors import BadValue

FloatArray = NDArray[np.float64]

LIVE = "live"
"""The name of a recording that was given none; the recorder's frames answer to it too, whatever they are called."""

QVEL_DIM_OF_QPOS_DIM = {7: 6, 4: 3, 1: 1}
"""Joints have 7 (free), 4 (ball) or 1 (hinge, slide) positions; this many velocities go with them."""


@dataclass(frozen=True, slots=True)
class RecordedJoint:
    """One joint of a recording: its full compiled name and how many columns it has in ``qpos`` and ``qvel``."""

    name: str
    qpos_dim: int
    qvel_dim: int


@dataclass(frozen=True, slots=True)
class RecordedSignals:
    """What a recording has beside joints: the names of its controls, and its sensors as (name, numbers)."""

    controls: tuple[str, ...] = ()
    sensors: tuple[tuple[str, int], ...] = ()

    @property
    def sensor_dim(self) -> int:
        """The numbers of all sensors."""
        return sum(dim for _, dim in self.sensors)


NO_SIGNALS = RecordedSignals()
_NOTHING: FloatArray = np.empty((0, 0))


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """Frames in the order of their capture; the arrays are read-only.

    ``times`` (n,) in simulated seconds, ``qpos`` (n, nq) and ``qvel`` (n, nv) in MuJoCo's units. The columns of
    the joints follow one another in the order of ``joints``. Times go backwards where the simulation was reset.
    ``ctrl`` (n, nu) is what led to each frame, ``sensordata`` (n, nsensordata) what MuJoCo had of it after that step;
    their columns are those of ``signals``, which a recording of another writer has none of.
    """

    name: str
    joints: tuple[RecordedJoint, ...]
    times: FloatArray
    qpos: FloatArray
    qvel: FloatArray
    signals: RecordedSignals = NO_SIGNALS
    ctrl: FloatArray = field(default_factory=lambda: _NOTHING)
    sensordata: FloatArray = field(default_factory=lambda: _NOTHING)

    def __post_init__(self) -> None:
        frames = len(self.times)
        columns = {
            "qpos": sum(one.qpos_dim for one in self.joints),
            "qvel": sum(one.qvel_dim for one in self.joints),
            "ctrl": len(self.signals.controls),
            "sensordata": self.signals.sensor_dim,
        }
        for attribute, width in (("times", None), *columns.items()):
            given = getattr(self, attribute)
            array = read_only(np.empty((frames, 0)) if given is _NOTHING else given)
            expected = (frames,) if width is None else (frames, width)
            if array.shape != expected:
                raise ValueError(f"{attribute} has shape {array.shape}, the joints and times need {expected}")
            object.__setattr__(self, attribute, array)

    @property
    def frame_count(self) -> int:
        """How many frames there are."""
        return len(self.times)

    def frame_at(self, time_s: float) -> int:
        """The frame at that timestamp, or the last one before it; of equal ones the first. BadValue before them all."""
        if not math.isfinite(time_s) or not (self.times <= time_s).any():
            raise BadValue(
                f"time is {time_s:g}; {self.name!r} has {self.frame_count} frames, from {self.times.min():g} s "
                f"to {self.times.max():g} s"
            )
        return int(np.argmax(np.where(self.times <= time_s, self.times, -np.inf)))

    def elapsed(self) -> FloatArray:
        """Simulated seconds since the first frame, (n,): they never go back, as times do where there was a reset."""
        return np.concatenate(([0.0], np.cumsum(np.maximum(np.diff(self.times), 0.0))))[: self.frame_count]

    def without_repeats(self) -> "Recording":
        """The recording without frames that equal the one before them in timestamp and state."""
        columns = (self.times[:, None], self.qpos, self.qvel, self.ctrl, self.sensordata)
        repeats = np.logical_and.reduce([(one[1:] == one[:-1]).all(axis=1) for one in columns])
        keep = np.concatenate(([True], ~repeats))[: self.frame_count]
        times, qpos, qvel, ctrl, sensordata = (
            one[keep] for one in (self.times, self.qpos, self.qvel, self.ctrl, self.sensordata)
        )
        return Recording(self.name, self.joints, times, qpos, qvel, self.signals, ctrl, sensordata)


def read_only(array: FloatArray) -> FloatArray:
    """A view of ``array`` as float64 that refuses writes; the array itself stays as it was."""
    view = np.asarray(array, dtype=np.float64).view()
    view.flags.writeable = False
    return view


def recorded_joints(slots: Sequence[JointSlot]) -> tuple[RecordedJoint, ...]:
    """The column layout of a model's full ``qpos`` and ``qvel``.

    Raises ValueError when the slots, in the given order, do not cover both arrays from 0 without gaps.
    """
    nq = nv = 0
    for slot in slots:
        if (slot.qpos.start, slot.qvel.start) != (nq, nv):
            raise ValueError(f"joint {slot.name!r} begins at {slot.qpos.start}/{slot.qvel.start}, not at {nq}/{nv}")
        nq, nv = slot.qpos.stop, slot.qvel.stop
    return tuple(
        RecordedJoint(one.name, one.qpos.stop - one.qpos.start, one.qvel.stop - one.qvel.start) for one in slots
    )


def recorded_signals(scene: CompiledScene) -> RecordedSignals:
    """The controls and sensors of a scene, in the order of ``ctrl`` and ``sensordata``."""
    named = {slot.id: slot.name for robot in scene.articulations for slot in robot.controls}
    model = scene.model
    controls = tuple(named.get(index, f"ctrl[{index}]") for index in range(int(model.nu)))
    sensors = [model.sensor(index) for index in range(int(model.nsensor))]
    return RecordedSignals(controls, tuple((one.name or f"sensor[{one.id}]", int(one.dim[0])) for one in sensors))

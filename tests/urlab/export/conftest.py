"""Recordings as clips, pictures that take no drawing, and films read back."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from urlab.compile.compiled_scene import JointSlot
from urlab.export import Clip, RecordedState
from urlab.recording import RecordedJoint, Recording, fitted
from urlab.video import ffmpeg

SIZE = (32, 24)


class GreyPictures:
    """A picture of one grey: the first joint's position is how bright it is."""

    size = SIZE
    is_closed = False

    def draw(self, state: RecordedState) -> NDArray[np.uint8]:
        return np.full((SIZE[1], SIZE[0], 3), round(state.qpos[0]), np.uint8)

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def pictures() -> GreyPictures:
    return GreyPictures()


@pytest.fixture
def make_clip() -> Callable[..., Clip]:
    """Of a robot with the joints hip and knee; the recording has the hip, at the given times and positions."""

    def make(times: Any, positions: Any = None, first: int = 0, last: int | None = None) -> Clip:
        times = np.asarray(times, dtype=float)
        qpos = np.zeros(len(times)) if positions is None else np.asarray(positions, dtype=float)
        recording = Recording("ep", (RecordedJoint("r_hip", 1, 1),), times, qpos[:, None], qpos[:, None] / 2)
        slots = [
            JointSlot(i, f"r_{name}", name, 3, slice(i, i + 1), slice(i, i + 1))
            for i, name in enumerate(("hip", "knee"))
        ]
        playable = fitted("ep", recording, slots)
        last = len(times) - 1 if last is None else last
        return Clip(playable, first, last, 2, np.array([7.0, 8.0]), np.zeros((1, 3)), np.array([[1.0, 0, 0, 0]]))

    return make


@pytest.fixture
def greys() -> Callable[[Path], list[int]]:
    """How bright every picture of a film is."""

    def read(path: Path) -> list[int]:
        command = [ffmpeg(), "-v", "error", "-i", str(path), "-f", "rawvideo", "-pix_fmt", "gray", "-"]
        raw = subprocess.run(command, capture_output=True, check=True).stdout
        return [round(float(one.mean())) for one in np.frombuffer(raw, np.uint8).reshape(-1, SIZE[0] * SIZE[1])]

    return read

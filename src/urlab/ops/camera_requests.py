"""What a step's ``include_cameras`` asks, and the frames that it gets."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from urlab.cameras import Capture, Frame
from urlab.errors import OpTimeout, ViewError
from urlab.ops.checks import one_of
from urlab.physics.snapshot import Snapshot
from urlab_wire.enums import CameraTiming

Asked = bool | Mapping[str, str] | None


@dataclass(frozen=True, slots=True)
class CameraOrder:
    """The cameras of a step as the caller calls them: those of this very state, those whose newest frame will do."""

    sync: tuple[str, ...] = ()
    latest: tuple[str, ...] = ()

    @classmethod
    def read(cls, capture: Capture, asked: Asked) -> "CameraOrder":
        """Refuse unknown names and timings; ``true`` is the newest frame of every camera."""
        if not asked:
            return cls()
        if isinstance(asked, bool):
            return cls(latest=tuple(names_of_all(capture)))
        timings = {name: one_of(f"include_cameras[{name!r}]", CameraTiming, word) for name, word in asked.items()}
        for name in timings:
            capture.resolve(name)
        chosen = {timing: tuple(name for name, one in timings.items() if one is timing) for timing in CameraTiming}
        return cls(sync=chosen[CameraTiming.SYNC], latest=chosen[CameraTiming.LATEST])

    def take(self, capture: Capture, snapshot: Snapshot | None) -> tuple[dict[str, Any], list[str]]:
        """The frames by name, and what went wrong: a step that has been made is not lost for want of a picture."""
        frames: dict[str, Frame] = {}
        try:
            if self.sync and snapshot is not None:
                frames |= capture.sync(self.sync, snapshot)
            if self.latest:
                frames |= capture.latest(self.latest)
        except (ViewError, OpTimeout) as dark:
            return {}, [f"there are no camera frames: {dark.message}"]
        return {name: _block(frame) for name, frame in frames.items()}, []


def names_of_all(capture: Capture) -> list[str]:
    """Every camera once: a robot's by its bare name where that is unique, else as ``prefix/name``."""
    bare = {name: name.rpartition("/")[2] for name in capture.cameras}
    count = Counter(bare.values())
    return [short if count[short] == 1 else name for name, short in bare.items()]


def _block(frame: Frame) -> dict[str, Any]:
    return {**frame.metadata(), "data": frame.data}

"""What is told about cameras beside their frames."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from urlab_client.types.reading import flags


@dataclass(frozen=True)
class SegmentInfo:
    """One colour of segmentation pictures: ``color`` is (r, g, b) within 0 and 255, ``name`` what it stands for."""

    id: int
    color: tuple[int, int, int]
    name: str

    @property
    def bgra(self) -> tuple[int, int, int, int]:
        """The colour as a pixel of a semantic or instance frame has it."""
        red, green, blue = self.color
        return blue, green, red, 255

    @classmethod
    def from_wire(cls, block: Mapping[str, Any]) -> "SegmentInfo":
        """Read one entry of the handshake's table."""
        red, green, blue = block.get("color") or (0, 0, 0)
        return cls(int(block.get("id") or 0), (int(red), int(green), int(blue)), str(block.get("name") or ""))


@dataclass
class CameraStreaming:
    """How a camera streams: whether at all, over what, how often a second, and where."""

    streaming: bool
    zmq: bool
    shm: bool
    rate_hz: float
    zmq_endpoint: str | None = None
    zmq_topic: str | None = None

    @classmethod
    def from_wire(cls, block: Mapping[str, Any]) -> "CameraStreaming":
        """Read one camera of a set_camera_streaming reply."""
        return cls(
            **flags(block, "streaming", "zmq", "shm"),
            rate_hz=float(block.get("rate_hz") or 0.0),
            zmq_endpoint=block.get("zmq_endpoint"),
            zmq_topic=block.get("zmq_topic"),
        )


def read_segmentation(table: Mapping[str, Any] | None) -> dict[str, list[SegmentInfo]]:
    """The handshake's table of colours, by camera mode."""
    return {mode: [SegmentInfo.from_wire(block) for block in blocks or ()] for mode, blocks in (table or {}).items()}

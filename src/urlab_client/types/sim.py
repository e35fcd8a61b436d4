"""Results of the play lifecycle, recording and replay."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from urlab_wire.enums import PIEState


def pie_state(word: str | None) -> PIEState:
    """The state of that word; a word that this client does not know counts as OFF."""
    return PIEState(word) if word in set(PIEState) else PIEState.OFF


@dataclass
class PIEStartResult:
    """How ``sim.start`` ended. ``handshake_payload`` is there on READY, and already absorbed."""

    state: PIEState
    compile_error: str = ""
    handshake_payload: dict[str, Any] | None = None

    @property
    def is_ready(self) -> bool:
        """Whether the simulation runs."""
        return self.state == PIEState.READY

    @classmethod
    def from_wire(cls, reply: Mapping[str, Any]) -> "PIEStartResult":
        """Read a begin_pie reply."""
        return cls(pie_state(reply.get("state")), str(reply.get("compile_error") or ""), reply.get("handshake_payload"))


@dataclass
class PIEStatus:
    """Where the play lifecycle stands; ``sim_time`` in seconds while a simulation runs.

    ``level``, ``mode`` and ``paused`` are there when the server tells them (an extension of ours).
    """

    state: PIEState
    compile_error: str = ""
    sim_time: float | None = None
    level: str | None = None
    mode: str | None = None
    paused: bool | None = None

    @classmethod
    def from_wire(cls, reply: Mapping[str, Any]) -> "PIEStatus":
        """Read a pie_status reply."""
        extras = {name: reply.get(name) for name in ("sim_time", "level", "mode", "paused")}
        return cls(pie_state(reply.get("state")), str(reply.get("compile_error") or ""), **extras)


@dataclass
class RecordingHandle:
    """A recording that has begun. ``max_duration_s`` is its rolling window of simulated time."""

    name: str
    max_duration_s: float | None = None


@dataclass
class RecordingSummary:
    """What a recording holds: one frame per physics step."""

    frame_count: int
    sim_duration_s: float


@dataclass
class ReplaySession:
    """A recording that is loaded for replay."""

    name: str
    total_frames: int = 0
    source_path: Path | None = None


@dataclass
class ReplayStatus:
    """What is being replayed."""

    active_session: str
    total_frames: int = 0

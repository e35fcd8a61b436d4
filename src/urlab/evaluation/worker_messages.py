"""What the server and a worker process say to each other through their pipe. Both ends are ours."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from urlab.evaluation.actions import Action
from urlab.evaluation.episode_result import EpisodeResult
from urlab.evaluation.tasks.task import Task


@dataclass(frozen=True)
class WorkerSettings:
    """The first message: how the worker runs all its episodes."""

    cameras: bool
    privileged: bool
    videos: bool


@dataclass(frozen=True)
class Begin:
    """Begin an episode; one that is running is given up. Answer: `Seen`. ``text``: arrays as base64 text."""

    task: Task
    seed: int
    hold_steps: int
    episode_id: str
    folder: Path
    text: bool


@dataclass(frozen=True)
class Step:
    """Carry out actions until they or the episode end. Answer: `Seen`.

    It has the observation after the last action; if the episode ended, only for those who ask for it by ``terminal``.
    """

    actions: tuple[Action, ...]
    text: bool
    terminal: bool = False


@dataclass(frozen=True)
class Flush:
    """Wait until all evidence is on disk. Answer: `Seen`."""


@dataclass(frozen=True)
class Stop:
    """Flush and end. No answer."""


@dataclass(frozen=True)
class Seen:
    """``observation`` is encoded. ``result`` is there when the episode has ended; ``problems`` are about evidence."""

    observation: dict[str, Any] | None = None
    result: EpisodeResult | None = None
    executed: int = 0
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class Failed:
    """The worker could not do it; its episode is lost, the process lives on."""

    reason: str


Message = Begin | Step | Flush | Stop
Answer = Seen | Failed

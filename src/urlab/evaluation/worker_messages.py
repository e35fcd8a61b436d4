"""What the server and a worker process say to each other through their pipe. Both ends are ours.

A message is a few typed values; what is large or has no type for it goes along as its body.
"""

from typing import Any, NamedTuple

import msgspec

from urlab.evaluation.actions import Action
from urlab.evaluation.episode_result import EpisodeResult
from urlab.evaluation.http.wire import Wire


class WorkerSettings(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """The first message: how the worker runs all its episodes."""

    cameras: bool
    privileged: bool
    videos: bool


class Begin(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Begin an episode; one that is running is given up. The body is a pickled task. Answer: `Seen` in ``wire``."""

    seed: int
    hold_steps: int
    episode_id: str
    folder: str
    wire: Wire


class Step(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Carry out actions until they or the episode end. Answer: `Seen` in ``wire``.

    It has the observation after the last action; if the episode ended, only for those who ask for it by ``terminal``.
    """

    actions: tuple[Action, ...]
    wire: Wire
    terminal: bool = False


class Flush(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Wait until all evidence is on disk. Answer: `Seen`."""


class Stop(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Flush and end. No answer."""


class Seen(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """The body is an observation as `tell` makes it, or nothing. ``result`` is there when the episode has ended.

    ``problems`` are about evidence.
    """

    result: EpisodeResult | None = None
    executed: int = 0
    problems: tuple[str, ...] = ()


class Failed(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """The worker could not do it; its episode is lost, the process lives on."""

    reason: str


Message = WorkerSettings | Begin | Step | Flush | Stop | Seen | Failed
Body = bytes | memoryview


class Letter(NamedTuple):
    """A message and its body; a large one that was received is seen where it was read."""

    message: Any
    body: Body = b""

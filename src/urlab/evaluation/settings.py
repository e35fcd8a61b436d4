"""How an evaluation server is started, and what a run is to do. Imports little: the command line reads it at once."""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from urlab.evaluation.policies import PolicySource

BENCHMARK = "urlab"
"""The one benchmark there is: the first folder of the results and of every episode_id."""


class VideoChoice(StrEnum):
    """Whose videos are kept."""

    NONE = "none"
    FAILURES = "failures"
    ALL = "all"


@dataclass(frozen=True)
class TimeLimits:
    """Seconds that a worker may take; beyond them its process is ended and the client gets HTTP 504.

    ``busy_s`` is what a worker that is to be ended has for its last answer, ``end_s`` for its files after that.
    """

    step_s: float = 600.0
    reset_s: float = 600.0
    flush_s: float = 120.0
    busy_s: float = 4.0
    end_s: float = 30.0


@dataclass(frozen=True)
class ServerSettings:
    """``tasks`` are names, files of one's own, or ``all``; the default job runs each with ``episodes`` seeds.

    ``port`` 0 is any free port. ``workers`` is the most worker processes at a time. ``absolute``: what an action
    without ``is_rel`` means. ``videos`` needs ``cameras``. ``run_id`` of an earlier run resumes it.
    """

    host: str = "127.0.0.1"
    port: int = 8087
    workers: int = 16
    tasks: list[str] = field(default_factory=lambda: ["all"])
    episodes: int = 10
    seed: int = 0
    cameras: bool = True
    absolute: bool = False
    privileged: bool = False
    results: Path = Path("eval-results")
    run_id: str | None = None
    token: str | None = None
    videos: bool = True
    ready_file: Path | None = None
    max_body_bytes: int = 8 << 20
    limits: TimeLimits = TimeLimits()


@dataclass(frozen=True)
class RunPlan:
    """One policy on some tasks, ``episodes`` seeds each from ``seed`` on.

    Without ``url`` a server is started for it and ended after it. With ``url`` that server is asked to run ``tasks``;
    None goes on with the job that it has. ``cameras`` and ``videos`` are for our own server only. ``policy_arguments``
    are those, as they were written, that make the policy another one.
    """

    policy: "PolicySource"
    tasks: tuple[str, ...] | None
    episodes: int
    seed: int
    workers: int
    cameras: bool
    videos: VideoChoice
    results: Path
    run_id: str | None = None
    url: str | None = None
    token: str | None = None
    command: str = ""
    policy_arguments: tuple[str, ...] = ()

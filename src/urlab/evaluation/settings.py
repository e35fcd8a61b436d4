"""How an evaluation server is started. Imports little: the command line reads it at once."""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from urlab.config import RenderProfile

if TYPE_CHECKING:
    from urlab.evaluation.camera_config import CameraChoice

BENCHMARK = "urlab"
"""The one benchmark there is: the first folder of the results and of every episode_id."""

TOKEN_VARIABLE = "URLAB_EVAL_TOKEN"
"""The environment variable that a server's bearer token is read from."""

HOLD_STEPS_FIRST_CLIENTS = 100
"""How long a subgoal must last for clients of the first generation of the protocol, in control steps."""
HOLD_STEPS_LATER_CLIENTS = 50
"""The same for later clients."""

RENDER_PROFILE = RenderProfile.FAST
"""How evaluation draws, on every machine: a policy's numbers depend on its pictures, so those must not look different
where there is a GPU. Fast is what a CPU can afford, and does without shadow maps and samples, in which drivers differ.
"""


class MetricShape(StrEnum):
    """How the final ``metric`` of a reply is written; in each, a task that is not complete is marked ``*(k/n)task``."""

    RATES = "rates"
    """``{task: success rate}``, plain numbers."""
    COUNTED = "counted"
    """``{"(n/n)task": {"score", "sr"}}``."""
    NAMED = "named"
    """``{task: {"score", "sr"}}``."""


@dataclass(frozen=True)
class ClientGeneration:
    """How the requests of one generation of clients are read, and how they are answered.

    ``hold_steps``: how long a subgoal must last, in control steps. ``is_rel``: what an action that does not say means.
    """

    name: str
    hold_steps: int
    is_rel: bool
    metric: MetricShape


FIRST_CLIENTS = ClientGeneration("first", HOLD_STEPS_FIRST_CLIENTS, is_rel=True, metric=MetricShape.RATES)
"""Announce their workers with /create_workers."""
SECOND_CLIENTS = ClientGeneration("second", HOLD_STEPS_LATER_CLIENTS, is_rel=False, metric=MetricShape.RATES)
"""Announce their workers too, but choose their task with /load_config, or send ``base_motion``."""
LATER_CLIENTS = ClientGeneration("later", HOLD_STEPS_LATER_CLIENTS, is_rel=False, metric=MetricShape.COUNTED)
"""Look at /docs before they reset."""
OWN_CLIENTS = ClientGeneration("our own", HOLD_STEPS_LATER_CLIENTS, is_rel=True, metric=MetricShape.NAMED)
"""`runs.client.EvalClient`, which says so in a header."""

OWN_CLIENT_HEADER = "urlab-client"
RUN_ID_HEADER = "run_id"
"""The run that a client means; GenManip's clients send it as well."""

FIRST_ROBOT = "franka_panda"
"""The robot of a server that was started without tasks: the one that GenManip's clients drive without options."""


class VideoChoice(StrEnum):
    """Whose videos are kept."""

    NONE = "none"
    FAILURES = "failures"
    ALL = "all"


@dataclass(frozen=True)
class TimeLimits:
    """Seconds that a worker may take; beyond them its process is ended and the client gets HTTP 504.

    ``busy_s`` is what a worker that is to be ended has for its last answer, ``end_s`` for its files after that.
    ``head_s`` is what a client may take for the head of a request, from its first byte or from the start of the
    connection, and ``body_s`` for the body after that; beyond them its connection ends.
    """

    step_s: float = 600.0
    reset_s: float = 600.0
    flush_s: float = 120.0
    busy_s: float = 4.0
    end_s: float = 30.0
    head_s: float = 10.0
    body_s: float = 60.0


@dataclass(frozen=True)
class ServerSettings:
    """``tasks`` are names, files of one's own, or ``all``; the default job runs each with ``episodes`` seeds.

    Tasks of several robots become one job for each robot, which follow each other, unless ``one_job``. ``port`` 0 is
    any free port. ``workers`` is the most worker processes at a time. ``absolute`` or ``relative``: what an action
    without ``is_rel`` means; without them that depends on the client's generation. ``videos`` needs ``cameras``.
    ``run_id`` of an earlier run resumes it. ``camera_choice`` says which cameras there are, None those that we ship.
    In ``live_folder`` each worker tells what it simulates, for those who watch; None is nowhere. With ``ray``, the
    address of a Ray cluster, workers are actors there.

    ``share`` lets other users of this machine in, and so does a ``token``, which requests must carry then.
    ``allowed_hosts`` are further names that clients may ask for, see `urlab.access.web`. With ``tls``, a
    certificate and its key in PEM files, the server speaks HTTPS.
    """

    host: str = "127.0.0.1"
    port: int = 8087
    workers: int = 16
    tasks: list[str] = field(default_factory=lambda: [FIRST_ROBOT])
    one_job: bool = False
    episodes: int = 10
    seed: int = 0
    cameras: bool = True
    absolute: bool = False
    relative: bool = False
    privileged: bool = False
    results: Path = Path("eval-results")
    run_id: str | None = None
    token: str | None = None
    share: bool = False
    allowed_hosts: tuple[str, ...] = ()
    tls: tuple[Path, Path] | None = None
    videos: bool = True
    ready_file: Path | None = None
    max_body_bytes: int = 8 << 20
    limits: TimeLimits = TimeLimits()
    camera_choice: "CameraChoice | None" = None
    live_folder: Path | None = None
    ray: str | None = None

    @property
    def is_rel(self) -> bool | None:
        """What actions without ``is_rel`` mean for all clients; None if their generation decides."""
        return None if self.absolute == self.relative else self.relative

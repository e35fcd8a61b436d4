"""What was found of policy evaluation, as it is written to JSON."""

from typing import Any

import msgspec

from urlab.cli.bench.results import Machine, Timing, Verdict


class CpuResult(msgspec.Struct, kw_only=True):
    """CPU milliseconds per request: of the client's process and of the server's; the workers have their own."""

    client_ms: float
    server_ms: float


class PairResult(msgspec.Struct, kw_only=True):
    """Two at once against one: ``ratio`` is steps per second of both together over those of one alone."""

    one: Timing
    two: Timing
    ratio: float


class MemoryResult(msgspec.Struct, kw_only=True):
    """Resident memory after all steps, MB; ``worker_own_mb`` is what a worker shares with nobody."""

    server_mb: float
    worker_mb: list[float]
    worker_own_mb: list[float]


class StepsResult(msgspec.Struct, kw_only=True):
    """Control steps of one robot, with cameras or without.

    ``http`` is one worker through HTTP. Its floors, with the same actions: ``episode`` is the same in process (step,
    goal, observation, and pictures if there are any), ``simulation`` the step alone, ``physics`` its 16 mj_steps with
    the same controls. ``render`` draws all cameras, ``bare_render`` does so with nothing of ours; null without cameras.

    ``added_ms`` is what HTTP and the processes add to an episode in process, p50. ``workers`` are two in one request
    against one; ``bare_pair`` is the same of processes told through pipes to run that physics and nothing else, null
    with cameras. ``judged`` is ``workers`` in the ``judged_rounds`` in which the bare pair shows that there were two
    cores; null if there were none. ``same_state`` says that every block ended in the same state everywhere.
    """

    scene: str
    task: str
    cameras: bool
    same_state: bool
    ready_s: float
    first_reset_s: float
    http: Timing
    episode: Timing
    simulation: Timing
    physics: Timing
    render: Timing | None
    bare_render: Timing | None
    added_ms: float
    workers: PairResult
    judged: PairResult | None
    judged_rounds: int
    bare_pair: PairResult | None
    cpu_one: CpuResult
    cpu_two: CpuResult
    memory: MemoryResult
    round_p50_us: dict[str, list[float]]


class TaskResult(msgspec.Struct, kw_only=True):
    """Episodes of one task in the whole evaluation."""

    task: str
    episodes: int
    successes: int
    mean_score: float
    mean_steps: float


class WholeResult(msgspec.Struct, kw_only=True):
    """An evaluation with oracles, server's start and end included; ``problem`` is what ended it early.

    ``is_judged``: all tasks, with as many seeds as the bar speaks of.
    """

    workers: int
    episodes: int
    took_s: float
    control_steps: int
    steps_per_s: float
    tasks: list[TaskResult]
    is_complete: bool
    problem: str | None
    is_judged: bool


class EvalResult(msgspec.Struct, kw_only=True):
    """Everything."""

    format: int = 1
    started: str
    duration_s: float
    plan: dict[str, Any]
    machine: Machine
    renderer: str
    steps: list[StepsResult]
    whole: WholeResult
    verdicts: list[Verdict]
    passed: bool

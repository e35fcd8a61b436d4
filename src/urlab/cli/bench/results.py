"""What a run found, as it is written to JSON. Times carry their unit; sizes are in bytes."""

import msgspec


class Timing(msgspec.Struct, kw_only=True):
    """Many durations of one thing, in microseconds; ``rate_hz`` is how often it could be done in a row."""

    count: int
    mean_us: float
    min_us: float
    p50_us: float
    p90_us: float
    p99_us: float
    p999_us: float
    max_us: float
    rate_hz: float


class StepResult(msgspec.Struct, kw_only=True):
    """One case. ``ratio`` is raw p50 / (echo p50 + plain p50), ``ratio_of_rounds`` the same for each round alone.

    ``plain`` runs without pause; ``plain_woken`` runs each time after a round trip, on a processor that has just
    slept, as a server's does, and ``ratio_woken`` counts that instead. ``same_state`` says that server, embedded
    server and plain loop ended every block in bit-equal states.
    """

    scene: str
    observations: str
    n_steps: int
    request_bytes: int
    reply_bytes: int
    contacts: int
    raw_zmq: Timing
    echo: Timing
    plain: Timing
    plain_woken: Timing
    client_zmq: Timing
    client_inprocess: Timing
    ratio: float
    ratio_woken: float
    ratio_of_rounds: list[float]
    same_state: bool


class StartResult(msgspec.Struct, kw_only=True):
    """From spawning `urlab serve` to its ready file, and the memory that it then holds (resident, MB)."""

    scene: str
    ready_s: list[float]
    rss_ready_mb: list[float]


class MemoryResult(msgspec.Struct, kw_only=True):
    """Resident memory of one scene's server, MB, before and after all its step requests."""

    scene: str
    rss_ready_mb: float
    rss_stepped_mb: float


class LatenessResult(msgspec.Struct, kw_only=True):
    """How long after its due time each live step began, milliseconds; ``quantiles_ms`` has percentiles 0 to 100."""

    steps: int
    p50_ms: float
    p99_ms: float
    max_ms: float
    quantiles_ms: list[float]


class PacingResult(msgspec.Struct, kw_only=True):
    """Live mode. CPU is in percent of one core, over the server's whole process."""

    scene: str
    timestep_s: float
    watched_s: float
    real_time_factor: float
    lateness: LatenessResult
    cpu_live_percent: float
    cpu_paused_percent: float
    cpu_direct_idle_percent: float


class SoakResult(msgspec.Struct, kw_only=True):
    """Lockstep step(1) requests. ``growth_mb`` is from the end of the first tenth to the end, per 100,000 beside it."""

    scene: str
    asked: int
    answered: int
    errors: int
    first_error: str | None
    duration_s: float
    rate_hz: float
    rss_steps: list[int]
    rss_mb: list[float]
    growth_mb: float
    growth_mb_per_100k: float


class AuthoringResult(msgspec.Struct, kw_only=True):
    """A grid of one-joint robots, spawned and played over the wire.

    ``play_s`` is from asking to play to a client that knows the scene; ``bare_s`` is MjSpec's attach and compile of the
    same scene, ``ratio`` the total beside it, ``own_us_per_cell`` what is ours alone.
    """

    cells: int
    spawn_s: float
    play_s: float
    bare_s: float
    ratio: float
    own_us_per_cell: float


class CameraResult(msgspec.Struct, kw_only=True):
    """A step with one sync camera. ``bare`` is mj_step and mujoco.Renderer with the settings of the fast profile, in a
    process of its own, and ``default`` the same with MuJoCo's own settings; the others are whole client calls.

    ``rate_of_bare`` is how many frames a second come in process for each bare one; ``zmq_over_inprocess`` and
    ``fast_over_default`` compare times.
    """

    width: int
    height: int
    mode: str
    bare: Timing
    default: Timing
    inprocess: Timing
    zmq: Timing
    rate_of_bare: float
    zmq_over_inprocess: float
    fast_over_default: float


class StreamingResult(msgspec.Struct, kw_only=True):
    """Live physics while cameras stream, with one subscriber that never reads. ``frames_hz`` is per camera."""

    scene: str
    cameras: list[str]
    watched_s: float
    real_time_factor: float
    lateness: LatenessResult
    frames_hz: list[float]


class Machine(msgspec.Struct, kw_only=True):
    """Where and with what it ran. ``load_*`` is the one-minute load average; a busy machine spoils the numbers."""

    cpu: str
    cores: int
    memory_gb: float
    system: str
    versions: dict[str, str]
    load_before: float
    load_after: float


class Verdict(msgspec.Struct, kw_only=True):
    """One bar: the worst value found and whether it passes."""

    name: str
    bar: str
    value: float
    shown: str
    passed: bool


class BenchResult(msgspec.Struct, kw_only=True):
    """Everything."""

    format: int = 1
    started: str
    duration_s: float
    plan: dict[str, int | float | list[str | int]]
    machine: Machine
    start: StartResult
    stepping: list[StepResult]
    memory: list[MemoryResult]
    pacing: PacingResult
    authoring: list[AuthoringResult]
    cameras: list[CameraResult]
    streaming: StreamingResult
    soak: SoakResult
    verdicts: list[Verdict]
    passed: bool


def to_json(result: msgspec.Struct) -> str:
    """Readable JSON text."""
    return msgspec.json.format(msgspec.json.encode(result), indent=2).decode()

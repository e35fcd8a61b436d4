"""What was found of the bridge, as it is written to JSON."""

import msgspec

from urlab.cli.bench.results import Machine, Timing, Verdict


class RateResult(msgspec.Struct, kw_only=True):
    """One topic as its subscriber got it; ``silence_ms`` is the longest time without a message."""

    topic: str
    count: int
    rate_hz: float
    silence_ms: float


class AgeResult(msgspec.Struct, kw_only=True):
    """How old states were when they arrived, milliseconds of the wall clock since the server published them."""

    count: int
    p50_ms: float
    p99_ms: float
    max_ms: float


class LoadResult(msgspec.Struct, kw_only=True):
    """The bridge under one load. CPU is in percent of one core; ``rates`` are by what they are of.

    ``age`` is that of joint states in the subscriber, ``direct_age`` that of the same states in a bare subscriber of
    the server's own stream. Both are null where nobody subscribes.
    """

    load: str
    watched_s: float
    bridge_cpu_percent: float
    server_cpu_percent: float
    rates: dict[str, RateResult]
    age: AgeResult | None
    direct_age: AgeResult | None


class MessageResult(msgspec.Struct, kw_only=True):
    """One kind of message: ``whole`` is converted, serialised and published, ``bare`` its bytes published as they are.

    Both had one subscriber, in another process.
    """

    what: str
    type_name: str
    size_bytes: int
    whole: Timing
    bare: Timing


class Ros2Scene(msgspec.Struct, kw_only=True):
    """One scene. ``decode`` is what it takes to decode a state, once for all topics that are made of it."""

    scene: str
    physics_hz: float
    loads: list[LoadResult]
    decode: Timing
    messages: list[MessageResult]


class Ros2Result(msgspec.Struct, kw_only=True):
    """Everything."""

    format: int = 1
    started: str
    duration_s: float
    plan: dict[str, int | float | list[str]]
    machine: Machine
    scenes: list[Ros2Scene]
    verdicts: list[Verdict]
    passed: bool

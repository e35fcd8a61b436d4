"""What a comparison of the transports found, as it is written to JSON."""

import msgspec

from urlab.cli.bench.results import Machine, SoakResult, Timing, Verdict


class ClientResult(msgspec.Struct, kw_only=True):
    """`client.step()` over one transport. ``*_cpu`` are CPU seconds of a process per second of run.

    An embedded server is in the client's process: its ``server_cpu`` is null.
    """

    step: Timing
    steps_per_s: float
    client_cpu: float
    server_cpu: float | None


class RawRequest(msgspec.Struct, kw_only=True):
    """A request from a bare socket, encoded beforehand, and its floors: bare echo and plain loop, all placed alike.

    ``a_core_each`` says that this process had one core and the far end another; else they were where the system liked.
    """

    a_core_each: bool
    request: Timing
    echo: Timing
    plain: Timing

    @property
    def ratio(self) -> float:
        """The request's median against the floors'."""
        return self.request.p50_us / (self.echo.p50_us + self.plain.p50_us)


class TransportsCase(msgspec.Struct, kw_only=True):
    """One kind of step, over every transport.

    ``echoes`` are bare round trips of frames of the same sizes, ``plain`` is the same physics without a server.
    ``raw_tcp`` is the request over TCP from a bare socket, with a core for each end, ``raw_tcp_unplaced`` the same
    where the system likes. ``same_state`` says that every client ended every block in the plain loop's state, bit for
    bit. ``round_p50_us`` has the median of each round alone, by way: how far they lie apart tells how steady the
    machine was.
    """

    scene: str
    observations: str
    n_steps: int
    request_bytes: int
    reply_bytes: int
    same_state: bool
    clients: dict[str, ClientResult]
    echoes: dict[str, Timing]
    raw_tcp: RawRequest
    raw_tcp_unplaced: RawRequest
    plain: Timing
    round_p50_us: dict[str, list[float]]


class IdleResult(msgspec.Struct, kw_only=True):
    """Percent of one core while nothing is asked and nobody subscribes: a server's, and a connected client's.

    ``paused_*`` is live and paused, ``direct_*`` direct after a burst of steps.
    """

    scene: str
    watched_s: float
    paused_server_percent: float
    paused_client_percent: float
    direct_server_percent: float
    direct_client_percent: float


class ShmSoakResult(msgspec.Struct, kw_only=True):
    """Lockstep `client.step()` through shared memory; the client's memory beside the server's, in MB."""

    lockstep: SoakResult
    client_rss_mb: list[float]
    client_growth_mb: float
    client_growth_mb_per_100k: float


class TransportsResult(msgspec.Struct, kw_only=True):
    """Everything."""

    format: int = 1
    started: str
    duration_s: float
    plan: dict[str, int | float | list[str]]
    machine: Machine
    cases: list[TransportsCase]
    idle: IdleResult
    soak: ShmSoakResult
    verdicts: list[Verdict]
    passed: bool

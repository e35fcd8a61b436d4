"""Step requests over every transport beside their floors, and a soak: very many of them in lockstep."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import msgspec
import zmq

from benchmarks.echoes import Echo, bare_socket, echoing, echoing_in_shm
from benchmarks.measuring import Bar, BenchmarkError, Plan, Rounds, Subject, Tick, Timing, a_core_each, bar
from benchmarks.processes import Server, connect, own_rss_mb
from benchmarks.reporting import Table
from benchmarks.scenes import PlainLoop, restart, scene_targets, shows
from urlab import launch
from urlab_client import URLabClient, URLabRPCError
from urlab_client.transports import ServerAddress, ShmTransport, open_transport
from urlab_wire import encode

TRANSPORTS = {"inprocess": "in process", "shm": "shared memory", "ipc": "ZMQ ipc", "tcp": "ZMQ tcp"}
"""Every way that a client reaches a server, and its name in tables."""

PLACED = "placed_"
"""Prefix of what was measured with this process on one core and the far end on another."""

_STEP_COUNTS = (1, 10)
_SHORT_PATHS = Path("/tmp")
"""A socket's path may have a hundred letters or so, and the folder for temporary files may have as many already."""

_PORTIONS = 40
_MAX_ERRORS = 100


@dataclass(frozen=True, slots=True)
class Case:
    """One kind of step request."""

    scene: str
    observations: str
    n_steps: int


class CaseResult(msgspec.Struct, kw_only=True):
    """One case. ``timings`` are by subject: `client.step()` by transport; ``echo_*`` are bare round trips of frames of
    the same sizes; ``plain`` is the same physics without a server, ``plain_woken`` the same each time after a round
    trip, on a processor that has just slept; ``raw_tcp`` is the request from a bare socket, encoded beforehand.
    Those with ``placed_`` had a core for each end. ``*_cpu`` are CPU seconds per second of run, by transport.

    ``same_state`` says that every client ended every block in the plain loop's state, bit for bit.
    """

    scene: str
    observations: str
    n_steps: int
    request_bytes: int
    reply_bytes: int
    same_state: bool
    timings: dict[str, Timing]
    client_cpu: dict[str, float]
    server_cpu: dict[str, float]
    round_p50_us: dict[str, list[float]]

    @property
    def label(self) -> str:
        """For tables."""
        return f"{self.scene} {self.observations} step({self.n_steps})"

    @property
    def is_judged(self) -> bool:
        """Whether the bars of latency look at this case."""
        return self.n_steps == 1 and self.observations == "standard"

    def p50_us(self, subject: str) -> float:
        """The median of a subject."""
        return self.timings[subject].p50_us

    def floor_ratio(self, prefix: str = "", loop: str = "plain") -> float:
        """The raw request's median against bare echo + plain loop."""
        floor_us = self.p50_us(f"{prefix}echo_tcp") + self.p50_us(prefix + loop)
        return self.p50_us(f"{prefix}raw_tcp") / floor_us


def step_frame(client: URLabClient, case: Case) -> bytes:
    """What ``client.step()`` would send in that case, in the client's session."""
    request = {
        "op": "step",
        "session_id": client.session_id,
        "n_steps": case.n_steps,
        "per_articulation": {prefix: one.command() for prefix, one in client.articulations.items()},
        "observations": case.observations,
        "include_cameras": False,
    }
    return encode(request)


def connect_shm(endpoint: str, **options: Any) -> tuple[URLabClient, ShmTransport]:
    """A client in shared memory, and its transport: what cannot go there would go, unnoticed, over the sockets."""
    base, _, port = endpoint.rpartition(":")
    transport = open_transport("shm", ServerAddress(base, int(port), 5555, 5000))
    assert isinstance(transport, ShmTransport)
    client = connect(endpoint, transport=transport, **options)
    try:
        check_attached(transport)
    except BenchmarkError:
        client.close()
        raise
    return client, transport


def check_attached(transport: ShmTransport) -> None:
    """BenchmarkError when requests do not go through shared memory (any more)."""
    if not transport.is_attached:
        raise BenchmarkError("the client does not use the server's shared memory: its log says why")


class ScenePaths:
    """A typed client per transport, each with a server of its own, a raw client over TCP, and a plain loop.

    A session belongs to one client, so servers are not shared; the raw client uses the session of the typed one.
    ``longest`` is the largest number of steps that a block may take; ``rss_ready_mb`` is the memory of the last server
    before its first client.
    """

    def __init__(self, scene: str, transports: Sequence[str], longest: int, opened: ExitStack) -> None:
        self.servers: dict[str, Server] = {}
        self.clients: dict[str, URLabClient] = {}
        self._shm: ShmTransport | None = None
        folder = Path(opened.enter_context(TemporaryDirectory(prefix="urlab-bench-", dir=_SHORT_PATHS)))
        targets = scene_targets(scene, folder)
        self.clients["inprocess"] = opened.enter_context(launch(targets, project=folder / "project"))
        for name in transports[1:]:
            options = ("--host", f"ipc://{folder}/s") if name == "ipc" else ()
            server = self.servers[name] = opened.enter_context(Server([*targets, *options]))
            self.rss_ready_mb = server.rss_mb
            if name == "shm":
                client, self._shm = connect_shm(server.step_endpoint)
            else:
                client = connect(server.step_endpoint)
            self.clients[name] = opened.enter_context(client)
        tcp = self.servers["tcp"]
        self.raw = opened.enter_context(bare_socket(tcp.step_endpoint, tcp.pid))
        for client in self.clients.values():
            restart(client)
        self.plain = PlainLoop(self.clients["inprocess"], longest)

    def use(self, case: Case, echoes: Mapping[str, Echo]) -> tuple[int, int]:
        """Get ready for a case; the sizes of its request and its reply in bytes."""
        self.plain.n_steps = case.n_steps
        self.raw.frame = step_frame(self.clients["tcp"], case)
        sizes = len(self.raw.frame), len(self.raw.once())
        for echo in echoes.values():
            echo.use(*sizes)
        return sizes

    def same_state(self) -> bool:
        """Whether every client shows the robots as the plain loop has them, to the last bit."""
        if self._shm is not None:
            check_attached(self._shm)
        return all(shows(client, self.plain.data) for client in self.clients.values())

    def request_and_floors(self, echo: Echo) -> list[Subject]:
        """What is compared as a sum takes its turns together, undisturbed by the rest."""
        return [
            Subject("raw_tcp", self.raw.once, lambda: restart(self.clients["tcp"])),
            Subject("echo_tcp", echo.once),
            Subject("plain", self.plain.once, self.plain.reset),
        ]

    def transports(self, case: Case, echoes: Mapping[str, Echo]) -> list[Subject]:
        """Every transport, each with its bare echo after it where `request_and_floors` does not have that already."""
        subjects = [Subject("plain_woken", self.plain.once, self.plain.reset, before=echoes["tcp"].once)]
        for name in self.clients:
            subjects.append(self._client(name, case))
            if name in echoes and name != "tcp":
                subjects.append(Subject(f"echo_{name}", echoes[name].once))
        return subjects

    def _client(self, name: str, case: Case) -> Subject:
        client, server = self.clients[name], self.servers.get(name)
        return Subject(
            name,
            lambda: client.step(case.n_steps, observations=case.observations),
            lambda: restart(client),
            server_cpu_s=None if server is None else lambda: server.cpu_s,
        )


def step_cases(levels: Mapping[str, Sequence[str]]) -> list[Case]:
    """Every scene at its levels, one step and ten."""
    return [Case(scene, level, count) for scene in levels for level in levels[scene] for count in _STEP_COUNTS]


def measure_steps(
    plan: Plan, cases: Sequence[Case], transports: Sequence[str], tick: Tick
) -> tuple[list[CaseResult], dict[str, tuple[float, float]]]:
    """All rounds of all cases, and the memory of each scene's server over TCP before and after, MB.

    All servers stay up together; those whose turn it is not are in direct mode and sleep.
    """
    longest = plan.counts.calls * max(_STEP_COUNTS)
    rounds, equal, sizes = {case: Rounds() for case in cases}, dict.fromkeys(cases, True), {}
    with ExitStack() as opened:
        echoes: dict[str, Echo] = {
            name: opened.enter_context(echoing_in_shm() if name == "shm" else echoing(name)) for name in transports[1:]
        }
        scenes = {
            scene: ScenePaths(scene, transports, longest, opened) for scene in dict.fromkeys(c.scene for c in cases)
        }
        for number in range(plan.rounds):
            for case in cases:
                tick(f"round {number + 1}/{plan.rounds}: {case.scene} {case.observations} step({case.n_steps})")
                paths, found = scenes[case.scene], rounds[case]
                sizes[case] = paths.use(case, echoes)
                raw = paths.request_and_floors(echoes["tcp"])
                with a_core_each(paths.servers["tcp"].pid, echoes["tcp"].pid):
                    found.measure(plan.counts, raw, PLACED)
                found.measure(plan.counts, raw)
                found.measure(plan.counts, paths.transports(case, echoes))
                equal[case] &= paths.same_state()
        memory = {scene: (paths.rss_ready_mb, paths.servers["tcp"].rss_mb) for scene, paths in scenes.items()}
    return [_result(case, rounds[case], sizes[case], transports, equal[case]) for case in cases], memory


def _result(
    case: Case, rounds: Rounds, sizes: tuple[int, int], transports: Sequence[str], same_state: bool
) -> CaseResult:
    samples = {name: rounds.samples(name) for name in transports}
    return CaseResult(
        scene=case.scene,
        observations=case.observations,
        n_steps=case.n_steps,
        request_bytes=sizes[0],
        reply_bytes=sizes[1],
        same_state=same_state,
        timings={name: rounds.timing(name) for name in rounds.p50_us},
        client_cpu={name: one.client_cpu_s / one.wall_s for name, one in samples.items()},
        server_cpu={name: one.server_cpu_s / one.wall_s for name, one in samples.items() if name != "inprocess"},
        round_p50_us=rounds.p50_us,
    )


def floor_table(cases: Sequence[CaseResult], transports: Sequence[str]) -> Table:
    """The floors, and the raw request beside them: where the system likes, and with a core for each end."""
    echoes = [f"echo {TRANSPORTS[name]}" for name in transports[1:]]
    columns = ["request", "bytes", "plain loop", "woken", *echoes, "raw ZMQ tcp", "of its floor", "a core each"]
    table = Table("floors: p50 / p99 in microseconds, of frames of the same sizes", columns)
    for case in cases:
        names = ["plain", "plain_woken", *(f"echo_{name}" for name in transports[1:]), "raw_tcp"]
        placed = [case.p50_us(PLACED + name) for name in ("raw_tcp", "echo_tcp", "plain")]
        table.rows.append(
            [
                case.label,
                f"{case.request_bytes:,} + {case.reply_bytes:,}",
                *(case.timings[name].pair for name in names),
                f"{case.floor_ratio():.2f}",
                "{3:.2f} = {0:.0f} / ({1:.0f} + {2:.0f})".format(*placed, case.floor_ratio(PLACED)),
            ]
        )
    return table


def client_table(cases: Sequence[CaseResult], transports: Sequence[str]) -> Table:
    """`client.step()` over every transport, how many fit in a second, and the CPU of both sides."""
    columns = ["client.step()", *(TRANSPORTS[name] for name in transports)]
    table = Table("p50 / p99 / p99.9 in microseconds; steps per second; CPU of client + server (1 = a core)", columns)
    for case in cases:
        cells = []
        for name in transports:
            step = case.timings[name]
            server = f" + {case.server_cpu[name]:.2f}" if name in case.server_cpu else ""
            cells.append(
                f"{step.pair} / {step.p999_us:.0f}  {step.rate_hz * case.n_steps:,.0f}/s  "
                f"{case.client_cpu[name]:.2f}{server}"
            )
        table.rows.append([case.label, *cells])
    return table


# -- soak ---------------------------------------------------------------------------------------------------------


class SoakResult(msgspec.Struct, kw_only=True):
    """Lockstep `client.step()`. ``rss_mb`` is the memory of server and client after ``rss_steps``, ``growth_mb`` what
    it grew by from the end of the first tenth to the end."""

    scene: str
    transport: str
    asked: int
    answered: int = 0
    errors: list[str] = []
    duration_s: float = 0.0
    rss_steps: list[int] = []
    rss_mb: dict[str, list[float]] = msgspec.field(default_factory=lambda: {"server": [], "client": []})
    growth_mb: dict[str, float] = {}

    @property
    def words(self) -> str:
        """A line for people."""
        growth = ", ".join(f"{name} {value:+.2f} MB" for name, value in self.growth_mb.items())
        return (
            f"{self.answered:,} steps over {TRANSPORTS[self.transport]}, {len(self.errors)} errors, "
            f"{self.answered / self.duration_s:,.0f}/s ({self.scene}); memory: {growth}"
        )

    def bars(self, max_growth_mb: float | None = None) -> list[Bar]:
        """No error, nothing unanswered; and memory that does not grow, where that is judged."""
        name, note = (
            f"errors in {self.asked:,} lockstep steps over {TRANSPORTS[self.transport]}",
            " ".join(self.errors[:1]),
        )
        bars = [bar(name, len(self.errors), at_most=0, digits=0, note=note, valid=self.answered == self.asked)]
        if max_growth_mb is not None:
            name, worst = "growth of memory in the soak, after its first tenth", max(self.growth_mb.values())
            bars.append(bar(name, worst, at_most=max_growth_mb, unit=" MB"))
        return bars


def measure_soak(plan: Plan, scene: str, transport: str, tick: Tick) -> SoakResult:
    """`Plan.soak_steps` calls of `client.step()`; a call that hangs ends in the client's time-out."""
    result = SoakResult(scene=scene, transport=transport, asked=plan.soak_steps)
    with TemporaryDirectory(prefix="urlab-bench-") as folder, Server(scene_targets(scene, Path(folder))) as server:
        shm = connect_shm(server.step_endpoint) if transport == "shm" else None
        with shm[0] if shm else connect(server.step_endpoint) as client:
            restart(client)
            begin = perf_counter()
            size, rest = divmod(plan.soak_steps, _PORTIONS)
            for portion in range(_PORTIONS):
                if not all(_soak_step(client, result) for _ in range(size + (portion < rest))):
                    break
                result.rss_steps.append(result.answered)
                result.rss_mb["server"].append(server.rss_mb)
                result.rss_mb["client"].append(own_rss_mb())
                tick(f"soak over {TRANSPORTS[transport]}: {result.answered:,} of {plan.soak_steps:,}")
            result.duration_s = perf_counter() - begin
            if shm and not result.errors:
                check_attached(shm[1])
    warm = len(result.rss_steps) // 10
    result.growth_mb = {name: rss_mb[-1] - rss_mb[warm] if rss_mb else 0.0 for name, rss_mb in result.rss_mb.items()}
    return result


def _soak_step(client: URLabClient, result: SoakResult) -> bool:
    """One request; False when there is no point in going on."""
    try:
        reply = client.step()
    except (zmq.ZMQError, URLabRPCError) as silent:
        result.errors.append(f"request {result.answered + 1} was not answered: {silent}")
        return False
    result.answered += 1
    if reply["step"] != result.answered or reply.get("warnings"):
        result.errors.append(f"request {result.answered}: step {reply['step']}, warnings {reply.get('warnings')}")
    return len(result.errors) < _MAX_ERRORS

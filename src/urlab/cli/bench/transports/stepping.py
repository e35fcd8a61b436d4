"""The same steps over every transport, beside what the transports and the physics cost alone."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from urlab.cli.bench.paths import restart
from urlab.cli.bench.placement import a_core_each, can_place
from urlab.cli.bench.plan import Case
from urlab.cli.bench.stepping import Tick
from urlab.cli.bench.timing import summarize
from urlab.cli.bench.transports.paths import RoundTrip, TransportPaths
from urlab.cli.bench.transports.plan import ECHOES, TRANSPORTS, TransportsPlan
from urlab.cli.bench.transports.results import ClientResult, RawRequest, TransportsCase
from urlab.cli.bench.turns import Taken, Way, in_turns


@dataclass(slots=True)
class _Found:
    """What the rounds of one case have found so far, by way."""

    sizes: tuple[int, int] = (0, 0)
    same_state: bool = True
    taken: dict[str, Taken] = field(default_factory=lambda: defaultdict(Taken))
    round_p50_us: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))


def measure_transports(
    plan: TransportsPlan, scenes: Mapping[str, TransportPaths], echoes: dict[str, RoundTrip], tick: Tick
) -> list[TransportsCase]:
    """All rounds of all cases; every round goes over all of them."""
    found = {case: _Found() for case in plan.cases()}
    for number in range(plan.rounds):
        for case, so_far in found.items():
            tick(f"round {number + 1}/{plan.rounds}: {case.label}")
            _measure(plan, case, scenes[case.scene], echoes, so_far)
    return [_result(case, so_far) for case, so_far in found.items()]


def _measure(
    plan: TransportsPlan, case: Case, paths: TransportPaths, echoes: dict[str, RoundTrip], found: _Found
) -> None:
    """One block of each way, all from the same start."""
    found.sizes = paths.use(case, echoes)
    raw = _request_and_floors(paths, echoes["tcp"])
    with a_core_each(paths.servers["tcp"].pid, echoes["tcp"].pid):
        _take(plan, raw, found, placed="placed_")
    _take(plan, raw, found)
    _take(plan, _clients(case, paths, echoes), found)
    paths.check()
    found.same_state &= paths.same_state()


def _take(plan: TransportsPlan, ways: list[Way], found: _Found, placed: str = "") -> None:
    for name, taken in in_turns(plan, ways, run_up=plan.run_up).items():
        found.taken[placed + name].add(taken)
        found.round_p50_us[placed + name].append(summarize(taken.durations_ns).p50_us)


def _request_and_floors(paths: TransportPaths, echo: RoundTrip) -> list[Way]:
    """What is compared as a sum takes its turns together, undisturbed by the rest."""
    return [
        Way("raw_tcp", lambda: restart(paths.clients["tcp"]), paths.raw.once),
        Way("echo_tcp", lambda: None, echo.once),
        Way("plain", paths.plain.reset, paths.plain.once),
    ]


def _clients(case: Case, paths: TransportPaths, echoes: dict[str, RoundTrip]) -> list[Way]:
    """Every transport, each with its bare echo after it where the other turns do not have that already."""
    ways = []
    for transport in TRANSPORTS:
        ways.append(_client(case, paths, transport))
        if transport in ECHOES and transport != "tcp":
            ways.append(Way(f"echo_{transport}", lambda: None, echoes[transport].once))
    return ways


def _client(case: Case, paths: TransportPaths, transport: str) -> Way:
    client, server = paths.clients[transport], paths.servers.get(transport)
    return Way(
        transport,
        lambda: restart(client),
        lambda: client.step(case.n_steps, observations=case.observations),
        far_cpu_s=None if server is None else lambda: server.cpu_s,
    )


def _result(case: Case, found: _Found) -> TransportsCase:
    return TransportsCase(
        scene=case.scene,
        observations=case.observations,
        n_steps=case.n_steps,
        request_bytes=found.sizes[0],
        reply_bytes=found.sizes[1],
        same_state=found.same_state,
        clients={name: _client_result(case, found.taken[name], far=name != "inprocess") for name in TRANSPORTS},
        echoes={name: summarize(found.taken[f"echo_{name}"].durations_ns) for name in ECHOES},
        raw_tcp=_raw_request(found, "placed_"),
        raw_tcp_unplaced=_raw_request(found),
        plain=summarize(found.taken["plain"].durations_ns),
        round_p50_us=found.round_p50_us,
    )


def _raw_request(found: _Found, placed: str = "") -> RawRequest:
    request, echo, plain = (
        summarize(found.taken[placed + way].durations_ns) for way in ("raw_tcp", "echo_tcp", "plain")
    )
    return RawRequest(a_core_each=bool(placed) and can_place(), request=request, echo=echo, plain=plain)


def _client_result(case: Case, taken: Taken, *, far: bool) -> ClientResult:
    timing = summarize(taken.durations_ns)
    return ClientResult(
        step=timing,
        steps_per_s=timing.rate_hz * case.n_steps,
        client_cpu=taken.own_cpu_s / taken.wall_s,
        server_cpu=taken.far_cpu_s / taken.wall_s if far else None,
    )

"""The bars of the transports, and what passes them. Those of latency are judged per scene."""

from collections.abc import Sequence

from urlab.cli.bench.results import Verdict
from urlab.cli.bench.transports.results import IdleResult, ShmSoakResult, TransportsCase

MAX_SHM_SHARE = 0.3
MAX_SHM_EXTRA_US = 50.0
MAX_SHM_TAIL = 4.0
MAX_RAW_RATIO = 1.25
MAX_IDLE_PERCENT = 2.0
MAX_GROWTH_MB = 1.0
_SMALLEST_US = 0.1


def judge_transports(cases: Sequence[TransportsCase], idle: IdleResult, soak: ShmSoakResult) -> list[Verdict]:
    """Every bar."""
    judged = [one for one in cases if is_judged(one)]
    rules = (_shm_share, _shm_extra, _shm_tail, _raw_ratio)
    return [rule(case) for rule in rules for case in judged] + [
        _same_state(cases),
        _idle("server", idle.paused_server_percent, idle.direct_server_percent),
        _idle("client in shared memory", idle.paused_client_percent, idle.direct_client_percent),
        _errors(soak),
        _memory(soak),
    ]


def is_judged(case: TransportsCase) -> bool:
    """Whether the bars of latency look at a case."""
    return case.n_steps == 1 and case.observations == "standard"


def _p50(case: TransportsCase, transport: str) -> float:
    return case.clients[transport].step.p50_us


def _shm_share(case: TransportsCase) -> Verdict:
    """What shared memory adds to a step in process, of what TCP adds."""
    extra, tcp = _p50(case, "shm") - _p50(case, "inprocess"), _p50(case, "tcp") - _p50(case, "inprocess")
    share = extra / max(tcp, _SMALLEST_US)
    return Verdict(
        name=f"{case.scene}: what shm adds to a step in process / what ZMQ tcp adds, p50",
        bar=f"<= {MAX_SHM_SHARE}",
        value=share,
        shown=f"{share:.2f} ({extra:.0f} of {tcp:.0f} us)",
        passed=share <= MAX_SHM_SHARE,
    )


def _shm_extra(case: TransportsCase) -> Verdict:
    extra = _p50(case, "shm") - _p50(case, "inprocess")
    return Verdict(
        name=f"{case.scene}: what shm adds to a step in process, p50",
        bar=f"<= {MAX_SHM_EXTRA_US:g} us",
        value=extra,
        shown=f"{extra:.1f} us",
        passed=extra <= MAX_SHM_EXTRA_US,
    )


def _shm_tail(case: TransportsCase) -> Verdict:
    step = case.clients["shm"].step
    tail = step.p99_us / step.p50_us
    return Verdict(
        name=f"{case.scene}: shm p99 / p50",
        bar=f"<= {MAX_SHM_TAIL:g}",
        value=tail,
        shown=f"{tail:.2f} ({step.p99_us:.0f} / {step.p50_us:.0f} us)",
        passed=tail <= MAX_SHM_TAIL,
    )


def _raw_ratio(case: TransportsCase) -> Verdict:
    raw = case.raw_tcp
    placed = ", a core each" if raw.a_core_each else ""
    return Verdict(
        name=f"{case.scene}: raw request over ZMQ tcp / (bare echo + plain loop){placed}, p50",
        bar=f"<= {MAX_RAW_RATIO}",
        value=raw.ratio,
        shown=f"{raw.ratio:.2f} ({raw.request.p50_us:.0f} / {raw.echo.p50_us:.0f} + {raw.plain.p50_us:.0f} us)",
        passed=raw.ratio <= MAX_RAW_RATIO,
    )


def _same_state(cases: Sequence[TransportsCase]) -> Verdict:
    apart = sum(not one.same_state for one in cases)
    return Verdict(
        name="cases in which a transport's state differs from the plain loop's",
        bar="0",
        value=apart,
        shown=f"{apart} of {len(cases)}",
        passed=apart == 0,
    )


def _idle(whose: str, paused: float, direct: float) -> Verdict:
    worst = max(paused, direct)
    return Verdict(
        name=f"CPU of an idle {whose}, of one core",
        bar=f"< {MAX_IDLE_PERCENT:g} %",
        value=worst,
        shown=f"{paused:.2f} % paused, {direct:.2f} % direct",
        passed=worst < MAX_IDLE_PERCENT,
    )


def _errors(soak: ShmSoakResult) -> Verdict:
    lockstep = soak.lockstep
    return Verdict(
        name=f"errors in {lockstep.asked:,} lockstep steps over shm",
        bar="0",
        value=lockstep.errors,
        shown=f"{lockstep.errors}" + (f" ({lockstep.first_error})" if lockstep.first_error else ""),
        passed=lockstep.errors == 0 and lockstep.answered == lockstep.asked,
    )


def _memory(soak: ShmSoakResult) -> Verdict:
    server, client = soak.lockstep.growth_mb, soak.client_growth_mb
    return Verdict(
        name="growth of memory in the soak, after its first tenth",
        bar=f"<= {MAX_GROWTH_MB:g} MB",
        value=max(server, client),
        shown=f"{server:+.2f} MB server, {client:+.2f} MB client",
        passed=max(server, client) <= MAX_GROWTH_MB,
    )

"""The bars, and what passes them. The worst value counts."""

from collections.abc import Sequence

from urlab.cli.bench.results import (
    AuthoringResult,
    MemoryResult,
    PacingResult,
    SoakResult,
    StartResult,
    StepResult,
    Verdict,
)

MAX_RATIO = 1.35
MAX_READY_S = 3.0
MAX_RSS_MB = 300.0
MAX_REAL_TIME_ERROR = 0.01
MAX_AUTHORING_RATIO = 2.0


def judge(
    start: StartResult,
    stepping: Sequence[StepResult],
    memory: Sequence[MemoryResult],
    pacing: PacingResult,
    authoring: Sequence[AuthoringResult],
    soak: SoakResult,
) -> list[Verdict]:
    """Every bar."""
    return [
        _ratio(stepping),
        _same_state(stepping),
        _ready(start),
        _memory(start, memory),
        _real_time(pacing),
        _authoring(authoring),
        _errors(soak),
    ]


def _ratio(stepping: Sequence[StepResult]) -> Verdict:
    judged = [one for one in stepping if one.n_steps == 1 and one.observations == "standard"]
    worst = max(judged, key=lambda one: one.ratio)
    return Verdict(
        name="raw step(1), standard / (echo + plain loop), p50",
        bar=f"<= {MAX_RATIO}",
        value=worst.ratio,
        shown=f"{worst.ratio:.2f} ({worst.scene} {worst.observations} step({worst.n_steps}))",
        passed=worst.ratio <= MAX_RATIO,
    )


def _same_state(stepping: Sequence[StepResult]) -> Verdict:
    apart = sum(not one.same_state for one in stepping)
    return Verdict(
        name="cases whose states differ from the plain loop's",
        bar="0",
        value=apart,
        shown=f"{apart} of {len(stepping)}",
        passed=apart == 0,
    )


def _ready(start: StartResult) -> Verdict:
    slowest = max(start.ready_s)
    return Verdict(
        name="start to ready",
        bar=f"< {MAX_READY_S:g} s",
        value=slowest,
        shown=f"{slowest:.2f} s",
        passed=slowest < MAX_READY_S,
    )


def _memory(start: StartResult, memory: Sequence[MemoryResult]) -> Verdict:
    stepped = [value for one in memory for value in (one.rss_ready_mb, one.rss_stepped_mb)]
    largest = max([*start.rss_ready_mb, *stepped])
    return Verdict(
        name="memory of an idle server",
        bar=f"< {MAX_RSS_MB:g} MB",
        value=largest,
        shown=f"{largest:.0f} MB",
        passed=largest < MAX_RSS_MB,
    )


def _real_time(pacing: PacingResult) -> Verdict:
    error = abs(pacing.real_time_factor - 1)
    return Verdict(
        name="live real-time factor, distance from 1",
        bar=f"<= {MAX_REAL_TIME_ERROR:.0%}",
        value=error,
        shown=f"{error:.3%}",
        passed=error <= MAX_REAL_TIME_ERROR,
    )


def _authoring(authoring: Sequence[AuthoringResult]) -> Verdict:
    largest = max(authoring, key=lambda one: one.cells)
    return Verdict(
        name=f"spawn and play {largest.cells:,} robots / MjSpec attach and compile",
        bar=f"<= {MAX_AUTHORING_RATIO:g}",
        value=largest.ratio,
        shown=f"{largest.ratio:.2f} ({largest.spawn_s + largest.play_s:.2f} s)",
        passed=largest.ratio <= MAX_AUTHORING_RATIO,
    )


def _errors(soak: SoakResult) -> Verdict:
    return Verdict(
        name=f"errors in {soak.asked:,} lockstep requests",
        bar="0",
        value=soak.errors,
        shown=f"{soak.errors}" + (f" ({soak.first_error})" if soak.first_error else ""),
        passed=soak.errors == 0 and soak.answered == soak.asked,
    )

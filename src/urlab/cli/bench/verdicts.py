"""The bars, and what passes them. The worst value counts."""

from collections.abc import Sequence

from urlab.cli.bench.results import (
    AuthoringResult,
    CameraResult,
    MemoryResult,
    PacingResult,
    SoakResult,
    StartResult,
    StepResult,
    StreamingResult,
    Verdict,
)

MAX_RATIO = 1.35
MAX_READY_S = 3.0
MAX_RSS_MB = 300.0
MAX_REAL_TIME_ERROR = 0.01
MAX_AUTHORING_RATIO = 2.0
MIN_CAMERA_RATE = 0.9
MAX_CAMERA_ZMQ = 1.2
MIN_FAST_GAIN = 4.0
MAX_STREAMING_LATENESS_MS = 5.0
_LARGE = 640


def judge(
    start: StartResult,
    stepping: Sequence[StepResult],
    memory: Sequence[MemoryResult],
    pacing: PacingResult,
    authoring: Sequence[AuthoringResult],
    cameras: Sequence[CameraResult],
    streaming: StreamingResult,
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
        *_cameras(cameras),
        *_streaming(streaming),
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


def _cameras(cameras: Sequence[CameraResult]) -> list[Verdict]:
    slowest = min(cameras, key=lambda one: one.rate_of_bare)
    large = [one for one in cameras if one.width == _LARGE]
    farthest = max(large, key=lambda one: one.zmq_over_inprocess)
    real = next(one for one in large if one.mode == "real")
    return [
        Verdict(
            name="rate of steps with a camera, in process / bare step and render, p50",
            bar=f">= {MIN_CAMERA_RATE}",
            value=slowest.rate_of_bare,
            shown=f"{slowest.rate_of_bare:.2f} ({slowest.width}x{slowest.height} {slowest.mode})",
            passed=slowest.rate_of_bare >= MIN_CAMERA_RATE,
        ),
        Verdict(
            name="the same over ZMQ at 640x480 / in process, time, p50",
            bar=f"<= {MAX_CAMERA_ZMQ}",
            value=farthest.zmq_over_inprocess,
            shown=f"{farthest.zmq_over_inprocess:.2f} ({farthest.mode})",
            passed=farthest.zmq_over_inprocess <= MAX_CAMERA_ZMQ,
        ),
        Verdict(
            name="640x480 real: MuJoCo's default settings / ours (fast), time, p50",
            bar=f">= {MIN_FAST_GAIN:g}",
            value=real.fast_over_default,
            shown=f"{real.fast_over_default:.1f}",
            passed=real.fast_over_default >= MIN_FAST_GAIN,
        ),
    ]


def _streaming(streaming: StreamingResult) -> list[Verdict]:
    error, late_ms = abs(streaming.real_time_factor - 1), streaming.lateness.p99_ms
    return [
        Verdict(
            name="live with two camera streams: real-time factor, distance from 1",
            bar=f"<= {MAX_REAL_TIME_ERROR:.0%}",
            value=error,
            shown=f"{error:.3%}",
            passed=error <= MAX_REAL_TIME_ERROR,
        ),
        Verdict(
            name="live with two camera streams: lateness of steps, p99",
            bar=f"< {MAX_STREAMING_LATENESS_MS:g} ms",
            value=late_ms,
            shown=f"{late_ms:.2f} ms",
            passed=late_ms < MAX_STREAMING_LATENESS_MS,
        ),
    ]


def _errors(soak: SoakResult) -> Verdict:
    return Verdict(
        name=f"errors in {soak.asked:,} lockstep requests",
        bar="0",
        value=soak.errors,
        shown=f"{soak.errors}" + (f" ({soak.first_error})" if soak.first_error else ""),
        passed=soak.errors == 0 and soak.answered == soak.asked,
    )

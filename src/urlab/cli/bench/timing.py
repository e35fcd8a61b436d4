"""Taking the time of something small, many times."""

from collections.abc import Callable, Sequence
from time import perf_counter_ns

import numpy as np

from urlab.cli.bench.results import Timing

_US = 1e-3
_NS_PER_S = 1e9


def time_calls(call: Callable[[], object], count: int, *, before: Callable[[], object] | None = None) -> list[int]:
    """Nanoseconds of each of ``count`` calls; ``before`` is called before each, outside the time taken."""
    durations = []
    for _ in range(count):
        if before is not None:
            before()
        begin = perf_counter_ns()
        call()
        durations.append(perf_counter_ns() - begin)
    return durations


def repeat(call: Callable[[], object], count: int) -> None:
    """The same without a clock."""
    for _ in range(count):
        call()


def summarize(durations_ns: Sequence[int]) -> Timing:
    """Percentiles, interpolated linearly between samples."""
    values = np.asarray(durations_ns, dtype=np.float64) * _US
    p50, p90, p99, p999 = np.percentile(values, [50, 90, 99, 99.9]).tolist()
    return Timing(
        count=len(values),
        mean_us=float(values.mean()),
        min_us=float(values.min()),
        p50_us=p50,
        p90_us=p90,
        p99_us=p99,
        p999_us=p999,
        max_us=float(values.max()),
        rate_hz=len(values) * _NS_PER_S / float(np.sum(durations_ns)),
    )

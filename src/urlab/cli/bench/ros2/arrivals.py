"""What arrived when, and what follows from it. Nothing here measures."""

import struct
from collections.abc import Mapping, Sequence

import numpy as np

from urlab.cli.bench.ros2.results import AgeResult, RateResult

_STAMP = struct.Struct("<iI")
_CDR_HEADER_BYTES = 4
_NS_PER_S = 10**9
_NS_PER_MS = 1e6

Arrival = tuple[int, int]
"""A message's stamp and when it arrived, nanoseconds of the simulation and of the wall clock."""


def stamp_ns(cdr: bytes) -> int:
    """The time that a message begins with, as messages with a header and clocks do."""
    seconds, nanoseconds = _STAMP.unpack_from(cdr, _CDR_HEADER_BYTES)
    return int(seconds) * _NS_PER_S + int(nanoseconds)


def rate_of(topic: str, arrived_ns: Sequence[int], begin_ns: int, end_ns: int) -> RateResult:
    """How often and how evenly messages came between two moments."""
    within = [moment for moment in arrived_ns if begin_ns <= moment <= end_ns]
    gaps_ns = np.diff([begin_ns, *within, end_ns])
    return RateResult(
        topic=topic,
        count=len(within),
        rate_hz=len(within) * _NS_PER_S / (end_ns - begin_ns),
        silence_ms=float(gaps_ns.max()) / _NS_PER_MS,
    )


def age_of(arrivals: Sequence[Arrival], published_ns: Mapping[int, int]) -> AgeResult | None:
    """How old messages were, by when the states of their stamps were published; None when none of them is known."""
    ages_ms = [(moment - published_ns[stamp]) / _NS_PER_MS for stamp, moment in arrivals if stamp in published_ns]
    if not ages_ms:
        return None
    p50, p99 = np.percentile(ages_ms, [50, 99]).tolist()
    return AgeResult(count=len(ages_ms), p50_ms=p50, p99_ms=p99, max_ms=max(ages_ms))

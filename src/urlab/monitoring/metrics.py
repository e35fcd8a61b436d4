"""Figures about this process, for Prometheus: counters that rooms add to, and figures that are read when asked for.

Counters belong to the process; a server's own figures (its sessions, its simulation) are read by collectors that live
as long as it does. Nothing here costs anything between two readings, but the additions themselves.
"""

import bisect
import resource
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

Labels = tuple[tuple[str, str], ...]

REQUEST_BUCKETS_S = (1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Upper bounds of the classes in which the time of requests is counted."""


class Sample(NamedTuple):
    """One number: the ending of its name (mostly empty), its labels, its value."""

    suffix: str
    labels: Labels
    value: float


@dataclass(frozen=True)
class Figure:
    """A named figure with its samples; ``kind`` is Prometheus's word: counter, gauge, histogram or summary."""

    name: str
    about: str
    kind: str
    samples: tuple[Sample, ...]


Collector = Callable[[], Iterable[Figure]]


class Counter:
    """Counts events by their labels. Any thread may add; an addition that meets another at once is not lost."""

    def __init__(self, name: str, about: str, *labels: str) -> None:
        self.name, self.about, self.labels = name, about, labels
        self._lock = threading.Lock()
        self._counts: dict[tuple[str, ...], float] = {} if labels else {(): 0.0}

    def add(self, *values: str, amount: float = 1.0) -> None:
        """Count ``amount`` for these values of the labels."""
        with self._lock:
            self._counts[values] = self._counts.get(values, 0.0) + amount

    def value(self, *values: str) -> float:
        """What has been counted for these values of the labels."""
        return self._counts.get(values, 0.0)

    def figure(self) -> Figure:
        """Everything counted so far."""
        with self._lock:
            counts = dict(self._counts)
        samples = (Sample("", tuple(zip(self.labels, values, strict=True)), n) for values, n in sorted(counts.items()))
        return Figure(self.name, self.about, "counter", tuple(samples))


@dataclass
class _Durations:
    """How long the requests of one op took: counts by class, the last one for all that took longer."""

    total_s: float = 0.0
    counts: list[int] = field(default_factory=lambda: [0] * (len(REQUEST_BUCKETS_S) + 1))


class RequestFigures:
    """How many requests of each op were served, with which outcome, and how long they took. Any thread may add."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._durations: dict[str, _Durations] = {}
        self._outcomes: dict[tuple[str, str], int] = {}

    def add(self, op: str, outcome: str, taken_s: float) -> None:
        """Count one request; ``outcome`` is "ok" or an error's code."""
        place = bisect.bisect_left(REQUEST_BUCKETS_S, taken_s)
        with self._lock:
            self._outcomes[op, outcome] = self._outcomes.get((op, outcome), 0) + 1
            durations = self._durations.get(op)
            if durations is None:
                durations = self._durations[op] = _Durations()
            durations.total_s += taken_s
            durations.counts[place] += 1

    def figures(self) -> Iterator[Figure]:
        """``urlab_requests_total`` and ``urlab_request_seconds``."""
        with self._lock:
            outcomes = sorted(self._outcomes.items())
            durations = sorted((op, one.total_s, list(one.counts)) for op, one in self._durations.items())
        counted = tuple(Sample("", (("op", op), ("outcome", word)), n) for (op, word), n in outcomes)
        yield Figure("urlab_requests_total", "Requests served, by op and outcome.", "counter", counted)
        samples: list[Sample] = []
        for op, total_s, counts in durations:
            samples += _histogram((("op", op),), REQUEST_BUCKETS_S, counts, total_s)
        yield Figure("urlab_request_seconds", "Time to serve a request, by op.", "histogram", tuple(samples))


def _histogram(labels: Labels, bounds: Iterable[float], counts: list[int], total: float) -> Iterator[Sample]:
    sum_so_far = 0
    for bound, count in zip((*bounds, float("inf")), counts, strict=True):
        sum_so_far += count
        yield Sample("_bucket", (*labels, ("le", _number(bound))), sum_so_far)
    yield Sample("_sum", labels, total)
    yield Sample("_count", labels, sum_so_far)


def gauge(name: str, about: str, value: float | None, **labels: str) -> Figure:
    """A figure with one sample of this moment; None gives it none."""
    samples = () if value is None else (Sample("", tuple(labels.items()), float(value)),)
    return Figure(name, about, "gauge", samples)


def gauges(name: str, about: str, label: str, values: Mapping[str, float], kind: str = "gauge") -> Figure:
    """A figure with one sample for each value of a label."""
    return Figure(name, about, kind, tuple(Sample("", ((label, key),), float(one)) for key, one in values.items()))


# -- the figures of the process -----------------------------------------------------------------------------------

REFUSED = Counter("urlab_refused_total", "Connections and requests that were turned away, by reason.", "reason")
"""Any room that turns a client away adds to it."""

_STARTED_S = time.time()
_MAX_RSS_UNIT_BYTES = 1024


def process_figures() -> Iterator[Figure]:
    """Memory, descriptors, threads and processor time, under the names that every exporter uses."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    status = Path("/proc/self/statm")
    resident = int(status.read_text().split()[1]) * resource.getpagesize() if status.exists() else None
    yield gauge("process_resident_memory_bytes", "Memory of this process.", resident)
    peak = usage.ru_maxrss * _MAX_RSS_UNIT_BYTES
    yield gauge("process_peak_resident_memory_bytes", "The most memory that it ever had.", peak)
    yield gauge("process_start_time_seconds", "When it started, in seconds since 1970.", _STARTED_S)
    descriptors = Path("/proc/self/fd")
    yield gauge(
        "process_open_fds", "Open descriptors.", sum(1 for _ in descriptors.iterdir()) if descriptors.exists() else None
    )
    yield gauge("process_threads", "Threads of Python.", threading.active_count())
    cpu = Sample("", (), usage.ru_utime + usage.ru_stime)
    yield Figure("process_cpu_seconds_total", "Processor time used.", "counter", (cpu,))
    yield REFUSED.figure()


# -- Prometheus's text --------------------------------------------------------------------------------------------

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def exposition(figures: Iterable[Figure]) -> str:
    """Figures in the text format that Prometheus reads. A figure without samples is left out."""
    lines: list[str] = []
    for one in figures:
        if one.samples:
            lines += [f"# HELP {one.name} {_escaped(one.about)}", f"# TYPE {one.name} {one.kind}"]
            lines += [
                f"{one.name}{sample.suffix}{_braces(sample.labels)} {_number(sample.value)}" for sample in one.samples
            ]
    return "\n".join(lines) + "\n"


def _braces(labels: Labels) -> str:
    pairs = ",".join(f'{name}="{_escaped(value, quote=True)}"' for name, value in labels)
    return f"{{{pairs}}}" if pairs else ""


def _escaped(text: str, *, quote: bool = False) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quote else text


def _number(value: float) -> str:
    if value == float("inf"):
        return "+Inf"
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)

"""What it takes to make and send one message, beside sending its bytes alone."""

import time
from collections import defaultdict

from urlab.cli.bench.ros2.ear_child import Order
from urlab.cli.bench.ros2.plan import Ros2Plan
from urlab.cli.bench.ros2.processes import listening
from urlab.cli.bench.ros2.results import MessageResult
from urlab.cli.bench.ros2.topics import SceneSources, Source
from urlab.cli.bench.timing import summarize, time_calls
from urlab.cli.bench.turns import Way, in_turns
from urlab.cli.complaint import CommandError
from urlab.ros2 import messages
from urlab.ros2.backend import Publisher
from urlab.ros2.dds import DdsBackend
from urlab.ros2.qos import Qos

_LONG_S = 3600.0
_POLL_S = 0.005
_MATCH_LIMIT_S = 30.0


def measure_messages(plan: Ros2Plan, sources: SceneSources, domain: int) -> list[MessageResult]:
    """Every kind, in this process, with a subscriber in another one."""
    topics = [source.topic for source in sources.sources.values()]
    backend = DdsBackend(domain=domain, node="urlab_bench_costs")
    try:
        with listening(Order(domain, _LONG_S, topics)):
            return [_measure(plan, backend, what, source) for what, source in sources.sources.items()]
    finally:
        backend.close()


def measure_decoding(plan: Ros2Plan, sources: SceneSources) -> list[int]:
    """Nanoseconds of decoding a state, many times."""
    time_calls(sources.decode, plan.warm_up)
    return time_calls(sources.decode, plan.rounds * plan.samples)


def _measure(plan: Ros2Plan, backend: DdsBackend, what: str, source: Source) -> MessageResult:
    topic, type_name = source.topic, source.topic.type_name
    qos = Qos(topic.reliable, topic.transient_local, topic.depth)
    publisher = backend.publisher(topic.name, type_name, qos)
    _await_subscriber(publisher, topic.name)
    cdr = messages.serialise(source.make(), type_name)
    taken: dict[str, list[int]] = defaultdict(list)
    for _ in range(plan.rounds):
        for name, block in in_turns(plan, _ways(publisher, source, cdr)).items():
            taken[name] += block.durations_ns
    publisher.close()
    return MessageResult(
        what=what,
        type_name=type_name,
        size_bytes=len(cdr),
        whole=summarize(taken["whole"]),
        bare=summarize(taken["bare"]),
    )


def _await_subscriber(publisher: Publisher, topic: str) -> None:
    until_s = time.monotonic() + _MATCH_LIMIT_S
    while not publisher.subscribers:
        if time.monotonic() > until_s:
            raise CommandError(f"nobody subscribed to {topic} within {_MATCH_LIMIT_S:g} s")
        time.sleep(_POLL_S)


def _ways(publisher: Publisher, source: Source, cdr: memoryview) -> list[Way]:
    type_name = source.topic.type_name
    return [
        Way("whole", lambda: None, lambda: publisher.publish(messages.serialise(source.make(), type_name))),
        Way("bare", lambda: None, lambda: publisher.publish(cdr)),
    ]

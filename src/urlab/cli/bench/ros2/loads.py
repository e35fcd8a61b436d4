"""The bridge under each load: what arrives elsewhere, how old, and what it costs."""

import time
from contextlib import ExitStack

from urlab.cli.bench.ros2.arrivals import age_of, rate_of
from urlab.cli.bench.ros2.ear_child import Heard, Order, Topic
from urlab.cli.bench.ros2.plan import LOAD_TITLES, LOADS, Ros2Plan
from urlab.cli.bench.ros2.processes import bridging, hanging, listening
from urlab.cli.bench.ros2.published import Published, watching
from urlab.cli.bench.ros2.results import LoadResult
from urlab.cli.bench.ros2.topics import SceneSources
from urlab.cli.bench.spawn import Child, Server
from urlab.cli.bench.stepping import Tick

STALLED = "stalled"
_AGED = "joint_states"
_SETTLE_S = 1.0


class _Usage:
    """CPU of bridge and server, percent of a core, since it was made."""

    def __init__(self, bridge: Child, server: Server) -> None:
        self._processes = (bridge, server)
        self._begin_s = time.perf_counter()
        self._used_s = [one.cpu_s for one in self._processes]

    def percent(self) -> list[float]:
        passed_s = time.perf_counter() - self._begin_s
        return [100 * (one.cpu_s - used) / passed_s for one, used in zip(self._processes, self._used_s, strict=True)]


def measure_loads(plan: Ros2Plan, server: Server, sources: SceneSources, domain: int, tick: Tick) -> list[LoadResult]:
    """Every load, one after the other, with one bridge."""
    results = []
    with bridging(server, domain) as bridge:
        for load, words in LOADS.items():
            tick(LOAD_TITLES[load])
            topics = {word: sources.topics[word] for word in words}
            if topics:
                order = Order(domain, plan.watched_s, list(topics.values()))
                results.append(_watch(load, order, topics, sources.state_endpoint, bridge, server))
            else:
                results.append(_watch_nothing(load, plan.watched_s, bridge, server))
    return results


def _watch_nothing(load: str, seconds: float, bridge: Child, server: Server) -> LoadResult:
    time.sleep(_SETTLE_S)
    usage = _Usage(bridge, server)
    time.sleep(seconds)
    return _result(load, seconds, usage.percent())


def _watch(
    load: str, order: Order, topics: dict[str, Topic], state_endpoint: str, bridge: Child, server: Server
) -> LoadResult:
    with ExitStack() as opened:
        if load == STALLED:
            opened.enter_context(hanging(order))
        published = opened.enter_context(watching(state_endpoint))
        ear = opened.enter_context(listening(order))
        ear.wait_until_begun()
        usage = _Usage(bridge, server)
        heard = ear.heard()
        percent = usage.percent()
    return _with_arrivals(_result(load, order.seconds, percent), heard, published, topics)


def _result(load: str, seconds: float, percent: list[float]) -> LoadResult:
    return LoadResult(
        load=load,
        watched_s=seconds,
        bridge_cpu_percent=percent[0],
        server_cpu_percent=percent[1],
        rates={},
        age=None,
        direct_age=None,
    )


def _with_arrivals(result: LoadResult, heard: Heard, published: Published, topics: dict[str, Topic]) -> LoadResult:
    begin_ns, end_ns = heard.begin_ns, heard.end_ns
    for word, topic in topics.items():
        moments = [moment for _, moment in heard.arrivals[topic.name]]
        result.rates[word] = rate_of(topic.name, moments, begin_ns, end_ns)
    joints = [one for one in heard.arrivals[topics[_AGED].name] if begin_ns <= one[1] <= end_ns]
    direct = [one for one in published.arrivals if begin_ns <= one[1] <= end_ns]
    result.age = age_of(joints, published.moments_ns)
    result.direct_age = age_of(direct, published.moments_ns)
    return result

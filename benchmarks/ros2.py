"""What the ROS 2 bridge costs, and how fast its topics arrive in another process."""

import contextlib
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import msgspec
import numpy as np
import zmq

from benchmarks.measuring import (
    BenchmarkError,
    Plan,
    Rounds,
    SampleCounts,
    Subject,
    Tick,
    Timing,
    bar,
    summarize,
    time_calls,
)
from benchmarks.processes import Bridge, Child, Server, child_module, connect
from benchmarks.reporting import Panel, PanelBar, Report, Table
from benchmarks.ros2_child import ARRIVALS_FILE, BEGUN_FILE, Arrival, Arrivals, SubscriberOrder, Topic
from benchmarks.scenes import SCENES
from urlab.ros2 import messages
from urlab.ros2.backend import Publisher
from urlab.ros2.convert.cameras import Picture, image
from urlab.ros2.dds import DdsBackend
from urlab.ros2.qos import PICTURES, Qos
from urlab.ros2.topics import IMAGE, SceneTopics, TopicChoice, clock_topic
from urlab_client import URLabClient
from urlab_client.transports.zmq_streams import CameraChannel, Channel, StateChannel, StreamListener
from urlab_wire.ops.stepping import ClockBlock
from urlab_wire.stream_messages import unpack_state
from urlab_wire.streams import STATE_TOPIC

_SCENES = ("arm", "quadruped")
"""Scenes with one robot and a camera of 640x480."""

FULL = Plan(_SCENES, 5, SampleCounts(200, 20, 20), watch_s=10.0)
QUICK = Plan(_SCENES, 1, SampleCounts(60, 10, 20), watch_s=2.0, quick=True)

MIN_JOINTS_HZ = 195.0
MIN_PICTURES_HZ = 15.0
MIN_CLOCK_SHARE = 0.9
_STATES = ("clock", "joint_states", "tf")
_IMAGE = "image"
_STALLED = "the same, and a process that hangs"
LOADS: dict[str, tuple[str, ...]] = {
    "no subscriber": (),
    "states": _STATES,
    "states and 640x480 image": (*_STATES, _IMAGE),
    _STALLED: (*_STATES, _IMAGE),
}
"""Load -> what is subscribed to. The last has another process that subscribed too and hangs."""

_OTHER_SETTINGS = ("ROS_DOMAIN_ID", "ROS_LOCALHOST_ONLY", "ROS_STATIC_PEERS", "CYCLONEDDS_URI")
DOMAINS = range(30, 100)
"""Whose ports lie below those that the system gives away."""

_SETTLE_S = 1.0
_HANG_AFTER_S = 0.3
_GRACE_S = 60.0
_LIMIT_S = 30.0
_POLL_S = 0.005
_NS_PER_MS = 1e6


class LoadResult(msgspec.Struct, kw_only=True):
    """The bridge under one load. CPU is in percent of one core; ``rates_hz`` and ``silence_ms`` (the longest time
    without a message) are by topic. ``age_ms`` (p50, p99) is that of joint states in the subscriber since the server
    published them, ``direct_age_ms`` that of the same states in a bare subscriber of the server's own stream."""

    load: str
    bridge_cpu_percent: float
    server_cpu_percent: float
    rates_hz: dict[str, float] = {}
    silence_ms: dict[str, float] = {}
    age_ms: tuple[float, float] | None = None
    direct_age_ms: tuple[float, float] | None = None


class MessageResult(msgspec.Struct, kw_only=True):
    """One kind of message: ``whole`` is converted, serialised and published, ``bare`` its bytes published as they are.

    Both had one subscriber, in another process.
    """

    what: str
    size_bytes: int
    whole: Timing
    bare: Timing


class SceneResult(msgspec.Struct, kw_only=True):
    """One scene. ``decode`` is what it takes to decode a state, once for all topics that are made of it."""

    scene: str
    physics_hz: float
    loads: list[LoadResult]
    decode: Timing
    messages: list[MessageResult]


def measure(plan: Plan, tick: Tick) -> Report:
    """The loads with physics running, messages with physics paused, scene by scene."""
    with only_on_this_machine():
        scenes = [_measure_scene(plan, scene, tick) for scene in plan.scenes]
    limits = {"joint_states": MIN_JOINTS_HZ, _IMAGE: MIN_PICTURES_HZ}
    bars = [
        bar(f"{scene.scene}, {load.load}: rate of {word}", load.rates_hz[word], at_least=limit, unit=" Hz", digits=1,
            note=f"silent for {load.silence_ms[word]:.0f} ms at most")
        for scene in scenes
        for load in scene.loads
        if _IMAGE in load.rates_hz
        for word, limit in {**limits, "clock": MIN_CLOCK_SHARE * scene.physics_hz}.items()
    ]  # fmt: skip
    return Report(
        title="What the ROS 2 bridge costs",
        data={"scenes": scenes},
        tables=[table for scene in scenes for table in _tables(scene)],
        bars=bars,
        panels=[panel for scene in scenes for panel in _panels(scene)],
        libraries=("cyclonedds", "rosbags"),
    )


@contextlib.contextmanager
def only_on_this_machine() -> Iterator[None]:
    """Settings of ROS that keep everything on this machine, for this process and its children."""
    before = dict(os.environ)
    for name in _OTHER_SETTINGS:
        os.environ.pop(name, None)
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def free_domains(count: int = 1) -> list[int]:
    """Domains in which no process of this machine is."""
    found: list[int] = []
    first = os.getpid()
    for place in range(len(DOMAINS)):
        number = DOMAINS[(first + place) % len(DOMAINS)]
        with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind(("127.0.0.1", 7400 + 250 * number + 10))
            found.append(number)
        if len(found) == count:
            return found
    raise BenchmarkError(f"the ROS domains from {DOMAINS[0]} to {DOMAINS[-1]} are taken")


def subscriber_process(order: SubscriberOrder) -> Child:
    """A subscriber to those topics. Leaving the context ends it."""
    return Child(child_module("ros2_child", msgspec.json.encode(order).decode(), "{folder}"))


def _measure_scene(plan: Plan, scene: str, tick: Tick) -> SceneResult:
    (domain,) = free_domains()
    with Server([*SCENES[scene], "--step-mode", "live"]) as server:
        with connect(server.step_endpoint, observer=True) as observer:
            sources = SceneSources(observer)
            with Bridge(server, domain) as bridge:
                loads = [_measure_load(load, plan, server, bridge, sources, domain, tick) for load in LOADS]
            tick(f"{scene}: messages")
            with connect(server.step_endpoint, "live") as driver:
                driver.runtime.set_paused(True)
            time_calls(sources.decode, plan.counts.warm_up)
            return SceneResult(
                scene=scene,
                physics_hz=sources.physics_hz,
                loads=loads,
                decode=summarize(time_calls(sources.decode, plan.rounds * plan.counts.samples)),
                messages=_measure_messages(plan, sources, domain),
            )


# -- topics and what their messages are made of -------------------------------------------------------------------


class SceneSources:
    """One state and one picture of a running scene, and the topics that tell of them.

    ``topics`` are by the words of `LOADS`; ``make`` has what makes a message of each but the clock.
    """

    def __init__(self, client: URLabClient) -> None:
        found = SceneTopics(client, TopicChoice())
        self.physics_hz = 1 / float(client.model.opt.timestep)
        self.state_endpoint = str(client.streams["state"])
        self._payload = _first(lambda take: StateChannel(self.state_endpoint, take))[0]
        clock = clock_topic()
        self.topics: dict[str, Topic] = {"clock": _topic(*clock)}
        self.make: dict[str, Callable[[], Any]] = {}
        by_name = {one.names[-1].strip("/"): one for one in found.states}
        state = self.decode()
        for word in ("joint_states", "tf"):
            one = by_name[word]
            self.topics[word] = _topic(one.names[0], one.type_name, one.qos)
            self.make[word] = lambda one=one: one.convert(state)  # type: ignore[misc]
        camera = found.cameras[0]
        view = camera.view
        data, meta, *_ = _first(lambda take: CameraChannel(view.zmq_endpoint or "", view.zmq_topic or "", take))
        self.topics[_IMAGE] = _topic(camera.images[0], IMAGE, PICTURES)
        self.make[_IMAGE] = lambda: image(Picture.of_wire(data, meta), camera.frame_id)

    def decode(self) -> Any:
        """The state, decoded as the bridge does it."""
        return unpack_state(self._payload)


def _topic(name: str, type_name: str, qos: Qos) -> Topic:
    return Topic(name, type_name, qos.reliable, qos.transient_local, qos.depth)


def _first(channel_to: Callable[[Callable[..., None]], Channel]) -> tuple[Any, ...]:
    """What comes first over a stream; pixels are copied."""
    came = threading.Event()
    found: list[tuple[Any, ...]] = []

    def take(data: Any, *more: Any) -> None:
        found.append((bytes(data), *more))
        came.set()

    listener = StreamListener("urlab-bench-first")
    try:
        listener.add(channel_to(take))
        if not came.wait(_LIMIT_S):
            raise BenchmarkError(f"nothing came over a stream of the server within {_LIMIT_S:g} s")
    finally:
        listener.stop()
    return found[0]


# -- loads --------------------------------------------------------------------------------------------------------


def _measure_load(
    load: str, plan: Plan, server: Server, bridge: Bridge, sources: SceneSources, domain: int, tick: Tick
) -> LoadResult:
    tick(load)
    topics = {word: sources.topics[word] for word in LOADS[load]}
    order = SubscriberOrder(domain, plan.watch_s, list(topics.values()))
    with ExitStack() as opened:
        if load == _STALLED:
            opened.enter_context(_hanging(order))
        if not topics:
            time.sleep(_SETTLE_S)
            return _load_result(load, bridge, server, lambda: time.sleep(plan.watch_s))
        states = opened.enter_context(contextlib.closing(StateArrivals(sources.state_endpoint)))
        subscriber = opened.enter_context(subscriber_process(order))
        subscriber.read_file(BEGUN_FILE)
        limit_s = plan.watch_s + _GRACE_S
        result = _load_result(load, bridge, server, lambda: subscriber.read_file(ARRIVALS_FILE, limit_s))
        found = subscriber.read_file(ARRIVALS_FILE)
    _add_arrivals(result, msgspec.convert(found, Arrivals), states, topics)
    return result


def _load_result(load: str, bridge: Bridge, server: Server, wait: Callable[[], object]) -> LoadResult:
    """The CPU of both while something is waited for."""
    begin_s, used_s = time.perf_counter(), [one.cpu_s for one in (bridge, server)]
    wait()
    took_s = time.perf_counter() - begin_s
    cpu = [100 * (one.cpu_s - used) / took_s for one, used in zip((bridge, server), used_s, strict=True)]
    return LoadResult(load=load, bridge_cpu_percent=cpu[0], server_cpu_percent=cpu[1])


def _add_arrivals(result: LoadResult, found: Arrivals, states: "StateArrivals", topics: Mapping[str, Topic]) -> None:
    begin_ns, end_ns = found.begin_ns, found.end_ns

    def within(arrivals: Sequence[Arrival]) -> list[Arrival]:
        return [one for one in arrivals if begin_ns <= one[1] <= end_ns]

    for word, topic in topics.items():
        moments = [moment for _, moment in within(found.by_topic[topic.name])]
        result.rates_hz[word], result.silence_ms[word] = rate_of(moments, begin_ns, end_ns)
    result.age_ms = age_of(within(found.by_topic[topics["joint_states"].name]), states.published_ns)
    result.direct_age_ms = age_of(within(states.arrivals), states.published_ns)


def rate_of(moments_ns: Sequence[int], begin_ns: int, end_ns: int) -> tuple[float, float]:
    """Messages per second between two moments, and the longest silence in ms."""
    gaps_ns = np.diff([begin_ns, *moments_ns, end_ns])
    return len(moments_ns) * 1e9 / (end_ns - begin_ns), float(gaps_ns.max()) / _NS_PER_MS


def age_of(arrivals: Sequence[Arrival], published_ns: Mapping[int, int]) -> tuple[float, float] | None:
    """How old messages were, p50 and p99 in ms, by when the states of their stamps were published; None if unknown."""
    ages_ms = [(moment - published_ns[stamp]) / _NS_PER_MS for stamp, moment in arrivals if stamp in published_ns]
    return (float(np.percentile(ages_ms, 50)), float(np.percentile(ages_ms, 99))) if ages_ms else None


@contextlib.contextmanager
def _hanging(order: SubscriberOrder) -> Iterator[None]:
    """A subscriber that got some messages of every topic and then hangs."""
    with subscriber_process(order) as child:
        child.read_file(BEGUN_FILE)
        os.kill(child.pid, signal.SIGSTOP)
        time.sleep(_HANG_AFTER_S)
        try:
            yield
        finally:
            os.kill(child.pid, signal.SIGCONT)


class _Times(msgspec.Struct):
    sim_time: ClockBlock
    wall_time: ClockBlock


class StateArrivals:
    """A bare subscriber of the server's state stream, on a thread.

    ``published_ns`` are wall clock times of publication, by the stamps of states; ``arrivals`` when they came here.
    """

    def __init__(self, endpoint: str) -> None:
        self.published_ns: dict[int, int] = {}
        self.arrivals: list[Arrival] = []
        self._endpoint, self._done = endpoint, threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Listen no more."""
        self._done.set()
        self._thread.join()

    def _listen(self) -> None:
        decoder = msgspec.msgpack.Decoder(_Times)
        with zmq.Context() as context, context.socket(zmq.SUB) as socket:
            socket.setsockopt(zmq.LINGER, 0)
            socket.subscribe(STATE_TOPIC.encode())
            socket.connect(self._endpoint)
            while not self._done.is_set():
                if socket.poll(100):
                    message, now_ns = socket.recv_multipart(), time.time_ns()
                    times = decoder.decode(message[-1])
                    stamp, published = (
                        int(one.sec) * 10**9 + int(one.nsec) for one in (times.sim_time, times.wall_time)
                    )
                    self.published_ns.setdefault(stamp, published)
                    self.arrivals.append((stamp, now_ns))


# -- messages -----------------------------------------------------------------------------------------------------


def _measure_messages(plan: Plan, sources: SceneSources, domain: int) -> list[MessageResult]:
    """Every kind, in this process, with a subscriber in another one."""
    topics = {word: sources.topics[word] for word in sources.make}
    with contextlib.closing(DdsBackend(domain=domain, node="urlab_bench_costs")) as backend:
        with subscriber_process(SubscriberOrder(domain, 3600.0, list(topics.values()))):
            return [_measure_message(plan, backend, word, topics[word], sources.make[word]) for word in topics]


def _measure_message(
    plan: Plan, backend: DdsBackend, what: str, topic: Topic, make: Callable[[], Any]
) -> MessageResult:
    publisher: Publisher = backend.publisher(topic.name, topic.type_name, topic.qos)
    until_s = time.monotonic() + _LIMIT_S
    while not publisher.subscribers:
        if time.monotonic() > until_s:
            raise BenchmarkError(f"no subscriber of {topic.name} came within {_LIMIT_S:g} s")
        time.sleep(_POLL_S)
    cdr = messages.serialise(make(), topic.type_name)
    rounds = Rounds()
    subjects = [
        Subject("whole", lambda: publisher.publish(messages.serialise(make(), topic.type_name))),
        Subject("bare", lambda: publisher.publish(cdr)),
    ]
    for _ in range(plan.rounds):
        rounds.measure(plan.counts, subjects)
    publisher.close()
    return MessageResult(what=what, size_bytes=len(cdr), whole=rounds.timing("whole"), bare=rounds.timing("bare"))


# -- report -------------------------------------------------------------------------------------------------------


def _tables(scene: SceneResult) -> list[Table]:
    words = LOADS[_STALLED]
    loads = Table(
        f"{scene.scene}, physics at {scene.physics_hz:g} Hz: what a subscriber in another process gets",
        ["subscribed", "bridge CPU", "server CPU", *(f"{word} Hz" for word in words), "age ms", "direct"],
    )
    for load in scene.loads:
        ages = ["" if age is None else f"{age[0]:.2f} / {age[1]:.2f}" for age in (load.age_ms, load.direct_age_ms)]
        rates = [f"{load.rates_hz[word]:.1f}" if word in load.rates_hz else "" for word in words]
        cpu = [f"{load.bridge_cpu_percent:.1f} %", f"{load.server_cpu_percent:.1f} %"]
        loads.rows.append([load.load, *cpu, *rates, *ages])
    costs = Table(
        f"{scene.scene}: one message, p50 / p99 in microseconds",
        ["message", "bytes", "converted and published", "bytes published", "ours"],
    )
    for one in scene.messages:
        ours = f"{one.whole.p50_us - one.bare.p50_us:.0f}"
        costs.rows.append([one.what, f"{one.size_bytes:,}", one.whole.pair, one.bare.pair, ours])
    costs.rows.append(["state decoded, once for all", "", scene.decode.pair, "", ""])
    return [loads, costs]


def _panels(scene: SceneResult) -> list[Panel]:
    labels = [load.load.replace(", ", ",\n").replace(" and ", "\nand ", 1) for load in scene.loads]
    cpu = Panel(f"{scene.scene}: bridge CPU", "percent of a core")
    age = Panel("age of joint_states", "ms, p50 to p99; mark: at the server's stream")
    costs = Panel("cost of a message", "us, p50; mark: bytes alone")
    for label, load in zip(labels, scene.loads, strict=True):
        cpu.bars.append(PanelBar(label, [load.bridge_cpu_percent], f"{load.bridge_cpu_percent:.0f} %", colour=1))
        p50, p99 = load.age_ms or (0.0, 0.0)
        direct = load.direct_age_ms[0] if load.direct_age_ms and load.age_ms else None
        age.bars.append(
            PanelBar("", [p50], f"{p50:.1f}, p99 {p99:.1f}" if p99 else "", whisker=p99, mark=direct, colour=2)
        )
    for one in scene.messages:
        costs.bars.append(
            PanelBar(one.what, [one.whole.p50_us], f"{one.whole.p50_us:.0f}", mark=one.bare.p50_us, colour=1)
        )
    return [cpu, age, costs]

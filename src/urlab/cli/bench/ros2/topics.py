"""Which topics of a scene are measured, and what one real message of each is made of."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from urlab.cli.bench.raw import connect
from urlab.cli.bench.ros2.ear_child import Topic
from urlab.cli.complaint import CommandError
from urlab.ros2 import convert
from urlab.ros2.qos import PICTURES, Qos
from urlab.ros2.topics import IMAGE, SceneTopics, TopicChoice, clock_topic
from urlab_client import URLabClient
from urlab_client.live import Channel, StreamListener
from urlab_client.transports.zmq_streams import CameraChannel, StateChannel
from urlab_wire.stream_messages import StateFull, unpack_state

_LIMIT_S = 20.0


class Source(NamedTuple):
    """A topic, and what makes a message of it."""

    topic: Topic
    make: Callable[[], Any]


class SceneSources:
    """One state and one picture of a running scene, and the topics that tell of them.

    ``topics`` are by the words of the plan; ``sources`` are those that a state or a picture makes.
    """

    def __init__(self, client: URLabClient) -> None:
        found = SceneTopics(client, TopicChoice())
        self.physics_hz = 1 / float(client.model.opt.timestep)
        self.state_endpoint = str(client.streams["state"])
        self.payload = _first(lambda take: StateChannel(self.state_endpoint, take))[0]
        told = {one.names[-1].strip("/"): one for one in found.states}
        self.sources = {
            name: Source(_topic(told[name].names[0], told[name].type_name, told[name].qos), self._of_state(told[name]))
            for name in ("joint_states", "tf")
        }
        self.sources["image"] = self._picture(found)
        clock, clock_type, clock_qos = clock_topic()
        self.topics = {"clock": _topic(clock, clock_type, clock_qos)}
        self.topics |= {name: source.topic for name, source in self.sources.items()}

    def decode(self) -> StateFull:
        """The state, decoded as the bridge does it."""
        return unpack_state(self.payload)

    def _of_state(self, told: Any) -> Callable[[], Any]:
        state = self.decode()
        return lambda: told.convert(state)

    def _picture(self, found: SceneTopics) -> Source:
        one = found.cameras[0]
        view = one.view
        data, meta, *_ = _first(lambda take: CameraChannel(view.zmq_endpoint or "", view.zmq_topic or "", take))
        return Source(
            _topic(one.images[0], IMAGE, PICTURES),
            lambda: convert.image(convert.Picture.of_wire(data, meta), one.frame_id),
        )


@contextlib.contextmanager
def scene_sources(step_endpoint: str) -> Iterator[SceneSources]:
    """Those of the scene that a server plays, seen by an observer."""
    with connect(step_endpoint, observer=True) as client:
        yield SceneSources(client)


def _topic(name: str, type_name: str, qos: Qos) -> Topic:
    return Topic(name, type_name, qos.reliable, qos.transient_local, qos.depth)


def _first(channel_to: Callable[[Callable[..., None]], Channel]) -> tuple[Any, ...]:
    """What comes first over a stream; pixels are copied."""
    came = threading.Event()
    found: list[tuple[Any, ...]] = []

    def take(data: Any, *more: Any) -> None:
        if not found:
            found.append((bytes(data), *more))
            came.set()

    listener = StreamListener("urlab-bench-first")
    try:
        listener.add(channel_to(take))
        if not came.wait(_LIMIT_S):
            raise CommandError(f"nothing came over a stream of the server within {_LIMIT_S:g} s")
    finally:
        listener.stop()
    return found[0]

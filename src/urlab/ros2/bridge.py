"""The bridge: one running server as a node in a ROS graph, for as long as both live.

It is an observer of the server, and follows it through restarts and from scene to scene. Threads: the clock has one of
its own, so that nothing delays it; states another; every camera with subscribers one more. The thread that calls
`Bridge.run` does the rest: it alone opens and withdraws topics. Services run on a thread of the backend's, through a
client of their own.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from urlab.ros2.backend import Backend
from urlab.ros2.convert.robots import SceneChanged
from urlab.ros2.geometry import clock_message
from urlab.ros2.publishers import CameraTopicPublisher, ScenePublishers, TopicPublisher, TopicRegistry, TopicStatistics
from urlab.ros2.qos import QosRule
from urlab.ros2.services import SimulationServices
from urlab.ros2.topics import NoScene, SceneTopics, TopicChoice, clock_topic, scene_signature
from urlab_client import PIEState, URLabClient, URLabRPCError
from urlab_client.following import ServerFollower
from urlab_client.transports import find_key
from urlab_client.transports.base import DEFAULT_STATE_PORT, stream_endpoint
from urlab_client.transports.zmq_streams import CameraChannel, ControlSender, StateChannel, StreamListener
from urlab_wire.ops.stepping import ClockBlock
from urlab_wire.stream_messages import unpack_state
from urlab_wire.streams import StreamError

log = logging.getLogger("urlab.ros2")

DEFAULT_RATE_HZ = 200.0
_CAMERAS_S = 0.25
"""How often the bridge looks for subscribers of cameras."""
_SILENCE_S = 3.0
"""States are subscribed to anew when none came for so long, though the simulation runs."""
_CALM_S = 5.0
"""Time that goes back is a reset more often than another scene: then the server is asked at most this often."""
_IDLE = "the server plays nothing"


@dataclass(frozen=True)
class BridgeSettings:
    """Where the server is, and what of it is bridged.

    ``rate_hz`` is the most states a second. With ``services`` the simulation can be controlled from ROS. ``qos_rules``
    change how topics are delivered. ``poll_s`` is how often the server is asked how it is, ``timeout_ms`` how long it
    may take to answer.
    """

    address: str = "tcp://127.0.0.1"
    step_port: int = 5559
    state_port: int = DEFAULT_STATE_PORT
    choice: TopicChoice = field(default_factory=TopicChoice)
    rate_hz: float = DEFAULT_RATE_HZ
    services: bool = True
    qos_rules: tuple[QosRule, ...] = ()
    poll_s: float = 1.0
    timeout_ms: int = 1000


class StateHeader(msgspec.Struct):
    """The part of a ``state/full`` that has the time and tells one scene from another; the rest is not decoded."""

    time: float
    sim_time: ClockBlock
    per_articulation: dict[str, msgspec.Raw]


_decode_header = msgspec.msgpack.Decoder(StateHeader).decode
"""The header of a ``state/full``; ``msgspec.DecodeError`` when it is none. Any thread."""


class Bridge:
    """`run` until another thread calls `stop`. ``backend`` stays the caller's.

    ``problem`` is why nothing is published at the moment, or None.
    """

    def __init__(self, backend: Backend, settings: BridgeSettings) -> None:
        self.problem: str | None = "not connected yet"
        self._backend = backend
        self._settings = settings
        self._registry = TopicRegistry(settings.qos_rules)
        self._stopping = threading.Event()
        self._wake = threading.Event()
        self._server = ServerFollower(
            URLabClient(
                settings.address, step_port=settings.step_port, state_port=settings.state_port, observer=True,
                step_mode="direct", camera_streams=False, rcv_timeout_ms=settings.timeout_ms,
            )
        )  # fmt: skip
        self._handshakes = 0
        self._handshake_s = 0.0
        self._signature: str | None = None
        self._publishers: ScenePublishers | None = None
        self._clock: TopicPublisher | None = None
        self._sender: ControlSender | None = None
        self._robots: frozenset[str] = frozenset()
        self._listeners: list[StreamListener] = []
        self._camera_listeners: dict[CameraTopicPublisher, StreamListener] = {}
        # Written by the listeners' threads and by the services' one.
        self._is_other_scene = False
        self._is_back_in_time = False
        self._is_paused = False
        self._next_state_s = 0.0
        self._last_time_s = 0.0
        self._last_state_s = 0.0

    def run(self) -> None:
        """Bridge until `stop`; a server that is not there, or goes, is waited for."""
        next_poll_s = 0.0
        services = self._open_services()
        try:
            while not self._stopping.is_set():
                if self._handshake_due() or time.monotonic() >= next_poll_s:
                    self._follow_server()
                    next_poll_s = time.monotonic() + self._settings.poll_s
                self._follow_cameras()
                self._wake.wait(min(_CAMERAS_S, self._settings.poll_s))
                self._wake.clear()
        finally:
            if services is not None:
                services.close()
            self._withdraw()
            self._server.close()

    def stop(self) -> None:
        """Let `run` end. Any thread."""
        self._stopping.set()
        self._wake.set()

    @property
    def is_ready(self) -> bool:
        """Whether a scene is being bridged."""
        return self._publishers is not None and self.problem is None

    @property
    def unused_rules(self) -> list[str]:
        """The patterns of those rules about delivery that no topic has fitted so far."""
        return self._registry.unused_patterns

    def statistics(self) -> dict[str, TopicStatistics]:
        """Every topic, its rate since the last call and its subscribers. Any thread."""
        subscribers: dict[str, int] = {}
        publishers, clock = self._publishers, self._clock
        if clock is not None:
            subscribers |= clock.subscribers
        if publishers is not None:
            subscribers |= publishers.subscribers
        return self._registry.sample(subscribers)

    def _open_services(self) -> SimulationServices | None:
        settings = self._settings
        if not settings.services:
            return None
        return SimulationServices(self._backend, settings.address, settings.step_port, self._pause_publishing)

    def _pause_publishing(self, paused: bool) -> None:
        """Publish nothing while a service takes a scene down, as the time of the next begins at 0. Any thread."""
        self._is_paused = paused
        if not paused:
            self._is_other_scene = True
            self._wake.set()

    # -- the server ------------------------------------------------------------------------------------------------

    def _handshake_due(self) -> bool:
        """Whether what the server streams looks like another scene than the one that is bridged."""
        is_calm = time.monotonic() - self._handshake_s > _CALM_S
        return self.problem is None and (self._is_other_scene or (self._is_back_in_time and is_calm))

    def _follow_server(self) -> None:
        """See to it that what the server plays now is bridged; whatever is wrong with it becomes the `problem`."""
        if self._handshake_due():
            self._is_other_scene = self._is_back_in_time = False
            self._server.is_stale = True
        interruptions = self._server.interruptions
        try:
            status = self._server.poll()
            if status.state is not PIEState.READY:
                raise NoScene(_IDLE)
            was_away = self.problem is not None or self._server.interruptions > interruptions
            self._follow_scene(is_paused=bool(status.paused), was_away=was_away)
        except Exception as failed:  # noqa: BLE001 - a server in any state must not end the bridge
            self._note_problem(failed)
        else:
            self.problem = None

    def _follow_scene(self, *, is_paused: bool, was_away: bool) -> None:
        """Bridge the scene of the last handshake, unless it is bridged already.

        ``was_away``: the server did not answer before, or was restarted between two looks at it.
        """
        if was_away or self._handshakes != self._server.handshakes:
            self._handshakes = self._server.handshakes
            self._handshake_s = self._last_state_s = time.monotonic()
            self._show_scene(self._server.client, was_away=was_away)
        elif not is_paused and time.monotonic() - self._last_state_s > _SILENCE_S:
            self._restart_streams(self._server.client)

    def _show_scene(self, client: URLabClient, *, was_away: bool) -> None:
        signature = scene_signature(client)
        if was_away and self._signature:
            log.info("the server is back")
        if signature != self._signature:
            self._bridge(client)
            self._signature = signature
            log.info("bridging %s", ", ".join(client.articulations) or "a scene without robots")

    def _note_problem(self, failed: Exception) -> None:
        text = str(failed) if isinstance(failed, URLabRPCError | NoScene) else f"{type(failed).__name__}: {failed}"
        if text != self.problem:
            log.warning("waiting: %s", text)
            log.debug("this is why", exc_info=failed)
        self.problem = text

    # -- the scene -------------------------------------------------------------------------------------------------

    def _bridge(self, client: URLabClient) -> None:
        """Take the last scene's topics back and open those of this one, all or none."""
        self._withdraw()
        topics = SceneTopics(client, self._settings.choice)
        for warning in topics.warnings:
            log.warning("%s", warning)
        try:
            self._open(client, topics)
        except BaseException:
            self._withdraw()
            raise

    def _open(self, client: URLabClient, topics: SceneTopics) -> None:
        control = self._endpoint(client, "control")
        self._robots = frozenset(client.articulations)
        topic, type_name, qos = clock_topic()
        self._clock = TopicPublisher(self._backend, self._registry, (topic,), type_name, qos)
        self._sender = ControlSender(control, find_key(None)) if control is not None else None
        self._publishers = ScenePublishers(self._backend, self._registry, topics, self._sender)
        self._listen(client)

    def _endpoint(self, client: URLabClient, stream: str) -> str | None:
        bound = client.streams.get(stream)
        return stream_endpoint(bound, self._settings.address) if bound else None

    def _state_endpoint(self, client: URLabClient) -> str:
        """Where the handshake says, unless the settings name another port."""
        settings = self._settings
        known = self._endpoint(client, "state") if settings.state_port == DEFAULT_STATE_PORT else None
        return known or f"{settings.address}:{settings.state_port}"

    def _listen(self, client: URLabClient) -> None:
        endpoint = self._state_endpoint(client)
        self._last_time_s = 0.0
        uses: dict[str, Callable[[bytes], None]] = {"clock": self._publish_time, "state": self._publish_state}
        for name, use in uses.items():
            self._listeners.append(StreamListener(f"urlab-ros2-{name}", find_key(None)))
            self._listeners[-1].add(StateChannel(endpoint, use))

    def _restart_streams(self, client: URLabClient) -> None:
        """Subscribe anew: states ought to come, and do not."""
        log.debug("no states for %.0f s: subscribing anew", _SILENCE_S)
        self._stop_listening()
        self._last_state_s = time.monotonic()
        self._listen(client)

    def _stop_listening(self) -> None:
        for listener in (*self._listeners, *self._camera_listeners.values()):
            listener.stop()
        self._listeners, self._camera_listeners = [], {}

    def _withdraw(self) -> None:
        """Take back every topic of the last scene."""
        self._stop_listening()
        publishers, clock, sender = self._publishers, self._clock, self._sender
        self._publishers = self._clock = self._sender = self._signature = None
        for one in (publishers, clock, sender):
            if one is not None:
                one.close()
        self._registry.clear()

    # -- on the listeners' threads ---------------------------------------------------------------------------------

    def _publish_time(self, payload: bytes) -> None:
        clock = self._clock
        if clock is not None and not self._is_paused:
            clock.publish(lambda: clock_message(_decode_header(payload).sim_time))

    def _publish_state(self, payload: bytes) -> None:
        now_s = time.monotonic()
        self._last_state_s = now_s
        publishers, period_s = self._publishers, 1 / self._settings.rate_hz
        if now_s < self._next_state_s or publishers is None or self._is_paused:
            return
        self._next_state_s = max(self._next_state_s + period_s, now_s - period_s)
        try:
            if self._is_of_this_scene(_decode_header(payload)) and publishers.has_subscribers:
                publishers.publish(unpack_state(payload))
        except (SceneChanged, StreamError, msgspec.DecodeError) as strange:
            log.debug("a state is not of this scene: %s", strange)
            self._suspect_other_scene()

    def _is_of_this_scene(self, header: StateHeader) -> bool:
        if header.per_articulation.keys() != self._robots:
            self._suspect_other_scene()
            return False
        if header.time < self._last_time_s:
            self._is_back_in_time = True
        self._last_time_s = header.time
        return True

    def _suspect_other_scene(self) -> None:
        if time.monotonic() - self._handshake_s > self._settings.poll_s:
            self._is_other_scene = True
            self._wake.set()

    # -- cameras ---------------------------------------------------------------------------------------------------

    def _follow_cameras(self) -> None:
        """Listen to those cameras that have subscribers: the server draws no others."""
        for camera in self._publishers.cameras if self._publishers is not None else []:
            wanted, listener = camera.has_subscribers, self._camera_listeners.get(camera)
            if wanted and listener is None:
                self._listen_to_camera(camera)
            elif not wanted and listener is not None:
                self._camera_listeners.pop(camera).stop()

    def _listen_to_camera(self, camera: CameraTopicPublisher) -> None:
        view = camera.topics.view
        endpoint = stream_endpoint(view.zmq_endpoint or "", self._settings.address)
        self._camera_listeners[camera] = listener = StreamListener(f"urlab-ros2-{view.name}", find_key(None))
        listener.add(CameraChannel(endpoint, view.zmq_topic or "", camera.show))

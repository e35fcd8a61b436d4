"""The bridge: one running server as a node in a ROS graph, for as long as both live.

It looks on as an observer, and follows the server through restarts and from scene to scene. Threads: the clock has one
of its own, so that nothing delays it; states another; every camera that somebody wants one more. Whoever runs the
bridge lends it a thread for the rest: that one alone opens and withdraws topics. Services run on a thread of the
backend's, through a client of their own.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from urlab.ros2 import convert
from urlab.ros2.backend import Backend
from urlab.ros2.glance import Glance, glance
from urlab.ros2.outlets import CameraOutlet, Outlet, SceneOutlets
from urlab.ros2.scene_signature import NoScene, scene_signature
from urlab.ros2.services import SimulationServices
from urlab.ros2.tally import Tally, TopicTally
from urlab.ros2.topics import Choice, SceneTopics, clock_topic
from urlab_client import URLabClient, URLabRPCError
from urlab_client.live import StreamListener
from urlab_client.transports.base import DEFAULT_STATE_PORT, stream_endpoint
from urlab_client.transports.zmq_streams import CameraChannel, ControlSender, StateChannel
from urlab_wire.stream_messages import unpack_state
from urlab_wire.streams import StreamError

log = logging.getLogger("urlab.ros2")

DEFAULT_RATE_HZ = 200.0
_LOOK_S = 0.25
_STATUS_S = 1.0
_PATIENCE_MS = 1000
_SILENCE_S = 3.0
_CALM_S = 5.0
"""Time that goes back is a reset more often than another scene: then the server is asked at most this often."""
_IDLE = "the server plays nothing"


@dataclass(frozen=True)
class Settings:
    """Where the server is, and what of it is bridged, at most how often a second."""

    address: str = "tcp://127.0.0.1"
    step_port: int = 5559
    state_port: int = DEFAULT_STATE_PORT
    choice: Choice = field(default_factory=Choice)
    rate_hz: float = DEFAULT_RATE_HZ
    services: bool = True
    """Whether the simulation can be controlled from ROS."""


class Bridge:
    """`run` until somebody calls `stop`. ``backend`` stays the caller's."""

    def __init__(self, backend: Backend, settings: Settings) -> None:
        self._backend = backend
        self._settings = settings
        self._tally = Tally()
        self._stopping = threading.Event()
        self._wake = threading.Event()
        self._is_other_scene = False
        self._is_back_in_time = False
        self._is_hushed = False
        self._greeted_s = 0.0
        self._client: URLabClient | None = None
        self._signature: str | None = None
        self._outlets: SceneOutlets | None = None
        self._clock: Outlet | None = None
        self._sender: ControlSender | None = None
        self._robots: frozenset[str] = frozenset()
        self._listeners: list[StreamListener] = []
        self._camera_listeners: dict[CameraOutlet, StreamListener] = {}
        self._next_s = 0.0
        self._last_time_s = 0.0
        self._heard_s = 0.0
        self.problem: str | None = "not connected yet"
        """Why nothing is said at the moment, or None."""

    # -- for whoever runs it --------------------------------------------------------------------------------------

    def run(self) -> None:
        """Bridge until `stop`; a server that is not there, or goes, is waited for."""
        next_status_s = 0.0
        services = self._open_services()
        try:
            while not self._stopping.is_set():
                if self._must_greet() or time.monotonic() >= next_status_s:
                    self._look_at_server()
                    next_status_s = time.monotonic() + _STATUS_S
                self._follow_cameras()
                self._wake.wait(_LOOK_S)
                self._wake.clear()
        finally:
            if services is not None:
                services.close()
            self._withdraw()
            self._leave()

    def _open_services(self) -> SimulationServices | None:
        settings = self._settings
        if not settings.services:
            return None
        return SimulationServices(self._backend, settings.address, settings.step_port, self._hush)

    def _hush(self, hushed: bool) -> None:
        """Say nothing while a service takes a scene down, as the time of the next begins at 0. Any thread."""
        self._is_hushed = hushed
        if not hushed:
            self._is_other_scene = True
            self._wake.set()

    def stop(self) -> None:
        """Let `run` end. Any thread."""
        self._stopping.set()
        self._wake.set()

    @property
    def is_ready(self) -> bool:
        """Whether a scene is being bridged."""
        return self._outlets is not None and self.problem is None

    def look(self) -> dict[str, TopicTally]:
        """Every topic, how often it speaks and who listens. Any thread."""
        subscribers: dict[str, int] = {}
        outlets, clock = self._outlets, self._clock
        if clock is not None:
            subscribers |= clock.subscribers
        if outlets is not None:
            subscribers |= outlets.subscribers
        return self._tally.look(subscribers)

    # -- the server ------------------------------------------------------------------------------------------------

    def _must_greet(self) -> bool:
        """Whether it is time to ask the server anew what it shows."""
        is_calm = time.monotonic() - self._greeted_s > _CALM_S
        return self.problem is None and (self._is_other_scene or (self._is_back_in_time and is_calm))

    def _look_at_server(self) -> None:
        """See to it that what the server plays now is bridged; whatever is wrong with it becomes the `problem`."""
        is_new = self._client is None
        try:
            client = self._client or self._meet()
            is_paused = _ask_status(client)
            if self.problem is not None or self._must_greet():
                self._greet(client, anew=not is_new)
            elif not is_paused and time.monotonic() - self._heard_s > _SILENCE_S:
                self._restart_streams(client)
        except Exception as failed:  # noqa: BLE001 - a server in any state must not end the bridge
            if not isinstance(failed, NoScene):
                self._leave()
            self._pause(failed)
        else:
            self.problem = None

    def _meet(self) -> URLabClient:
        settings = self._settings
        self._client = URLabClient(
            settings.address, step_port=settings.step_port, state_port=settings.state_port, observer=True,
            step_mode="direct", camera_streams=False, rcv_timeout_ms=_PATIENCE_MS,
        )  # fmt: skip
        self._client.discover()
        return self._client

    def _greet(self, client: URLabClient, *, anew: bool) -> None:
        """Bridge the scene that the server shows, after another hello if need be, unless it is bridged already."""
        self._is_other_scene = self._is_back_in_time = False
        if anew:
            client.discover()
        self._greeted_s = self._heard_s = time.monotonic()
        if not client.manager_present:
            raise NoScene(_IDLE)
        signature = scene_signature(client)
        if signature != self._signature:
            self._bridge(client)
            self._signature = signature
            log.info("bridging %s", ", ".join(client.articulations) or "a scene without robots")
        elif self.problem is not None:
            log.info("the server is back")

    def _pause(self, failed: Exception) -> None:
        said = str(failed) if isinstance(failed, URLabRPCError | NoScene) else f"{type(failed).__name__}: {failed}"
        if said != self.problem:
            log.warning("waiting: %s", said)
            log.debug("this is why", exc_info=failed)
        self.problem = said

    def _leave(self) -> None:
        """End the session; topics stay."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

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
        self._clock = Outlet(self._backend, self._tally, (topic,), type_name, qos)
        self._sender = ControlSender(control) if control is not None else None
        self._outlets = SceneOutlets(self._backend, self._tally, topics, self._sender)
        self._listen(client)

    def _endpoint(self, client: URLabClient, name: str) -> str | None:
        told = client.streams.get(name)
        return stream_endpoint(told, self._settings.address) if told else None

    def _state_endpoint(self, client: URLabClient) -> str:
        """Where the handshake says, unless whoever runs the bridge knows better."""
        settings = self._settings
        told = self._endpoint(client, "state") if settings.state_port == DEFAULT_STATE_PORT else None
        return told or f"{settings.address}:{settings.state_port}"

    def _listen(self, client: URLabClient) -> None:
        endpoint = self._state_endpoint(client)
        self._last_time_s = 0.0
        uses: dict[str, Callable[[bytes], None]] = {"clock": self._tell_time, "state": self._tell_state}
        for name, use in uses.items():
            self._listeners.append(StreamListener(f"urlab-ros2-{name}"))
            self._listeners[-1].add(StateChannel(endpoint, use))

    def _restart_streams(self, client: URLabClient) -> None:
        """Subscribe anew: states ought to come, and do not."""
        log.debug("no states for %.0f s: subscribing anew", _SILENCE_S)
        self._stop_listening()
        self._heard_s = time.monotonic()
        self._listen(client)

    def _stop_listening(self) -> None:
        for listener in (*self._listeners, *self._camera_listeners.values()):
            listener.stop()
        self._listeners, self._camera_listeners = [], {}

    def _withdraw(self) -> None:
        """Take back every topic of the last scene."""
        self._stop_listening()
        outlets, clock, sender = self._outlets, self._clock, self._sender
        self._outlets = self._clock = self._sender = self._signature = None
        for one in (outlets, clock, sender):
            if one is not None:
                one.close()
        self._tally.forget()

    # -- on the listeners' threads ---------------------------------------------------------------------------------

    def _tell_time(self, payload: bytes) -> None:
        clock = self._clock
        if clock is not None and not self._is_hushed:
            clock.send(lambda: convert.clock(glance(payload).sim_time))

    def _tell_state(self, payload: bytes) -> None:
        now_s = time.monotonic()
        self._heard_s = now_s
        outlets, period_s = self._outlets, 1 / self._settings.rate_hz
        if now_s < self._next_s or outlets is None or self._is_hushed:
            return
        self._next_s = max(self._next_s + period_s, now_s - period_s)
        try:
            if self._is_of_this_scene(glance(payload)) and outlets.is_heard:
                outlets.tell(unpack_state(payload))
        except (convert.SceneChanged, StreamError, msgspec.DecodeError) as strange:
            log.debug("a state is not of this scene: %s", strange)
            self._suspect_other_scene()

    def _is_of_this_scene(self, seen: Glance) -> bool:
        if seen.per_articulation.keys() != self._robots:
            self._suspect_other_scene()
            return False
        if seen.time < self._last_time_s:
            self._is_back_in_time = True
        self._last_time_s = seen.time
        return True

    def _suspect_other_scene(self) -> None:
        if time.monotonic() - self._greeted_s > _STATUS_S:
            self._is_other_scene = True
            self._wake.set()

    # -- cameras ---------------------------------------------------------------------------------------------------

    def _follow_cameras(self) -> None:
        """Listen to those cameras that somebody wants: the server draws no others."""
        for camera in self._outlets.cameras if self._outlets is not None else []:
            wanted, listener = camera.is_wanted, self._camera_listeners.get(camera)
            if wanted and listener is None:
                self._watch(camera)
            elif not wanted and listener is not None:
                self._camera_listeners.pop(camera).stop()

    def _watch(self, camera: CameraOutlet) -> None:
        view = camera.pictured.view
        endpoint = stream_endpoint(view.zmq_endpoint or "", self._settings.address)
        self._camera_listeners[camera] = listener = StreamListener(f"urlab-ros2-{view.name}")
        listener.add(CameraChannel(endpoint, view.zmq_topic or "", camera.show))


def _ask_status(client: URLabClient) -> bool:
    """Whether the scene that plays is paused; `NoScene` when none does."""
    status = client.sim.status()
    if status.state.value != "ready":
        raise NoScene(_IDLE)
    return bool(status.paused)

"""Watching a whole scene: its states, its rates, its cameras; as a table, or as one JSON document at the end."""

import time
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from urlab.cli.console import WRONG_USE, CommandError, print_json, stdout
from urlab.cli.watch.display import (
    CameraReading,
    Display,
    Reading,
    RobotReading,
    beats,
    fits,
    read_robot,
    report,
    table,
)
from urlab.cli.watch.rates import Pace, Rate, RateWindow, StreamSubscription, Subscriptions
from urlab.cli.watch.server import WatchedServer
from urlab_client import URLabCameraView
from urlab_wire.stream_messages import StateFull, unpack_metadata, unpack_state
from urlab_wire.streams import STATE_TOPIC, StreamError, meta_topic

if TYPE_CHECKING:
    from urlab.cli.watch.keyboard import Keyboard

_STATE_QUEUE = 10_000
_CAMERA_QUEUE = 8
_SILENCE_S = 1.0
_POLL_S = 0.01
DEFAULT_REPORT_S = 3.0
_SPAN_S = 2.0
_SETTLE_S = 1.0


class SceneMonitor:
    """Subscribed to everything that a server publishes, or to what belongs to one robot, while it is entered.

    Rates are over the last ``span_s``, or from `restart` on if that is None. Without ``with_cameras`` no camera is
    subscribed to: cameras without another subscriber are not rendered then. For one thread.
    """

    def __init__(self, server: WatchedServer, robot: str | None, *, with_cameras: bool, span_s: float | None) -> None:
        self._server = server
        self._robot = robot
        self._with_cameras = with_cameras
        self._states, self._pictures = Subscriptions(), Subscriptions()
        self._state_rates, self._picture_rates = RateWindow(span_s), RateWindow(span_s)
        self._pace = Pace(span_s)
        self._payload: bytes | None = None
        self._state: StateFull | None = None
        self._misfit: object = None
        self._state_s = time.monotonic()

    def __enter__(self) -> Self:
        self._follow()
        return self

    def __exit__(self, *failure: object) -> None:
        self._states.stop()
        self._pictures.stop()

    def settle(self, limit_s: float) -> None:
        """Wait until every subscription of a scene has brought something, but not for long; then measure from there."""
        give_up_s = time.monotonic() + (limit_s if self._server.is_playing else 0.0)
        while time.monotonic() < give_up_s and not (self._states.all_have_data and self._pictures.all_have_data):
            time.sleep(_POLL_S)
        self.sample()

    def sample(self) -> Reading:
        """What there is to see at this moment."""
        server = self._server
        server.tend()
        self._follow()
        self._take_state()
        self._count()
        return Reading(
            endpoint=server.endpoint,
            state_endpoint=server.state_endpoint,
            version=server.client.urlab_version,
            status=server.status,
            interruptions=server.interruptions,
            seconds=self._state_rates.seconds,
            sim_time_s=None if self._state is None else self._state.time,
            real_time_factor=self._pace.factor(),
            topics=self._state_rates.rates(),
            robots=self._robots(),
            cameras=self._cameras(),
            problem=self._problem(),
        )

    def _follow(self) -> None:
        """Listen where the server publishes now."""
        views = self._watched_cameras().values()
        self._states.follow([self._of_states()])
        self._pictures.follow([one for view in views if (one := self._of_camera(view)) is not None])

    def _of_states(self) -> StreamSubscription:
        topics = ("",) if self._robot is None else (STATE_TOPIC, f"{self._robot}/")
        return StreamSubscription(self._server.state_endpoint, topics, STATE_TOPIC, _STATE_QUEUE)

    def _of_camera(self, view: URLabCameraView) -> StreamSubscription | None:
        if not (view.zmq_endpoint and view.zmq_topic):
            return None
        topic = _topic(view)
        endpoint = self._server.stream_endpoint(view.zmq_endpoint)
        return StreamSubscription(endpoint, (meta_topic(topic), topic), meta_topic(topic), _CAMERA_QUEUE)

    def _watched_cameras(self) -> dict[str, URLabCameraView]:
        if not self._with_cameras:
            return {}
        return {name: view for name, view in self._server.cameras.items() if self._robot in (None, view.owner)}

    def _count(self) -> None:
        now_s = time.monotonic()
        self._state_rates.add(now_s, self._states.tallies())
        self._picture_rates.add(now_s, self._pictures.tallies())

    def _take_state(self) -> None:
        payload = self._states.newest(self._of_states())
        if payload is None or payload is self._payload:
            return
        self._payload, self._state_s = payload, time.monotonic()
        try:
            state = unpack_state(payload)
        except StreamError:
            return
        before, self._state = self._state, state
        self._pace.add(state.time, state.wall_time.sec + 1e-9 * state.wall_time.nsec)
        if before is not None and state.time < before.time:
            self._server.is_stale = True

    def _robots(self) -> dict[str, RobotReading]:
        states = self._state.per_articulation if self._state and self._server.is_playing else {}
        if not states:
            return {}
        if not fits(self._server.client.articulations, states):
            # Another scene plays. A handshake that does not help is not repeated.
            sizes = {name: len(state.qpos) for name, state in states.items()}
            if sizes != self._misfit:
                self._misfit, self._server.is_stale = sizes, True
            return {}
        shown = {
            name: robot for name, robot in self._server.client.articulations.items() if self._robot in (None, name)
        }
        return {name: read_robot(robot, states[name]) for name, robot in shown.items()}

    def _cameras(self) -> dict[str, CameraReading]:
        rates = self._picture_rates.rates()
        return {name: self._camera(view, rates) for name, view in self._watched_cameras().items()}

    def _camera(self, view: URLabCameraView, rates: dict[str, Rate]) -> CameraReading:
        """As the newest picture has it: the mode may have been switched since the handshake."""
        subscription = self._of_camera(view)
        meta = _metadata(self._pictures.newest(subscription)) if subscription is not None else {}
        size = (meta.get("width") or view.resolution[0], meta.get("height") or view.resolution[1])
        return CameraReading(meta.get("mode") or view.mode.value, size, rates.get(_topic(view), Rate(0.0, 0.0)))

    def _problem(self) -> str | None:
        server = self._server
        if server.status is None:
            return f"{server.endpoint} does not answer; waiting for it to come back"
        if not server.is_playing:
            reason = f": {server.status.compile_error}" if server.status.compile_error else ""
            return f"nothing plays ({server.status.state.value}{reason})"
        if self._robot is not None and self._robot not in server.client.articulations:
            return f"there is no robot {self._robot!r}; there are: {', '.join(server.client.articulations) or 'none'}"
        if time.monotonic() - self._state_s > _SILENCE_S:
            return f"nothing comes from {server.state_endpoint}: is this its state port (--state-port)?"
        return None


def _topic(view: URLabCameraView) -> str:
    return (view.zmq_topic or "").rstrip(" ")


def _metadata(payload: bytes | None) -> dict[str, Any]:
    try:
        return {} if payload is None else unpack_metadata(payload)
    except StreamError:
        return {}


def show_scene(
    server: WatchedServer,
    robot: str | None,
    *,
    with_cameras: bool,
    seconds: float | None,
    keyboard: "Keyboard | None" = None,
) -> None:
    """Show a table for some seconds, or until Ctrl-C; what keys do is told below it."""
    _check_robot(server, robot)
    with (
        SceneMonitor(server, robot, with_cameras=with_cameras, span_s=_SPAN_S) as monitor,
        Display(stdout()) as display,
    ):
        for is_last in beats(seconds):
            if keyboard is not None:
                keyboard.tend()
            message = None if keyboard is None else keyboard.message
            display.show(partial(table, monitor.sample(), message=message), is_last=is_last)


def report_scene(server: WatchedServer, robot: str | None, *, with_cameras: bool, seconds: float | None) -> None:
    """Watch for some seconds, or until Ctrl-C, then print one JSON document."""
    _check_robot(server, robot)
    with SceneMonitor(server, robot, with_cameras=with_cameras, span_s=None) as monitor:
        monitor.settle(_SETTLE_S)
        try:
            for _ in beats(seconds or DEFAULT_REPORT_S):
                reading = monitor.sample()
        except KeyboardInterrupt:
            reading = monitor.sample()
        print_json(report(reading))


def _check_robot(server: WatchedServer, robot: str | None) -> None:
    """While nothing plays it is not known which robots there will be."""
    if robot is not None and server.is_playing and robot not in server.client.articulations:
        known = ", ".join(server.client.articulations) or "none"
        raise CommandError(f"there is no robot {robot!r}; there are: {known}", WRONG_USE)

"""All streaming sockets of a server together: state, control, info and cameras."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import zmq

from urlab.access import KeysFolder
from urlab.config import Ports
from urlab.transport.endpoint import listen
from urlab.transport.guard import ConnectionGuard
from urlab.transport.publisher import SceneSource, StreamedCamera
from urlab.transport.streams.camera_publisher import CameraPublisher
from urlab.transport.streams.control_receiver import ControlReceiver
from urlab.transport.streams.publishing import PublishingThread
from urlab.transport.streams.state_publisher import InfoPublisher, StatePublisher


class Streams:
    """Bound from construction to `close`; scenes are attached and detached in between, on the same ports."""

    def __init__(self, base: str, ports: Ports, *, share: bool = False, keys: KeysFolder | None = None) -> None:
        """``share`` lets other users of this machine in, ``keys`` clients with keys only, from wherever.

        ConfigError names a port that is taken, and its option.
        """
        share = share or keys is not None  # then keys decide, also on socket files
        with contextlib.ExitStack() as undo:
            context: zmq.Context[zmq.Socket[bytes]] = undo.enter_context(zmq.Context())
            guard = ConnectionGuard(context, share=share, keys=keys)
            undo.callback(guard.close)
            thread = PublishingThread(guard)
            undo.callback(thread.close)
            self._state = StatePublisher(thread, listen(base, ports.state, option="--state-port", share=share))
            undo.callback(self._state.close)
            self._control = ControlReceiver(guard, listen(base, ports.control, option="--control-port", share=share))
            undo.callback(self._control.close)
            self._info = InfoPublisher(thread, listen(base, ports.info, option="--info-port", share=share))
            named = {ports.step, ports.state, ports.control, ports.info}
            self._cameras = CameraPublisher(thread, base, ports.camera, named, share=share)
            self._undo = undo.pop_all()

    @property
    def on_subscriber(self) -> Callable[[], None]:
        """Called on the publishing thread when a camera gets a subscriber; it must not take long."""
        return self._cameras.on_subscriber

    @on_subscriber.setter
    def on_subscriber(self, callback: Callable[[], None]) -> None:
        self._cameras.on_subscriber = callback

    def attach(self, source: SceneSource, cameras: Sequence[StreamedCamera]) -> None:
        """Serve a scene, and those of its cameras that stream."""
        self._cameras.attach(cameras)
        self._info.attach(source, self._cameras.endpoints())
        self._control.attach(source.control, source.control_hint)
        self._state.attach(source)

    def detach(self) -> None:
        """Leave the scene alone. The sockets stay, and so do their subscribers."""
        self._state.detach()
        self._control.detach()
        self._info.detach()
        self._cameras.detach()

    def wants(self, topic: str) -> bool:
        """Whether a camera's pictures have a subscriber. Any thread."""
        return self._cameras.wants(topic)

    def publish(self, topic: str, metadata: Mapping[str, Any], data: bytes | memoryview) -> None:
        """Send a picture to its subscribers; ``data`` is not copied. Any thread; it never waits."""
        self._cameras.publish(topic, metadata, data)

    def endpoints(self) -> dict[str, Any]:
        """Where clients connect: ``state``, ``control``, ``info``, and ``cameras`` by name."""
        return {
            "state": self._state.socket.endpoint,
            "control": self._control.endpoint,
            "info": self._info.socket.endpoint,
            "cameras": self._cameras.endpoints(),
        }

    def counters(self) -> dict[str, Any]:
        """What went out and came in since the start, by stream; ``cameras`` by name."""
        return {
            "state": self._state.socket.counters(),
            "control": self._control.counters(),
            "info": self._info.socket.counters(),
            "cameras": self._cameras.counters(),
        }

    def close(self) -> None:
        """Close every socket; what was not sent by then is lost. Once is enough."""
        self.detach()
        self._undo.close()

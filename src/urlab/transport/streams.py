"""All streaming sockets of a server together: state, control, info and cameras."""

import contextlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

import zmq

from urlab.config import Ports
from urlab.transport.camera_publisher import CameraPublisher
from urlab.transport.control_in import ControlIn
from urlab.transport.endpoint import listen
from urlab.transport.info_publisher import InfoPublisher, InfoSource
from urlab.transport.publishing_thread import PublishingThread
from urlab.transport.state_publisher import StatePublisher, StateSource
from urlab_wire.streams import ControlOutcome


class StreamSource(StateSource, InfoSource, Protocol):
    """A running scene, as the streams know it."""

    def control(self, messages: Sequence[tuple[bytes, bytes]]) -> Sequence[ControlOutcome]:
        """Take messages of the control socket; what became of each."""


class Streams:
    """Bound from construction to `close`; scenes are attached and detached in between, on the same ports."""

    def __init__(self, base: str, ports: Ports, *, avoided_ports: Collection[int] = ()) -> None:
        """``avoided_ports`` are those of other parts of the server, which no camera may take.

        ConfigError names a port that is taken, and its option.
        """
        with contextlib.ExitStack() as undo:
            context: zmq.Context[zmq.Socket[bytes]] = undo.enter_context(zmq.Context())
            thread = PublishingThread(context)
            undo.callback(thread.close)
            self._state = StatePublisher(thread, listen(base, ports.state, option="--state-port"))
            undo.callback(self._state.close)
            self._control = ControlIn(context, listen(base, ports.control, option="--control-port"))
            undo.callback(self._control.close)
            self._info = InfoPublisher(thread, listen(base, ports.info, option="--info-port"))
            named = {ports.step, ports.state, ports.control, ports.info, *avoided_ports}
            self.cameras = CameraPublisher(thread, base, ports.camera, named)
            self._undo = undo.pop_all()

    def attach(self, source: StreamSource, cameras: Mapping[str, str]) -> None:
        """Serve a scene. ``cameras`` maps the names of those that stream to their topics."""
        self.cameras.attach(cameras)
        self._info.attach(source, self.cameras.endpoints())
        self._control.attach(source.control)
        self._state.attach(source)

    def detach(self) -> None:
        """Leave the scene alone. The sockets stay, and so do their subscribers."""
        self._state.detach()
        self._control.detach()
        self._info.detach()
        self.cameras.detach()

    def endpoints(self) -> dict[str, Any]:
        """Where clients connect: ``state``, ``control``, ``info``, and ``cameras`` by name."""
        return {
            "state": self._state.endpoint,
            "control": self._control.endpoint,
            "info": self._info.endpoint,
            "cameras": self.cameras.endpoints(),
        }

    def counters(self) -> dict[str, Any]:
        """What went out and came in since the start, by stream; ``cameras`` by name."""
        return {
            "state": self._state.counters(),
            "control": self._control.counters(),
            "info": self._info.counters(),
            "cameras": self.cameras.counters(),
        }

    def close(self) -> None:
        """Close every socket; what was not sent by then is lost. Once is enough."""
        self.detach()
        self._undo.close()

"""Publishers of one scene: what is said of states, what is said once, what cameras see."""

import contextlib
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from urlab.ros2 import convert, messages
from urlab.ros2.backend import Attributed, Backend, Publisher, Subscription
from urlab.ros2.qos import PICTURES, RELIABLE, TF, Qos
from urlab.ros2.tally import Tally
from urlab.ros2.topics import CAMERA_INFO, COMPRESSED, IMAGE, TF_MESSAGE, Heard, Names, Pictured, SceneTopics
from urlab_client.transports.zmq_streams import ControlSender
from urlab_wire.stream_messages import StateFull

log = logging.getLogger("urlab.ros2")

_LOGGED_EACH = 100
"""Of commands or pictures that are refused one after the other, so many are counted for one that is logged."""


class Outlet:
    """One message to all topics that say the same; nothing is made while nobody listens."""

    def __init__(self, backend: Backend, tally: Tally, names: Names, type_name: str, qos: Qos) -> None:
        self._tally = tally
        self._type_name = type_name
        self._publishers: dict[str, Publisher] = {}
        try:
            for name in names:
                tally.open(name, type_name)
                self._publishers[name] = backend.publisher(name, type_name, qos)
        except BaseException:
            self.close()
            raise

    @property
    def names(self) -> str:
        """Its topics, to be read."""
        return ", ".join(self._publishers)

    @property
    def is_heard(self) -> bool:
        """Whether anybody listens."""
        return any(one.subscribers for one in self._publishers.values())

    @property
    def subscribers(self) -> dict[str, int]:
        """How many listen, by topic."""
        return {name: one.subscribers for name, one in self._publishers.items()}

    def send(self, make: Callable[[], Any], *, always: bool = False) -> None:
        """Send a message to those topics that somebody hears; ``always`` is for those that are kept."""
        heard = [(name, one) for name, one in self._publishers.items() if always or one.subscribers]
        if not heard:
            return
        cdr = messages.serialise(make(), self._type_name)
        for name, publisher in heard:
            publisher.publish(cdr)
            self._tally.count(name)

    def close(self) -> None:
        """Withdraw the topics."""
        for publisher in self._publishers.values():
            publisher.close()


class CameraOutlet:
    """A camera's topics: pictures, the lens, compressed pictures, and its place if it follows something."""

    def __init__(self, backend: Backend, tally: Tally, pictured: Pictured) -> None:
        self.pictured = pictured
        with contextlib.ExitStack() as undo:

            def outlet(names: Names, type_name: str, qos: Qos = PICTURES) -> Outlet:
                opened: Outlet = _kept(undo, Outlet(backend, tally, names, type_name, qos))
                return opened

            self._image = outlet(pictured.images, IMAGE)
            self._info = outlet(pictured.infos, CAMERA_INFO)
            self._compressed = outlet(pictured.compressed, COMPRESSED)
            self._place = outlet(("/tf",), TF_MESSAGE, TF) if pictured.follows else None
            undo.pop_all()
        self._bad = 0

    @property
    def outlets(self) -> list[Outlet]:
        """All of them."""
        return [self._image, self._info, self._compressed, *([self._place] if self._place else [])]

    @property
    def is_wanted(self) -> bool:
        """Whether the camera has to be drawn."""
        return any(one.is_heard for one in (self._image, self._info, self._compressed))

    def show(
        self,
        data: bytes | memoryview,
        meta: Mapping[str, Any] | None = None,
        skipped: int = 0,  # noqa: ARG002
    ) -> None:
        """Say what the camera sees; a picture that cannot be understood is logged and left out."""
        if meta is None:
            return
        try:
            self._show(convert.Picture.of_wire(data, meta))
            self._bad = 0
        except convert.BadPicture as bad:
            if self._bad % _LOGGED_EACH == 0:
                log.warning("%s: %s", self.pictured.view.full_name, bad)
            self._bad += 1

    def _show(self, picture: convert.Picture) -> None:
        frame_id = self.pictured.frame_id
        if self._place is not None:
            transform = convert.camera_transform(picture, frame_id)
            self._place.send(lambda: messages.make(TF_MESSAGE, transforms=[transform]))
        compress = convert.compressed_depth if picture.is_depth else convert.compressed
        self._info.send(lambda: convert.camera_info(picture, frame_id))
        self._image.send(lambda: convert.image(picture, frame_id))
        self._compressed.send(lambda: compress(picture, frame_id))

    def close(self) -> None:
        """Withdraw the topics."""
        for outlet in self.outlets:
            outlet.close()


class SceneOutlets:
    """Everything of one scene, from construction to `close`."""

    def __init__(self, backend: Backend, tally: Tally, topics: SceneTopics, control: ControlSender | None) -> None:
        self._tally = tally
        self._control = control
        self._silent: set[Outlet] = set()
        with contextlib.ExitStack() as undo:
            self._told = [
                (one.convert, _kept(undo, Outlet(backend, tally, one.names, one.type_name, one.qos)))
                for one in topics.told
            ]
            self.cameras = [_kept(undo, CameraOutlet(backend, tally, one)) for one in topics.pictured]
            self._constants = [
                (one.message, _kept(undo, Outlet(backend, tally, one.names, one.type_name, one.qos)))
                for one in topics.constants
            ]
            for heard in topics.heard if control is not None else []:
                for name in heard.names:
                    _kept(undo, self._listen(backend, name, heard))
            for message, outlet in self._constants:
                outlet.send(lambda message=message: message, always=True)
            self._undo = undo.pop_all()

    @property
    def is_heard(self) -> bool:
        """Whether anybody wants to know of states."""
        return any(outlet.is_heard for _, outlet in self._told)

    def tell(self, state: StateFull) -> None:
        """Say everything that is said of a state; `SceneChanged` when it is another scene's.

        What cannot be said for another reason is logged once, and keeps nothing else from being said.
        """
        for make, outlet in self._told:
            try:
                outlet.send(lambda make=make: make(state))
            except convert.SceneChanged:
                raise
            except Exception:
                if outlet not in self._silent:
                    self._silent.add(outlet)
                    log.exception("nothing can be said on %s", outlet.names)

    @property
    def subscribers(self) -> dict[str, int]:
        """How many listen, by topic."""
        outlets: Iterable[Outlet] = [
            *(outlet for _, outlet in (*self._told, *self._constants)),
            *(outlet for camera in self.cameras for outlet in camera.outlets),
        ]
        return {name: count for outlet in outlets for name, count in outlet.subscribers.items()}

    def close(self) -> None:
        """Withdraw every topic. Once is enough."""
        self._undo.close()

    def _listen(self, backend: Backend, name: str, heard: Heard) -> Subscription:
        self._tally.open(name, heard.type_name, heard=True)
        subscription: Subscription | None = None
        refused = 0

        def take(cdr: bytes) -> None:
            nonlocal refused
            try:
                topic, payload = heard.read(messages.deserialise(cdr, heard.type_name))
            except Exception as bad:  # noqa: BLE001 - whatever is wrong with a message, the next one counts
                self._tally.count(name, refused=True)
                if refused % _LOGGED_EACH == 0:
                    log.warning("a command on %s%s is refused: %s", name, _origin(subscription), bad)
                refused += 1
                return
            if self._control is not None:
                self._control.send(topic, payload)
            self._tally.count(name)
            refused = 0

        subscription = backend.subscription(name, heard.type_name, RELIABLE, take)
        return subscription


def _origin(subscription: Subscription | None) -> str:
    """Who wrote the message that is being delivered, to be read; nothing where it cannot be known."""
    source = subscription.source() if isinstance(subscription, Attributed) else None
    return f" by the publisher {source}" if source else ""


def _kept(undo: contextlib.ExitStack, one: Any) -> Any:
    undo.callback(one.close)
    return one

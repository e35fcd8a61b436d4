"""The state stream as the bridge needs it: the newest payload, and a glance at it that costs little."""

from collections.abc import Callable

import msgspec

from urlab_client.live import Message
from urlab_wire.ops.stepping import ClockBlock
from urlab_wire.streams import STATE_TOPIC

_QUEUE = 100


class Glance(msgspec.Struct):
    """What tells the time, and one scene from another; the rest of a state is not decoded."""

    time: float
    sim_time: ClockBlock
    per_articulation: dict[str, msgspec.Raw]


_decoder = msgspec.msgpack.Decoder(Glance)


def glance(payload: bytes) -> Glance:
    """Read the beginning of a ``state/full``; ``msgspec.DecodeError`` when it is none. Any thread."""
    return _decoder.decode(payload)


class StateChannel:
    """A channel of `urlab_client.live.Listener`: hands the newest payload over."""

    topics: tuple[bytes, ...] = (STATE_TOPIC.encode(),)
    queue = _QUEUE

    def __init__(self, endpoint: str, use: Callable[[bytes], None]) -> None:
        self.endpoint = endpoint
        self._use = use
        self._newest: bytes | None = None

    def feed(self, message: Message) -> None:
        """Remember a payload."""
        if len(message) == 2 and message[0].bytes.rstrip(b" ") == self.topics[0]:
            self._newest = message[1].bytes

    def flush(self) -> None:
        """Hand the newest one over."""
        newest, self._newest = self._newest, None
        if newest is not None:
            self._use(newest)

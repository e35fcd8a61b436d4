"""What the peers of a publishing socket have subscribed to."""

from collections.abc import Iterable

_SUBSCRIBE, _UNSUBSCRIBE = 1, 0


class Subscriptions:
    """The prefixes that somebody wants. One thread updates them, any thread may ask.

    An XPUB socket tells of a prefix when the first peer subscribes to it and when the last one no longer does, be it
    that it said so or that it is gone.
    """

    def __init__(self) -> None:
        self._prefixes: tuple[bytes, ...] = ()

    def __bool__(self) -> bool:
        return bool(self._prefixes)

    def wants(self, topic: bytes) -> bool:
        """Whether somebody subscribed to a beginning of that topic; the empty prefix begins every topic."""
        return topic.startswith(self._prefixes)

    def update(self, messages: Iterable[bytes]) -> bool:
        """Follow what an XPUB socket received; whether a new prefix is wanted. Other words of peers are ignored."""
        prefixes = dict.fromkeys(self._prefixes)
        for message in messages:
            if message[:1] == bytes((_SUBSCRIBE,)):
                prefixes[message[1:]] = None
            elif message[:1] == bytes((_UNSUBSCRIBE,)):
                prefixes.pop(message[1:], None)
        before, self._prefixes = self._prefixes, tuple(prefixes)
        return not prefixes.keys() <= set(before)

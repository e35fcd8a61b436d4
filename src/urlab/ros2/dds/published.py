"""A topic that we offer."""

from collections.abc import Callable

from urlab.ros2.dds.writer import Writer


class Published:
    """Sends on one topic until closed; see `urlab.ros2.backend.Publisher`."""

    def __init__(self, writer: Writer, withdrawn: Callable[[], None]) -> None:
        self._writer = writer
        self._withdrawn = withdrawn

    def publish(self, cdr: bytes | memoryview) -> None:
        """Send a message. A reliable reader that stalls loses the oldest ones; it never makes us wait."""
        self._writer.write(cdr)

    @property
    def subscribers(self) -> int:
        """How many readers are matched now."""
        return self._writer.readers

    def close(self) -> None:
        """Withdraw the topic, from the graph as well."""
        if self._writer.close():
            self._withdrawn()

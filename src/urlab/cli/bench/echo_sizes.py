"""What a bare echo's two ends agree on: the first four bytes of a request name the size of its reply."""

READY_FILE = "echo.json"
_SIZE_BYTES = 4


def echo_request(request_bytes: int, reply_bytes: int) -> bytes:
    """A frame of ``request_bytes`` that asks for one of ``reply_bytes``."""
    return reply_bytes.to_bytes(_SIZE_BYTES, "little").ljust(request_bytes, b"\0")


class EchoReplies:
    """The answers of the far end, each made once."""

    def __init__(self) -> None:
        self._made: dict[bytes, bytes] = {}

    def to(self, request: bytes) -> bytes:
        """The reply that a request asks for."""
        size = request[:_SIZE_BYTES]
        reply = self._made.get(size)
        if reply is None:
            reply = self._made[size] = bytes(int.from_bytes(size, "little"))
        return reply

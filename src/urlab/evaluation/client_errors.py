"""What a client of an evaluation server is told when it does not go well."""

import msgspec

from urlab.errors import UrlabError


class EvalClientError(UrlabError):
    """Base: no reply, or one that is not 200."""


class ServerUnreachable(EvalClientError):
    """There is no server, or the connection broke; whether the request was carried out is not known."""


class BadAddress(ServerUnreachable):
    """What was given is not the address of a server."""


class ForeignServer(EvalClientError):
    """Somebody answered, but it is no evaluation server."""


class NotSendable(EvalClientError):
    """A request holds something that has no place in one, such as a tensor; nothing was sent."""


class RequestRefused(EvalClientError):
    """The server answered with an error; the message is its own. ``status`` is HTTP's."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class BadRequest(RequestRefused):
    """400: a field is wrong, a worker unknown; nothing has moved."""


class TokenRefused(RequestRefused):
    """401: the token is missing or wrong."""


class TooLarge(RequestRefused):
    """413: the request is above the server's limit."""


class WorkerTimedOut(RequestRefused):
    """504: a worker did not answer in time; its episode begins again with the next request."""


_KINDS = {400: BadRequest, 401: TokenRefused, 413: TooLarge, 504: WorkerTimedOut}


def refusal(status: int, body: bytes) -> RequestRefused:
    """The error for a reply that is not 200."""
    try:
        detail = str(msgspec.json.decode(body)["detail"])
    except (msgspec.DecodeError, KeyError, TypeError):
        detail = body[:200].decode(errors="replace")
    return _KINDS.get(status, RequestRefused)(f"HTTP {status}: {detail}", status)

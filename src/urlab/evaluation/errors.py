"""What the evaluation server refuses or cannot do, each with the HTTP status that its client gets.

    UrlabError
      RefusedRequest          400
        BadBody  UnknownWorker  BadJob
        MissingToken          401
        RefusedPage           403
        BodyTooLarge          413
        TooManyGuesses        429
        TooManyBodies         503
        WorkerTimeLimit       504

The errors that our own client raises are in `runs.client`.
"""

from typing import ClassVar

from urlab.errors import UrlabError


class RefusedRequest(UrlabError):
    """Base: the client's mistake unless a subclass says otherwise. The message becomes the reply's ``detail``."""

    status: ClassVar[int] = 400
    closes: ClassVar[bool] = False
    """The rest of the request is not wanted: the connection ends with the answer."""


class BadBody(RefusedRequest):
    """The body cannot be read, or holds something else than was expected."""


class UnknownWorker(RefusedRequest):
    """A worker that was never reset, or was killed."""


class BadJob(RefusedRequest):
    """A job that cannot be started: unknown tasks, a bad run id."""


class MissingToken(RefusedRequest):
    """The bearer token is missing or wrong."""

    status = 401


class RefusedPage(RefusedRequest):
    """The request is of a web page of another origin, or asks for a host that this server is not."""

    status = 403


class BodyTooLarge(RefusedRequest):
    """The body is above the limit."""

    status = 413
    closes = True


class TooManyGuesses(RefusedRequest):
    """Too many wrong tokens came from one address."""

    status = 429
    closes = True


class TooManyBodies(RefusedRequest):
    """Bodies that are under way hold as much memory as they may."""

    status = 503
    closes = True


class WorkerTimeLimit(RefusedRequest):
    """A worker did not answer in time and was ended; its episode begins again with the next request."""

    status = 504

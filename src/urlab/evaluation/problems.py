"""What the evaluation server refuses or cannot do, each with the HTTP status that its sender sees."""

from typing import ClassVar

from urlab.errors import UrlabError


class Problem(UrlabError):
    """Base: the sender's mistake unless a subclass says otherwise. The message becomes the reply's ``detail``."""

    status: ClassVar[int] = 400


class BadBody(Problem):
    """The body cannot be read, or holds something else than was expected."""


class UnknownWorker(Problem):
    """A worker that was never reset, or was killed."""


class TooManyWorkers(Problem):
    """More workers than the server may start."""


class BadJob(Problem):
    """A job that cannot be started: unknown tasks, a bad run id."""


class TokenRefused(Problem):
    """The bearer token is missing or wrong."""

    status = 401


class BodyTooLarge(Problem):
    """The body is above the limit."""

    status = 413


class TimeLimit(Problem):
    """A worker did not answer in time and was ended; its episode begins again with the next request."""

    status = 504

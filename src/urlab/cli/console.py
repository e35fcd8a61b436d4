"""What a user sees of a command: data on stdout; the log, and errors as one line with advice, on stderr.

Both are plain unless they go to a terminal. The log is bounded, so that no client can fill a disk with it. A
traceback is shown only with ``--log-level debug``.
"""

import json
import logging
import sys
import time
import traceback
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from rich.console import Console
from rich.text import Text

from urlab.errors import UrlabError
from urlab.monitoring.log_buffer import BURST, WINDOW_S, KindLimit

FAILED, WRONG_USE = 1, 2
DOCTOR_HINT = "`urlab doctor` checks the installation; with --log-level debug you get the details"

_LINE = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"
_PLAIN_WIDTH = 200
"""Columns when the output is not a terminal: wide, so that lines stay whole for grep."""


class LogLevel(StrEnum):
    """How much is logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogFormat(StrEnum):
    """Lines for people, or one JSON object a line for programs."""

    TEXT = "text"
    JSON = "json"


def stdout() -> Console:
    """The console for results."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else _PLAIN_WIDTH)


def stderr() -> Console:
    """The console for everything else."""
    return Console(stderr=True, highlight=False, width=None if sys.stderr.isatty() else _PLAIN_WIDTH)


def print_json(data: Any) -> None:
    """One JSON document on stdout, and nothing else."""
    sys.stdout.write(json.dumps(data, indent=2, allow_nan=False) + "\n")


def in_words(counts: Mapping[str, int]) -> str:
    """``9 joints, 1 camera`` from counts keyed by plurals; what there is none of is left out."""
    return ", ".join(
        f"{count} {things if count != 1 else things.removesuffix('s')}" for things, count in counts.items() if count
    )


def robot_counts(robot: Any) -> dict[str, int]:
    """How many joints, actuators, sensors and cameras a robot has; for `in_words`, or as data."""
    return {things: len(getattr(robot, things)) for things in ("joints", "actuators", "sensors", "cameras")}


def set_up_logging(level: LogLevel, form: LogFormat = LogFormat.TEXT) -> None:
    """Send our log to stderr."""
    handler = _handler(form)
    handler.addFilter(RateLimit())
    logger = logging.getLogger("urlab")
    logger.setLevel(level.value.upper())
    logger.handlers[:] = [handler]
    logger.propagate = False
    logging.getLogger("urlab_client").parent = logger


def _handler(form: LogFormat) -> logging.Handler:
    if form is LogFormat.TEXT and sys.stderr.isatty():
        from rich.logging import RichHandler

        return RichHandler(console=stderr(), show_path=False, log_time_format="[%X]", omit_repeated_times=False)
    plain = logging.StreamHandler()
    plain.setFormatter(JsonLines() if form is LogFormat.JSON else logging.Formatter(_LINE))
    return plain


class JsonLines(logging.Formatter):
    """One JSON object a line: time (UTC, ISO 8601), level, logger, message, thread; data and exception if any."""

    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, Any] = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "thread": record.threadName,
        }
        line |= {"data": record.data} if hasattr(record, "data") else {}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


class RateLimit(logging.Filter):
    """Lets so many lines of one kind through per window, and tells with the next one how many it kept back.

    A kind is the logger and the text before its values are put in.
    """

    def __init__(self, burst: int = BURST, window_s: float = WINDOW_S) -> None:
        super().__init__()
        self._limit = KindLimit(burst, window_s)

    def filter(self, record: logging.LogRecord) -> bool:
        kept_back = self._limit.admit((record.name, str(record.msg)))
        if kept_back:
            record.msg, record.args = f"{record.getMessage()} ({kept_back} more such lines were kept back)", None
        return kept_back is not None


class CommandError(Exception):
    """A command cannot do what it was asked; the message says why and what to do, ``code`` is the exit code."""

    def __init__(self, message: str, code: int = FAILED) -> None:
        super().__init__(message)
        self.code = code


def report_error(failed: Exception) -> int:
    """Print the error; returns the exit code."""
    if logging.getLogger("urlab").isEnabledFor(logging.DEBUG):
        traceback.print_exception(failed, file=sys.stderr)
    code, message = _code_and_message(failed)
    stderr().print(Text.assemble(("error: ", "bold red"), message), soft_wrap=True)
    return code


def _code_and_message(failed: Exception) -> tuple[int, str]:
    if isinstance(failed, UrlabError):
        return WRONG_USE, failed.message
    if isinstance(failed, CommandError):
        return failed.code, str(failed)
    if _comes_from_a_server(failed):
        return FAILED, str(getattr(failed, "message", failed))
    return FAILED, f"{type(failed).__name__}: {failed}. {DOCTOR_HINT}."


def _comes_from_a_server(failed: Exception) -> bool:
    """Found out without importing the client: if it is not imported, the error is not the client's."""
    errors = sys.modules.get("urlab_client.errors")
    return errors is not None and isinstance(failed, errors.URLabRPCError)

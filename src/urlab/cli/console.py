"""Where output goes: data to stdout, everything for people beside it to stderr, both plain unless it is a terminal."""

import json
import logging
import sys
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from rich.console import Console

_PLAIN_WIDTH = 200
"""Columns when the output is not a terminal: wide, so that lines stay whole for grep."""


class LogLevel(StrEnum):
    """How much is told."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


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


def set_up_logging(level: LogLevel) -> None:
    """Send our log to stderr."""
    logger = logging.getLogger("urlab")
    logger.setLevel(level.value.upper())
    logger.handlers[:] = [_handler()]
    logger.propagate = False
    logging.getLogger("urlab_client").parent = logger


def _handler() -> logging.Handler:
    if not sys.stderr.isatty():
        plain = logging.StreamHandler()
        plain.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s"))
        return plain
    from rich.logging import RichHandler

    return RichHandler(console=stderr(), show_path=False, log_time_format="[%X]", omit_repeated_times=False)

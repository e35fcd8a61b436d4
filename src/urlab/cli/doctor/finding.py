"""One thing that the doctor looked at."""

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """``NOTE`` is worth knowing, ``WARNING`` costs something, with a ``PROBLEM`` the server cannot run."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at, what was found, and, unless all is well, one line of what to do."""

    name: str
    status: Status
    detail: str
    advice: str = ""

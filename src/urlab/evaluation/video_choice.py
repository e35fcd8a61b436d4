"""Which episodes are filmed."""

from enum import StrEnum


class Videos(StrEnum):
    """Which episodes are filmed, or rather: whose films are kept."""

    NONE = "none"
    FAILURES = "failures"
    ALL = "all"

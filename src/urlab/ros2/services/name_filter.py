"""Regular expressions of strangers, which search the names of entities.

Python's matcher goes back over what it has read, and lets no other thread run meanwhile: an expression of ten
characters can keep it, and with it the clock, busy for hours. So only those pass that cannot take long with names of
`LONGEST_NAME` characters.
"""

import re
from typing import Final

from urlab.ros2.services.results import Code, Refused

LONGEST_NAME: Final = 100
_LONGEST_PATTERN: Final = 500
_MOST_REPEATS: Final = 3
_PART: Final = re.compile(
    r"(?P<one>\\.|\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<special>\(\?)|(?P<group>\)[*+{])|(?P<repeat>[*+?{][?+]?)", re.DOTALL
)
"""What reads an expression: a single character, which is passed over; the rest is counted."""


def name_filter(text: str) -> re.Pattern[str]:
    """The expression, to search names with; `Refused` when it is none, or one that could take too long."""
    kinds = [part.lastgroup for part in _PART.finditer(text)]
    if len(text) > _LONGEST_PATTERN:
        raise Refused(Code.OPERATION_FAILED, f"the filter has {len(text)} characters; {_LONGEST_PATTERN} are enough")
    if "special" in kinds or "group" in kinds or kinds.count("repeat") > _MOST_REPEATS:
        raise Refused(
            Code.FEATURE_UNSUPPORTED,
            f"the filter {text!r} could take too long: it may have {_MOST_REPEATS} of * + ? {{}}, * + {{}} not behind a"
            " bracket, and no (?",
        )
    try:
        return re.compile(text)
    except re.error as broken:
        raise Refused(Code.OPERATION_FAILED, f"the filter {text!r} is not a regular expression: {broken}") from broken

"""``--policy-arg KEY=VALUE``: values as JSON where they are, as text where not."""

import json
from collections.abc import Sequence
from typing import Any

from urlab.cli.complaint import WRONG_USE, CommandError


def policy_arguments(words: Sequence[str]) -> dict[str, Any]:
    """``steps=8`` is a number, ``checkpoint=best.pt`` a text."""
    found: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key.isidentifier():
            raise CommandError(f"--policy-arg {word!r} is not KEY=VALUE", WRONG_USE)
        found[key] = _value(value)
    return found


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text

"""From the words that name a policy to one that runs."""

import difflib
import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from urlab.evaluation.policies.base import Policy, PolicyNotFound
from urlab.evaluation.policies.loading import load_class, make_policy

BUILT_IN = {
    "oracle": ("urlab.evaluation.policies.oracle", "OraclePolicy"),
    "random": ("urlab.evaluation.policies.random_policy", "RandomPolicy"),
}
"""Name -> module and class. The module is imported when the policy is asked for."""

WEBSOCKET = ("ws://", "wss://")
_WEB = ("http://", "https://")
_WAYS = "module:Class, file.py:Class, ws://host:port"


@dataclass(frozen=True)
class PolicySource:
    """A policy by name. ``make`` gives a fresh one, to be used by one worker; it may take long.

    ``shared_nothing`` is whether many of them are cheap, so that there may be as many workers as cores.
    """

    name: str
    make: Callable[[], Policy]
    needs_cameras: bool
    needs_privileged: bool
    shared_nothing: bool


def policy_names() -> list[str]:
    """The built-in policies that are there."""
    return [name for name, (module, _) in BUILT_IN.items() if importlib.util.find_spec(module) is not None]


def find_policy(word: str, options: Mapping[str, Any] | None = None) -> PolicySource:
    """The policy that ``word`` names; ``options`` are keyword arguments of its class. PolicyNotFound lists all."""
    given = dict(options or {})
    if word.startswith(WEBSOCKET):
        return _websocket(word, given)
    if word in BUILT_IN and word in policy_names():
        module, name = BUILT_IN[word]
        return _source(word, getattr(import_module(module), name), given, shared_nothing=True)
    if ":" in word and not word.startswith(_WEB):
        return _source(word, load_class(word), given, shared_nothing=False)
    there_are = f"there are: {', '.join(policy_names())}, or {_WAYS}{_hint(word)}"
    raise PolicyNotFound(f"there is no policy {word!r}; {there_are}")


def _hint(word: str) -> str:
    """What may have been meant."""
    if word.endswith(".py"):
        return f"; for this file: {word}:Class"
    if word.startswith(_WEB):
        return f"; a server of policies is asked over a websocket: ws://{word.partition('://')[2]}"
    close = difflib.get_close_matches(word.lower(), policy_names(), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _websocket(url: str, options: dict[str, Any]) -> PolicySource:
    try:
        from urlab.evaluation.policies.openpi import OpenPiPolicy
    except ImportError as missing:
        raise PolicyNotFound(
            f"--policy {url} needs a package that is missing ({missing}): pip install 'urlab-headless[eval]'"
        ) from missing
    return _source(url, OpenPiPolicy, {"url": url, **options}, shared_nothing=False)


def _source(name: str, kind: Callable[..., Any], options: dict[str, Any], *, shared_nothing: bool) -> PolicySource:
    return PolicySource(
        name=name,
        make=lambda: make_policy(name, kind, options),
        needs_cameras=bool(getattr(kind, "needs_cameras", True)),
        needs_privileged=bool(getattr(kind, "needs_privileged", False)),
        shared_nothing=shared_nothing,
    )

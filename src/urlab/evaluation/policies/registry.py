"""From the words that name a policy to one that runs: built-in ones, websocket servers, classes of the user's own."""

import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from urlab.errors import did_you_mean
from urlab.evaluation.policies.base import Policy, PolicyError, PolicyNotFound

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

    ``shared_nothing`` is whether many of them are cheap, so that there may be as many workers as cores. ``cameras`` are
    those that it looks through, with their sizes (width, height; None is the camera's own); None is all of them.
    """

    name: str
    make: Callable[[], Policy]
    needs_cameras: bool
    needs_privileged: bool
    shared_nothing: bool
    cameras: Mapping[str, tuple[int, int] | None] | None = None
    depth: bool = True


def find_policy(word: str, options: Mapping[str, Any] | None = None) -> PolicySource:
    """The policy that ``word`` names; ``options`` are keyword arguments of its class. PolicyNotFound lists all."""
    given = dict(options or {})
    if word.startswith(WEBSOCKET):
        return _websocket(word, given)
    if word in BUILT_IN:
        module, name = BUILT_IN[word]
        return _source(word, getattr(importlib.import_module(module), name), given, shared_nothing=True)
    if ":" in word and not word.startswith(_WEB):
        return _source(word, load_class(word), given, shared_nothing=False)
    there_are = f"there are: {', '.join(BUILT_IN)}, or {_WAYS}{_hint(word)}"
    raise PolicyNotFound(f"there is no policy {word!r}; {there_are}")


def load_class(word: str) -> Callable[..., Any]:
    """The class, or the function that makes a policy. Modules are looked for in the current folder first."""
    place, _, name = word.rpartition(":")
    if not place or not name.isidentifier():
        raise PolicyNotFound(f"{word!r} does not name a policy: write module:Class or file.py:Class")
    module = _from_file(Path(place)) if place.endswith(".py") else _from_module(place)
    kind: Any = getattr(module, name, None)
    if callable(kind):
        return kind  # type: ignore[no-any-return]
    found = {key: value for key, value in vars(module).items() if inspect.isclass(value)}
    classes = [key for key, value in found.items() if value.__module__ == module.__name__]
    raise PolicyNotFound(f"{place} has no class {name!r}; it has: {', '.join(sorted(classes)) or 'none'}")


def make_policy(word: str, kind: Callable[..., Any], options: dict[str, Any]) -> Policy:
    """Call ``kind`` with ``options``, and see that what comes can act."""
    try:
        inspect.signature(kind).bind(**options)
    except TypeError as unfit:
        given = ", ".join(f"{key}={value!r}" for key, value in options.items()) or "none"
        raise PolicyNotFound(f"policy {word} cannot be made with these arguments ({given}): {unfit}") from unfit
    except ValueError:
        pass  # some classes written in C have no signature
    try:
        policy = kind(**options)
    except PolicyError:
        raise
    except (Exception, SystemExit) as failed:
        raise PolicyNotFound(f"policy {word} cannot be made: {in_a_line(failed)}") from failed
    if not callable(getattr(policy, "act", None)):
        raise PolicyNotFound(
            f"policy {word} lacks act(): a policy has act(observation) and, if it likes, reset(observation) and close()"
        )
    return policy  # type: ignore[no-any-return]


def in_a_line(failed: BaseException) -> str:
    """An error of foreign code: what it is, and the innermost place where it happened."""
    frames = [] if isinstance(failed, SyntaxError) else traceback.extract_tb(failed.__traceback__)
    where = f" ({frames[-1].filename}, line {frames[-1].lineno}, in {frames[-1].name})" if frames else ""
    return f"{type(failed).__name__}: {failed}{where}"


def _hint(word: str) -> str:
    """What may have been meant."""
    if word.endswith(".py"):
        return f"; for this file: {word}:Class"
    if word.startswith(_WEB):
        return f"; a server of policies is asked over a websocket: ws://{word.partition('://')[2]}"
    return did_you_mean(word.lower(), BUILT_IN)


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
        cameras=_cameras(name, getattr(kind, "cameras", None)),
        depth=bool(getattr(kind, "depth", True)),
    )


def _cameras(policy: str, stated: object) -> dict[str, tuple[int, int] | None] | None:
    """What a class says of the cameras it looks through: names, or names with sizes; a property says nothing."""
    if stated is None or callable(stated) or isinstance(stated, property):
        return None
    sizes = stated if isinstance(stated, Mapping) else dict.fromkeys(stated) if isinstance(stated, list | tuple) else {}
    good = all(isinstance(name, str) and (size is None or _is_size(size)) for name, size in sizes.items())
    if not sizes or not good:
        raise PolicyNotFound(
            f"policy {policy} states cameras = {stated!r}; write a list of names, or names with their sizes: "
            'cameras = {"obs_camera": (224, 224), "realsense": None}'
        )
    return {str(name): None if size is None else (int(size[0]), int(size[1])) for name, size in sizes.items()}


def _is_size(size: Any) -> bool:
    return isinstance(size, list | tuple) and len(size) == 2 and all(isinstance(one, int) for one in size)


def _from_module(name: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name is not None and f"{name}.".startswith(f"{missing.name}."):
            raise PolicyNotFound(
                f"there is no module {name!r} in {here} or among the installed packages; "
                "a file can be named as well: path/to/file.py:Class"
            ) from missing
        raise PolicyNotFound(f"module {name!r} cannot be imported: {in_a_line(missing)}") from missing
    except (Exception, SystemExit) as failed:
        raise PolicyNotFound(f"module {name!r} cannot be imported: {in_a_line(failed)}") from failed


def _from_file(path: Path) -> ModuleType:
    """Its folder is on the path while it is imported and after, as for a script."""
    if not path.is_file():
        raise PolicyNotFound(f"there is no file {path}")
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    name = path.stem if path.stem not in sys.modules else f"urlab_policy_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise PolicyNotFound(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as failed:
        del sys.modules[name]
        raise PolicyNotFound(f"{path} cannot be imported: {in_a_line(failed)}") from failed
    return module

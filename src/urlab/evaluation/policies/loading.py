"""A policy of the user's own: ``module:Class`` or ``path/to/file.py:Class``."""

import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from urlab.evaluation.policies.base import METHODS, Policy, PolicyError, PolicyNotFound


def load_class(word: str) -> Callable[..., Any]:
    """The class, or the function that makes a policy. Modules are looked for in the current folder first."""
    place, _, name = word.rpartition(":")
    if not place or not name.isidentifier():
        raise PolicyNotFound(f"{word!r} does not name a policy: write module:Class or file.py:Class")
    module = _from_file(Path(place)) if place.endswith(".py") else _from_module(place)
    kind: Any = getattr(module, name, None)
    if callable(kind):
        return kind  # type: ignore[no-any-return]
    classes = [key for key, value in vars(module).items() if _is_own_class(value, module)]
    raise PolicyNotFound(f"{place} has no class {name!r}; it has: {', '.join(sorted(classes)) or 'none'}")


def make_policy(word: str, kind: Callable[..., Any], options: dict[str, Any]) -> Policy:
    """Call ``kind`` with ``options``, and see that what comes has the methods of a policy."""
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
    missing = [method for method in METHODS if not callable(getattr(policy, method, None))]
    if missing:
        wanted = ", ".join(f"{method}()" for method in missing)
        raise PolicyNotFound(
            f"policy {word} lacks {wanted}: a policy has reset(observation), act(observation), close()"
        )
    return policy  # type: ignore[no-any-return]


def in_a_line(failed: BaseException) -> str:
    """An error of foreign code: what it is, and the innermost place where it happened."""
    frames = [] if isinstance(failed, SyntaxError) else traceback.extract_tb(failed.__traceback__)
    where = f" ({frames[-1].filename}, line {frames[-1].lineno}, in {frames[-1].name})" if frames else ""
    return f"{type(failed).__name__}: {failed}{where}"


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


def _is_own_class(value: object, module: ModuleType) -> bool:
    return inspect.isclass(value) and value.__module__ == module.__name__

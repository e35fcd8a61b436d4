"""What a plugin imports: decorators for step callbacks and ops, and the classes that register by being declared.

A plugin is a module that ``urlab serve --plugin MODULE`` or ``urlab.launch(..., plugins=["MODULE"])`` imports before
anything else. Controllers (`Controller`), camera modes (`RenderMode` of a word that `camera_mode` declares) and ops are
there for the whole process; step callbacks run in the simulations of the server that names the plugin.

Callbacks get the MjModel and the MjData. They run on the stepping thread under the physics lock, so they may read and
write the data, and should be quick: every sub-step waits for them. They must not send requests to their own server.
"""

import importlib
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from urlab.cameras.modes import DepthMode, RealMode, RenderMode
from urlab.control import Controller
from urlab.errors import ConfigError, UrlabError
from urlab.ops import Context, handler, read_catalogue
from urlab.physics import StepCallback, StepCallbacks
from urlab_wire import CATALOGUE, Reply, Request
from urlab_wire.catalogue import DEFAULT_LIMIT_S, describe_op
from urlab_wire.enums import CameraMode, OpCategory, declare_camera_mode
from urlab_wire.pixels import PixelFormat

NAMESPACE = "plugin"
"""Of every op of a plugin."""

AnyCallback = TypeVar("AnyCallback", bound=StepCallback)
AnyHandler = TypeVar("AnyHandler", bound=Callable[[Context, Any], Reply])

_before: list[tuple[str, StepCallback]] = []
_after: list[tuple[str, StepCallback]] = []
_loading: list[str] = []


def before_step(function: AnyCallback) -> AnyCallback:
    """Call ``function(model, data)`` before each sub-step, when the controllers have written ``data.ctrl``."""
    _before.append((_owner(function), function))
    return function


def after_step(function: AnyCallback) -> AnyCallback:
    """Call ``function(model, data)`` after each sub-step, before a recording takes its frame."""
    _after.append((_owner(function), function))
    return function


def op(
    request: type[Request[Any]],
    *,
    needs_simulation: bool = True,
    reads: bool = False,
    limit_s: float = DEFAULT_LIMIT_S,
) -> Callable[[AnyHandler], AnyHandler]:
    """Declare the handler of an op: ``function(context, request) -> reply``.

    The request type has the op's name for a tag and names its reply: ``class XRequest(Request["XReply"], tag="x")``,
    ``class XReply(Reply, tag="x_ok")``. ``reads`` lets observers call it. Handlers run on a thread of the server:
    they take ``context.manager.engine.locked()`` before they touch the data.
    """
    category = OpCategory.MANAGER_REQUIRED if needs_simulation else OpCategory.NO_MANAGER
    spec = describe_op(request, NAMESPACE, category, reads=reads, limit_s=limit_s)
    if spec.name in CATALOGUE:
        raise ValueError(f"there is an op {spec.name!r} already")

    def register(function: AnyHandler) -> AnyHandler:
        CATALOGUE[spec.name] = spec
        try:
            read_catalogue()
        except TypeError:
            del CATALOGUE[spec.name]
            raise
        handler(spec.name)(function)
        return function

    return register


def camera_mode(word: str, pixel_format: PixelFormat) -> CameraMode:
    """A new word for what a camera sees, and what its pixels are.

    ``class Mine(RenderMode, kind=camera_mode("mine", PixelFormat.DEPTH_F32))`` says how it is drawn.
    """
    return declare_camera_mode(word, pixel_format)


def load(names: Sequence[str]) -> StepCallbacks:
    """Import the plugins of these names; returns their step callbacks. ConfigError says in a line what is wrong."""
    for name in dict.fromkeys(names):
        _import(name)
    return StepCallbacks(
        before=tuple(function for owner, function in _before if owner in names),
        after=tuple(function for owner, function in _after if owner in names),
    )


def _import(name: str) -> None:
    """Import a module, looking in the current folder first."""
    if name.endswith(".py") or "/" in name:
        raise ConfigError(f"--plugin {name}: name a module, not a file: {Path(name).stem}, from the folder that has it")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    _loading.append(name)
    try:
        importlib.import_module(name)
    except UrlabError as refused:
        raise ConfigError(f"--plugin {name}: {refused.message}") from refused
    except ModuleNotFoundError as missing:
        if missing.name is not None and f"{name}.".startswith(f"{missing.name}."):
            raise ConfigError(f"--plugin {name}: there is no module {name!r} in {here} or where Python looks") from None
        raise ConfigError(f"--plugin {name}: {_in_a_line(missing)}") from missing
    except Exception as failed:
        raise ConfigError(f"--plugin {name}: {_in_a_line(failed)}") from failed
    finally:
        _loading.pop()


def _owner(function: StepCallback) -> str:
    """The plugin that is being imported, or the module of a function that registers later."""
    return _loading[-1] if _loading else function.__module__


def _in_a_line(failed: Exception) -> str:
    """What it is, and the innermost place where it happened."""
    frames = [] if isinstance(failed, SyntaxError) else traceback.extract_tb(failed.__traceback__)
    where = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    return f"{type(failed).__name__}: {failed}{where}"


__all__ = [
    "CameraMode",
    "Context",
    "Controller",
    "DepthMode",
    "PixelFormat",
    "RealMode",
    "RenderMode",
    "Reply",
    "Request",
    "StepCallback",
    "after_step",
    "before_step",
    "camera_mode",
    "load",
    "op",
]

"""Functions of plugins that run before and after each sub-step, on the stepping thread, under the physics lock."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from urlab.errors import PluginError
from urlab.physics.engine import Engine, Hook

StepCallback = Callable[[Any, Any], object]
"""Gets the MjModel and the MjData of the running scene; what it returns is not looked at."""


@dataclass(frozen=True, slots=True)
class StepCallbacks:
    """What is to be called before and after each sub-step, in this order. Empty ones cost nothing."""

    before: tuple[StepCallback, ...] = ()
    after: tuple[StepCallback, ...] = ()

    def hooks_before(self, engine: Engine) -> list[Hook]:
        """The first ones as hooks of an engine: after the controllers have written ``data.ctrl``."""
        return [_hook(engine, one, "before") for one in self.before]

    def hooks_after(self, engine: Engine) -> list[Hook]:
        """The second ones as hooks of an engine: after ``mj_step``, before a recording takes its frame."""
        return [_hook(engine, one, "after") for one in self.after]


NO_CALLBACKS = StepCallbacks()


def _hook(engine: Engine, callback: StepCallback, when: str) -> Hook:
    model, data = engine.model, engine.data

    def call() -> None:
        try:
            callback(model, data)
        except Exception as failed:
            name = f"{callback.__module__}.{getattr(callback, '__qualname__', callback)}"
            problem = f"{type(failed).__name__}: {failed}"
            raise PluginError(
                f"plugin function {name} failed {when} the step at time {data.time:g}: {problem}"
            ) from failed

    return call

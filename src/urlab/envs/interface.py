"""What both environments have in common: their spaces, and how actions become setpoints and states observations."""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium import spaces

from urlab.app import launch
from urlab.envs.scene_states import Array, SceneLayout, States, joined
from urlab.envs.task import BOUND, EnvTask, PlainTask, find_task, widths
from urlab_client import StepMode, URLabClient

SpaceMode = Literal["flat", "dict"]
Scene = URLabClient | str | Path | list[str | Path] | tuple[str | Path, ...]
Info = dict[str, Any]
RewardFn = Callable[[Any, Any, Info], Any]
"""``reward_fn(observation, action, info)``; in a vector environment all three have a row per environment."""


class EnvInterface:
    """Spaces of one scene under one task.

    ``space_mode`` "flat": one Box each for observations and actions. "dict": observations by part (without a task, by
    robot), actions by robot. With ``normalised`` actions are from -1 to 1 and span the range of each setpoint; without,
    they are setpoints.
    """

    def __init__(self, layout: SceneLayout, task: EnvTask, *, space_mode: str, normalised: bool) -> None:
        if space_mode not in ("flat", "dict"):
            raise ValueError(f"space_mode is 'flat' or 'dict', not {space_mode!r}")
        self.layout, self.task = layout, task
        self._flat = space_mode == "flat"
        self._width = len(layout.low)
        self._normalised = normalised
        if normalised and not np.isfinite([layout.low, layout.high]).all():
            raise ValueError("actions cannot be normalised: an actuator of this scene has no range (ctrlrange)")
        self._middle, self._half = (layout.high + layout.low) / 2, (layout.high - layout.low) / 2
        self.parts = widths(task, layout)
        boxes: dict[str, spaces.Space[Any]] = {name: _box(width) for name, width in self.parts.items()}
        self.observation_space: spaces.Space[Any] = _box(sum(self.parts.values())) if self._flat else spaces.Dict(boxes)
        self.action_space: spaces.Space[Any] = self._action_space()

    def _action_space(self) -> spaces.Space[Any]:
        low, high = self.layout.low, self.layout.high
        if self._normalised:
            low, high = np.full_like(low, -1.0), np.ones_like(high)
        if self._flat:
            return spaces.Box(low, high, dtype=np.float64)
        boxes: dict[str, spaces.Space[Any]] = {}
        start = 0
        for robot in self.layout.robots:
            end = start + robot.n_ctrl
            boxes[robot.prefix] = spaces.Box(low[start:end], high[start:end], dtype=np.float64)
            start = end
        return spaces.Dict(boxes)

    def setpoints(self, action: Any, count: int) -> Array:
        """The setpoints of all robots side by side, (count, n), of an action; ValueError unless it fits and is finite.

        ``action`` has a leading axis of ``count``, which may be left out where that is 1.
        """
        if not self._flat:
            action = np.concatenate(
                [np.reshape(action[one.prefix], (count, one.n_ctrl)) for one in self.layout.robots], axis=1
            )
        given = np.asarray(action, dtype=np.float64)
        if given.shape != (count, self._width):
            if given.size != count * self._width:
                raise ValueError(f"an action has {self._width} numbers, and this one has the shape {given.shape}")
            given = given.reshape(count, self._width)
        if not math.isfinite(np.vdot(given, given)) and not np.isfinite(given).all():
            raise ValueError("an action holds numbers that are not finite")
        return self._middle + self._half * given if self._normalised else given

    def action_of(self, setpoints: Array) -> Array:
        """The flat action that leads to these setpoints, (..., n)."""
        return (setpoints - self._middle) / self._half if self._normalised else setpoints

    def observation(self, states: States) -> Any:
        """What is observed of n states: (n, width), or by part."""
        parts = self.task.observe(states)
        if not self._flat:
            return parts
        return next(iter(parts.values())) if len(parts) == 1 else joined(list(parts.values()))


def open_scene(scene: Scene | None, task: type[EnvTask], project: str | Path | None) -> tuple[URLabClient, bool]:
    """A client of the scene, and whether it was launched here: a level's name, a model file, several, or a client."""
    if isinstance(scene, URLabClient):
        if scene.step_mode is not StepMode.DIRECT:
            raise RuntimeError(
                f"an environment steps in direct mode, and this client is in {scene.step_mode.value}: "
                "URLabClient(..., step_mode='direct')"
            )
        return scene, False
    target = getattr(task, "scene", None) if scene is None else scene
    if target is None:
        raise ValueError("name a scene: a level, a model file, or a client")
    return launch(target, project=project), True


def task_class(task: str | type[EnvTask] | None) -> type[EnvTask]:
    """A task by its name or class; without one, `PlainTask`."""
    if task is None:
        return PlainTask
    return find_task(task) if isinstance(task, str) else task


def single(observation: Any) -> Any:
    """The first row of an observation, for an environment of one."""
    if isinstance(observation, Mapping):
        return {name: part[0] for name, part in observation.items()}
    return observation[0]


def rate_hz(layout: SceneLayout, n_steps: int) -> int:
    """Steps of an environment per simulated second, for videos."""
    return max(1, round(1.0 / (float(layout.model.opt.timestep) * n_steps)))


def checked_render_mode(render_mode: str | None, metadata: Mapping[str, Any]) -> str | None:
    """The mode, if there is such a one."""
    if render_mode is not None and render_mode not in metadata["render_modes"]:
        raise gymnasium.error.UnsupportedMode(f"render_mode is 'rgb_array' or None, not {render_mode!r}")
    return render_mode


def _box(width: int) -> spaces.Box:
    return spaces.Box(-BOUND, BOUND, (width,), np.float64)

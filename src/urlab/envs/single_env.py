"""`URLabEnv`: one simulation behind a client as a Gymnasium environment."""

import math
from pathlib import Path
from typing import Any

import gymnasium

from urlab.envs.interface import (
    EnvInterface,
    Info,
    RewardFn,
    Scene,
    SpaceMode,
    checked_render_mode,
    open_scene,
    rate_hz,
    single,
    task_class,
)
from urlab.envs.pictures import RENDER_SIZE, STATE, CameraObserver, Cameras, rendered, with_pictures
from urlab.envs.scene_states import ClientStates, SceneLayout
from urlab.envs.start import RESET_OPTIONS, EpisodeStart, Randomize, check_options
from urlab.envs.task import EnvTask, PlainTask
from urlab_wire.codec import Tree


class URLabEnv(gymnasium.Env[Any, Any]):
    """A scene, or a client of one, as a `gymnasium.Env`.

    ``scene`` is a level's name, a model file or several, launched in this process, or a client in direct mode. With a
    ``task`` (its name, as ``"PandaReach-v0"``) it may be left out.

    - ``space_mode``: "flat" (arrays) or "dict" (by robot; the observation of a task by part).
    - ``n_steps``: mj_steps per step; the task's, or 1.
    - ``observations``: the level that the server is asked for. "minimal" has no sensors, so they are not observed.
    - ``reward_fn(observation, action, info)``, ``termination_fn(observation, action, info)``: instead of the task's.
    - ``max_episode_steps``: an episode is truncated after so many steps; the task's, or never.
    - ``include_cameras``: True, names, or ``{name: EnvCamera(width, height, depth)}``. Then the observation is a dict,
      a flat one under "state".
    - ``randomize``: entries to draw at the begin of every episode, as `URLabClient.reset` takes them, or True for the
      level's own; what was drawn is in the info of ``reset`` as ``randomized``.
    - ``normalise_actions``: actions from -1 to 1 span the range of each setpoint; by default only with a task.
    - ``render_mode``: "rgb_array"; ``render_camera`` is a camera's name, or the viewport (of ``render_size``).

    The info has ``step_count`` (steps of this episode), ``sim_time``, ``is_success`` in a task, and ``client`` if one
    was given; ``reward_fn`` and ``termination_fn`` always find ``client`` there. ``reset`` takes the options
    ``keyframe_name`` and ``per_articulation_qpos``, as `URLabClient.reset` does.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 50}

    def __init__(
        self,
        scene: Scene | None = None,
        *,
        space_mode: SpaceMode = "flat",
        n_steps: int | None = None,
        observations: str = "standard",
        reward_fn: RewardFn | None = None,
        termination_fn: RewardFn | None = None,
        max_episode_steps: float | None = None,
        include_cameras: Cameras = False,
        task: str | type[EnvTask] | None = None,
        randomize: Randomize = None,
        normalise_actions: bool | None = None,
        render_mode: str | None = None,
        render_camera: str | None = None,
        render_size: tuple[int, int] = RENDER_SIZE,
        project: str | Path | None = None,
    ) -> None:
        kind = task_class(task)
        self.render_mode = checked_render_mode(render_mode, self.metadata)
        self.n_steps = kind.n_steps if n_steps is None else n_steps
        if self.n_steps < 1:
            raise ValueError(f"n_steps is at least 1, not {n_steps}")
        self.client, self._is_own = open_scene(scene, kind, project)
        try:
            self._level = observations
            self._layout = SceneLayout(self.client, has_sensors=observations != "minimal")
            normalised = kind is not PlainTask if normalise_actions is None else normalise_actions
            self.task = kind(self._layout)
            self.interface = EnvInterface(self._layout, self.task, space_mode=space_mode, normalised=normalised)
            self._cameras = CameraObserver(self.client, include_cameras)
        except BaseException:
            self.close()
            raise
        self.action_space = self.interface.action_space
        self.observation_space = with_pictures(self.interface.observation_space, self._cameras)
        self.metadata = {**self.metadata, "render_fps": rate_hz(self._layout, self.n_steps)}
        self._reward_fn, self._termination_fn, self._randomize = reward_fn, termination_fn, randomize
        limit = kind.max_episode_steps if max_episode_steps is None else max_episode_steps
        self._limit = math.inf if limit is None else limit
        self._states = ClientStates(self.client, self._layout)
        self._is_plain = kind is PlainTask and space_mode == "flat" and not self._cameras.names
        self._start = EpisodeStart(self.client, self._layout)
        self._setpoint_buffers = self._buffers()
        self._episode_steps = 0
        self._render = (render_camera, render_size)
        self._callback_info: Info = {"client": self.client}
        self._given_info: Info = {} if self._is_own else {"client": self.client}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Info]:
        """Begin an episode: the scene's start or a keyframe, joint overrides, and what the task draws."""
        super().reset(seed=seed)
        check_options(options, RESET_OPTIONS)
        rng, chosen = self.np_random, options or {}
        reply, drawn = self._start.begin(self._states, self.task, rng, self._randomize, chosen)
        if self._cameras.names:
            reply = self.client.step(0, include_cameras=self._cameras.names)
        self._episode_steps = 0
        self._states.absorb(reply)
        info = self._info(reply["time"], None)
        return self._observation(), {**info, "randomized": drawn} if self._randomize else info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, Info]:
        """``n_steps`` mj_steps with the action's setpoints."""
        setpoints = self.interface.setpoints(action, 1)
        start = 0
        for buffer in self._setpoint_buffers:
            end = start + len(buffer)
            buffer[:] = setpoints[0, start:end]
            start = end
        names = self._cameras.names
        reply: Tree = self.client.step(self.n_steps, observations=self._level, include_cameras=names or False)
        self._episode_steps += 1
        if self._is_plain:
            observation, reward, terminated = self._states.plain(reply), 0.0, False
            info = self._info(reply["time"], None)
        else:
            self._states.absorb(reply)
            observation = self._observation()
            outcome = self.task.judge(self._states.states, setpoints)
            info = self._info(reply["time"], None if outcome.success is None else bool(outcome.success[0]))
            reward, terminated = float(outcome.reward[0]), bool(outcome.terminated[0])
        if self._reward_fn is not None:
            reward = float(self._reward_fn(observation, action, {**info, **self._callback_info}))
        if self._termination_fn is not None:
            terminated = bool(self._termination_fn(observation, action, {**info, **self._callback_info}))
        return observation, reward, terminated, self._episode_steps >= self._limit, info

    def render(self) -> Any:
        """A picture of the state as it is, (height, width, 3) RGB; no physics."""
        return rendered(self.client, *self._render) if self.render_mode else None

    def close(self) -> None:
        """End the server that was launched here; a client that was given stays open."""
        if self._is_own:
            self.client.close()

    def _observation(self) -> Any:
        observation = single(self.interface.observation(self._states.states))
        if not self._cameras.names:
            return observation
        state = observation if isinstance(observation, dict) else {STATE: observation}
        return {**state, **self._cameras.pictures()}

    def _info(self, time_s: float, success: bool | None) -> Info:
        info: Info = {"step_count": self._episode_steps, "sim_time": time_s}
        if success is not None:
            info["is_success"] = success
        return info | self._given_info if self._given_info else info

    def _buffers(self) -> list[Any]:
        return [self.client.articulations[one.prefix].ctrl_array for one in self._layout.robots]

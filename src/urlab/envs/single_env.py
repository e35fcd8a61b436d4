"""`URLabEnv`: one simulation as a Gymnasium environment, behind a client or in a scene of its own."""

import math
from pathlib import Path
from typing import Any

import gymnasium

from urlab.envs.batch_control import BatchControl
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
from urlab.envs.own_simulation import OwnSimulation
from urlab.envs.pictures import RENDER_SIZE, STATE, CameraObserver, Cameras, rendered, with_pictures
from urlab.envs.scene_states import Array, ClientStates, SceneLayout, States, write_setpoints
from urlab.envs.start import RESET_OPTIONS, EpisodeStart, Randomize, check_options
from urlab.envs.task import EnvTask, PlainTask
from urlab.physics.batch import can_be_batched
from urlab_client import URLabClient


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

    A scene that was launched here is stepped without requests and replies, which takes half the time, until something
    asks for more: cameras, ``randomize``, a function of the caller's, or `client`. The numbers are the same.

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
        self._client, self._is_own = open_scene(scene, kind, project)
        try:
            self._level = observations
            self._layout = SceneLayout(self._client, has_sensors=observations != "minimal")
            normalised = kind is not PlainTask if normalise_actions is None else normalise_actions
            self.task = kind(self._layout)
            self.interface = EnvInterface(self._layout, self.task, space_mode=space_mode, normalised=normalised)
            self._cameras = CameraObserver(self._client, include_cameras)
            asks_more = self._cameras.names or randomize or reward_fn is not None or termination_fn is not None
            can_be_own = self._is_own and not asks_more and can_be_batched(self._layout.model)
            can_be_own = can_be_own and BatchControl.knows(self._client)
            self._own = OwnSimulation(self._client, self._layout) if can_be_own else None
        except BaseException:
            self.close()
            raise
        self.action_space = self.interface.action_space
        self.observation_space = with_pictures(self.interface.observation_space, self._cameras)
        self.metadata = {**self.metadata, "render_fps": rate_hz(self._layout, self.n_steps)}
        self._reward_fn, self._termination_fn, self._randomize = reward_fn, termination_fn, randomize
        limit = kind.max_episode_steps if max_episode_steps is None else max_episode_steps
        self._limit = math.inf if limit is None else limit
        self._states = ClientStates(self._client, self._layout)
        self._start = EpisodeStart(self._client, self._layout)
        self._setpoint_buffers = self._buffers()
        self._episode_steps = 0
        self._render = (render_camera, render_size)
        self._callback_info: Info = {"client": self._client}
        self._given_info: Info = {} if self._is_own else {"client": self._client}

    @property
    def client(self) -> URLabClient:
        """The client of the scene, in the environment's state; from here on the environment steps through it."""
        if self._own is not None:
            self._own.show()
            self._states.keep_mocap(self._own.states)
            self._own = None
        return self._client

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Info]:
        """Begin an episode: the scene's start or a keyframe, joint overrides, and what the task draws."""
        super().reset(seed=seed)
        check_options(options, RESET_OPTIONS)
        rng, chosen = self.np_random, options or {}
        self._episode_steps = 0
        if self._own is not None:
            self._own.begin(self.task, rng, chosen)
            return self._observation(self._own.states), self._info(self._own.states, None)
        reply, drawn = self._start.begin(self._states, self.task, rng, self._randomize, chosen)
        if self._cameras.names:
            reply = self._client.step(0, include_cameras=self._cameras.names)
        self._states.absorb(reply)
        info = self._info(self._states.states, None)
        return self._observation(self._states.states), {**info, "randomized": drawn} if self._randomize else info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, Info]:
        """``n_steps`` mj_steps with the action's setpoints."""
        setpoints = self.interface.setpoints(action, 1)
        states = self._stepped(setpoints)
        self._episode_steps += 1
        observation = self._observation(states)
        outcome = self.task.judge(states, setpoints)
        info = self._info(states, None if outcome.success is None else bool(outcome.success[0]))
        reward, terminated = float(outcome.reward[0]), bool(outcome.terminated[0])
        if self._reward_fn is not None:
            reward = float(self._reward_fn(observation, action, {**info, **self._callback_info}))
        if self._termination_fn is not None:
            terminated = bool(self._termination_fn(observation, action, {**info, **self._callback_info}))
        return observation, reward, terminated, self._episode_steps >= self._limit, info

    def render(self) -> Any:
        """A picture of the state as it is, (height, width, 3) RGB; no physics."""
        if self.render_mode and self._own is not None:
            self._own.show()
        return rendered(self._client, *self._render) if self.render_mode else None

    def close(self) -> None:
        """End the server that was launched here; a client that was given stays open."""
        if self._is_own:
            self._client.close()

    def _stepped(self, setpoints: Array) -> States:
        if self._own is not None:
            self._own.step(setpoints, self.n_steps)
            return self._own.states
        write_setpoints(self._setpoint_buffers, setpoints[0])
        names = self._cameras.names
        self._states.absorb(self._client.step(self.n_steps, observations=self._level, include_cameras=names or False))
        return self._states.states

    def _observation(self, states: States) -> Any:
        observation = single(self.interface.observation(states))
        if not self._cameras.names:
            return observation
        state = observation if isinstance(observation, dict) else {STATE: observation}
        return {**state, **self._cameras.pictures()}

    def _info(self, states: States, success: bool | None) -> Info:
        info: Info = {"step_count": self._episode_steps, "sim_time": float(states.time[0])}
        if success is not None:
            info["is_success"] = success
        return info | self._given_info if self._given_info else info

    def _buffers(self) -> list[Any]:
        return [self._client.articulations[one.prefix].ctrl_array for one in self._layout.robots]

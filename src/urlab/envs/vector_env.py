"""`URLabVectorEnv`: many copies of one scene in one process, as a Gymnasium vector environment."""

import copy
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from msgspec import to_builtins
from numpy.typing import NDArray

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
    task_class,
)
from urlab.envs.pictures import RENDER_SIZE, STATE, CameraObserver, Cameras, rendered, with_pictures
from urlab.envs.scene_states import SceneLayout, States
from urlab.envs.start import RESET_OPTIONS, EpisodeStart, check_options, world_seed
from urlab.envs.task import EnvTask, PlainTask
from urlab.manager.batches import BatchRandomisation, DrawnWorld
from urlab.manager.states import state_row, with_row
from urlab.physics.batch import SimulationBatch

_MASK = "reset_mask"


class URLabVectorEnv(VectorEnv[Any, Any, Any]):
    """``num_envs`` environments of one scene, stepped together on all cores.

    ``scene``, ``task`` and the other options are those of `URLabEnv`; ``threads`` is 0 for as many as cores. Each
    environment goes exactly, to the last bit, as a `URLabEnv` with its seed and actions would. An environment whose
    episode ends begins the next one in the same step (`AutoresetMode.SAME_STEP`): the observation is that of the new
    episode, the last one of the old is in ``info["final_obs"]``, its info in ``info["final_info"]``.

    ``reset(seed=n)`` seeds environment i with n + i; a list gives each its own. Options are those of `URLabEnv`, and
    ``reset_mask``, (num_envs,) of bool: which to reset. ``reward_fn`` and ``termination_fn`` get and return arrays with
    a row per environment. Cameras are drawn one environment after the other. ``render`` draws every environment: a
    tuple of pictures. ``randomize`` takes all entries but those about noise of cameras.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 50, "autoreset_mode": AutoresetMode.SAME_STEP}

    def __init__(
        self,
        scene: Scene | None = None,
        num_envs: int = 1,
        *,
        space_mode: SpaceMode = "flat",
        n_steps: int | None = None,
        reward_fn: RewardFn | None = None,
        termination_fn: RewardFn | None = None,
        max_episode_steps: float | None = None,
        include_cameras: Cameras = False,
        task: str | type[EnvTask] | None = None,
        randomize: Mapping[str, Mapping[str, Any]] | None = None,
        normalise_actions: bool | None = None,
        render_mode: str | None = None,
        render_camera: str | None = None,
        render_size: tuple[int, int] = RENDER_SIZE,
        project: str | Path | None = None,
        threads: int = 0,
    ) -> None:
        kind = task_class(task)
        self.num_envs = num_envs
        self.render_mode = checked_render_mode(render_mode, self.metadata)
        self.n_steps = kind.n_steps if n_steps is None else n_steps
        if self.n_steps < 1:
            raise ValueError(f"n_steps is at least 1, not {n_steps}")
        self.client, self._is_own = open_scene(scene, kind, project)
        try:
            layout = SceneLayout(self.client)
            layout.model = copy.copy(layout.model)  # the client's own becomes that of whichever is drawn
            normalised = kind is not PlainTask if normalise_actions is None else normalise_actions
            self.task = kind(layout)
            self.interface = EnvInterface(layout, self.task, space_mode=space_mode, normalised=normalised)
            self._simulations = SimulationBatch(layout.model, num_envs, threads)
            self._cameras = CameraObserver(self.client, include_cameras)
            self._control = BatchControl(self.client, layout, self._simulations)
            self._randomisation = self._randomised(layout, randomize)
        except BaseException:
            self.close_extras()
            raise
        self.single_observation_space = with_pictures(self.interface.observation_space, self._cameras)
        self.single_action_space = self.interface.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.metadata = {**self.metadata, "render_fps": rate_hz(layout, self.n_steps)}
        self._reward_fn, self._termination_fn = reward_fn, termination_fn
        limit = kind.max_episode_steps if max_episode_steps is None else max_episode_steps
        self._limit = math.inf if limit is None else limit
        self._may_end = limit is not None or termination_fn is not None or kind is not PlainTask
        self._before_sub_step = self._control.apply if self._control.per_sub_step else None
        self._start = EpisodeStart(self.client, layout)
        self._saved = self._start.saved({})
        self._start_row = state_row(self._saved)
        one = self._simulations
        self._states = States(one.time, one.qpos, one.qvel, one.sensordata, one.mocap_pos, one.mocap_quat)
        self._rngs: list[np.random.Generator] = [gymnasium.utils.seeding.np_random()[0] for _ in range(num_envs)]
        self._episode_steps = np.zeros(num_envs, dtype=np.int64)
        self._one_more = np.ones(num_envs, dtype=np.int64)  # adding an array is quicker than adding a number
        self._all, self._none = np.ones(num_envs, dtype=np.bool_), np.zeros(num_envs, dtype=np.bool_)
        self._all.flags.writeable = False
        self._drawn = np.full(num_envs, None, dtype=object)
        self._worlds: dict[int, DrawnWorld] = {}
        self._render = (render_camera, render_size)

    def _randomised(self, layout: SceneLayout, table: Mapping[str, Any] | None) -> BatchRandomisation | None:
        if table is None:
            return None
        prefixes, laws = [one.prefix for one in layout.robots], self._control.laws
        return BatchRandomisation(self._simulations, layout.model, prefixes, table, laws, has_pictures=True)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, Info]:
        """Begin episodes, in all environments or in those of the option ``reset_mask``."""
        check_options(options, (*RESET_OPTIONS, _MASK))
        chosen = dict(options or {})
        mask = self._mask(chosen.pop(_MASK, None))
        seeds = self._seeds(seed)
        for i in np.flatnonzero(mask).tolist():
            if (own := seeds[i]) is not None:
                self._rngs[i] = gymnasium.utils.seeding.np_random(own)[0]
        start = state_row(self._start.saved(chosen)) if chosen else self._start_row
        self._begin(np.flatnonzero(mask), start)
        return self._observation(), self._infos(None) | self._drawn_infos(mask)

    def step(self, actions: Any) -> tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], Info]:
        """``n_steps`` mj_steps in every environment; those whose episode ends begin the next."""
        setpoints = self.interface.setpoints(actions, self.num_envs)
        self._control.stage(setpoints)
        self._simulations.advance(self.n_steps, self._before_sub_step)
        self._episode_steps += self._one_more
        observation = self._observation() if self._cameras.names else self.interface.observation(self._states)
        outcome = self.task.judge(self._states, setpoints)
        infos = self._infos(outcome.success)
        reward, terminated = outcome.reward, outcome.terminated
        if self._reward_fn is not None:
            reward = np.asarray(self._reward_fn(observation, actions, infos), dtype=np.float64)
        if self._termination_fn is not None:
            terminated = np.asarray(self._termination_fn(observation, actions, infos), dtype=np.bool_)
        if not self._may_end:
            return observation, reward, terminated, self._none.copy(), infos
        truncated = self._episode_steps >= self._limit
        ended = terminated | truncated
        if np.count_nonzero(ended):
            observation, infos = self._begin_next(ended, observation, infos)
        return observation, reward, terminated, truncated, infos

    def render(self) -> tuple[NDArray[np.uint8], ...] | None:
        """A picture of each environment; no physics."""
        if not self.render_mode:
            return None
        pictures = []
        for i in range(self.num_envs):
            self._show(i)
            pictures.append(rendered(self.client, *self._render))
        return tuple(pictures)

    def close_extras(self, **kwargs: Any) -> None:  # noqa: ARG002 - Gymnasium's signature
        """End the server that was launched here; a client that was given stays open."""
        if self._is_own:
            self.client.close()

    def _observation(self, last: Any = None, ids: Sequence[int] | None = None) -> Any:
        """What is observed of all environments; pictures of all, or those of ``last`` but for some ``ids``."""
        observation = self.interface.observation(self._states)
        if not self._cameras.names:
            return observation
        found = dict(observation) if isinstance(observation, dict) else {STATE: observation}
        for name, space in self._cameras.spaces.items():
            found[name] = (
                np.empty((self.num_envs, *(space.shape or ())), space.dtype) if last is None else last[name].copy()
            )
        for i in range(self.num_envs) if ids is None else ids:
            self._show(i)
            self.client.step(0, include_cameras=self._cameras.names)
            for name, picture in self._cameras.pictures().items():
                found[name][i] = picture
        return found

    def _show(self, index: int) -> None:
        """Put the simulation behind the client, which draws, into the model and the state of one environment."""
        world = self._worlds.get(index)
        if world is not None and world.of_model:
            changes = [to_builtins(one) for one in world.of_model]
            self.client.runtime.set_model_params(*changes, until="reset")
        self.client.runtime.restore_state(with_row(self._saved, self._simulations.rows[index]))

    def _begin(self, ids: NDArray[np.intp], start: NDArray[np.float64]) -> None:
        """Put some simulations to the start of an episode, and compute their sensors there."""
        rows = ids.tolist()
        if self._randomisation is None:
            self._simulations.rows[ids] = start
        else:
            worlds = {i: self._randomisation.draw(start, world_seed(self._rngs[i])) for i in rows}
            self._simulations.rows[ids] = start
            for i, world in worlds.items():
                self._randomisation.begin(self._simulations.rows[i], i, world)
                self._drawn[i] = to_builtins(world.changes)
            self._worlds |= worlds
            self._randomisation.settle()
        self.task.place(self._states, rows, [self._rngs[i] for i in rows])
        self._simulations.evaluate(ids)
        self._episode_steps[ids] = 0

    def _begin_next(self, ended: NDArray[np.bool_], last: Any, last_infos: Info) -> tuple[Any, Info]:
        """Begin the next episodes; the observation after that, and infos that carry the last of the old ones."""
        ids = np.flatnonzero(ended)
        self._begin(ids, self._start_row)
        observation = self._observation(last, ids.tolist())
        infos = self._infos(None) | self._drawn_infos(ended)
        finals = np.full(self.num_envs, None, dtype=object)
        for i in ids:
            finals[i] = {name: part[i] for name, part in last.items()} if isinstance(last, dict) else last[i]
        final_infos = {name: np.where(ended, values, 0) for name, values in last_infos.items() if name[0] != "_"}
        final_infos |= {f"_{name}": ended.copy() for name in tuple(final_infos)}
        if "is_success" in last_infos:
            infos |= {"is_success": last_infos["is_success"], "_is_success": self._all}
            final_infos["is_success"] = last_infos["is_success"] & ended
        ending = {"final_obs": finals, "_final_obs": ended, "final_info": final_infos, "_final_info": ended.copy()}
        return observation, infos | ending

    def _drawn_infos(self, begun: NDArray[np.bool_]) -> Info:
        return {} if self._randomisation is None else {"randomized": self._drawn.copy(), "_randomized": begun.copy()}

    def _infos(self, success: NDArray[np.bool_] | None) -> Info:
        infos: Info = {
            "step_count": self._episode_steps.copy(),
            "_step_count": self._all,
            "sim_time": self._states.time.copy(),
            "_sim_time": self._all,
        }
        if success is not None:
            infos |= {"is_success": success, "_is_success": self._all}
        return infos

    def _mask(self, given: Any) -> NDArray[np.bool_]:
        if given is None:
            return self._all
        mask = np.asarray(given)
        if mask.shape != (self.num_envs,) or mask.dtype != np.bool_ or not mask.any():
            raise ValueError(f"reset_mask has {self.num_envs} booleans, one of them True; it is {given!r}")
        return mask

    def _seeds(self, seed: int | Sequence[int | None] | None) -> Sequence[int | None]:
        if seed is None:
            return [None] * self.num_envs
        if isinstance(seed, int | np.integer):
            return [int(seed) + i for i in range(self.num_envs)]
        if len(seed) != self.num_envs:
            raise ValueError(f"there are {self.num_envs} environments and {len(seed)} seeds")
        return list(seed)

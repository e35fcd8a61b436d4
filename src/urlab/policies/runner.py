"""Runs a policy on a robot, through a client, in direct or live mode."""

import time
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from urlab.errors import known
from urlab.policies.observation_terms import TERMS, Array, ObservationTerm, PolicyView
from urlab.policies.policy_file import PolicyContent, PolicyFileError, TermSpec, matching, per_joint
from urlab_client import URLabClient
from urlab_client.enums import StepMode
from urlab_client.handles.articulation import URLabArticulation

Network = Callable[[Array], Array]

_LIVE_POLL_S = 0.0005
_STEADY_S = 5.0
"""How long live physics may stand still before that is told."""


class PolicyRunner:
    """Sees, asks the network, moves, and steps.

    ``network`` turns an observation into as many numbers as the policy has joints. In direct mode an action is held for
    ``n_steps`` physics steps; in live mode for as much simulated time, as the simulation runs by itself.
    """

    def __init__(self, client: URLabClient, policy: PolicyContent, network: Network) -> None:
        self._client, self._policy, self._network = client, policy, network
        self.robot = _robot(client, policy.robot)
        _check_timestep(client, policy)
        joints = [name for name, joint in self.robot.joints.items() if joint.qpos_dim == 1]
        self.joints = matching(policy.action.joints, joints)
        by_joint = {one.joint: place for place, one in enumerate(self.robot.actuators.values()) if one.joint}
        missing = [name for name in self.joints if name not in by_joint]
        if missing:
            raise PolicyFileError(f"no actuator of {self.robot.prefix} moves {known(missing)}")
        self._actuators = np.array([by_joint[name] for name in self.joints])
        handles = [self.robot.joints[name] for name in self.joints]
        self._qpos = np.array([one.qpos_local_offset for one in handles])
        self._qvel = np.array([one.qvel_local_offset for one in handles])
        self._scale = np.array(per_joint("action.scale", policy.action.scale, self.joints))
        self._offset = self._offsets(policy)
        self._terms = [_Term(one) for one in policy.observations]
        self._interval_s = policy.n_steps * float(client.model.opt.timestep)
        self._begin()
        self._check_width()
        self._set_gains(policy)

    def reset(self, seed: int | None = None) -> None:
        """Put the simulation back to its start, or to the policy's keyframe, and begin anew."""
        self._client.reset(self._policy.keyframe, seed)
        self._begin()

    def step(self) -> Array:
        """One action, and the simulated time that it is held for; the action, before scale and offset."""
        action = self._network(self.observation())
        if action.shape != (len(self.joints),):
            raise PolicyFileError(
                f"the network answers with {action.size} numbers, and the policy has {len(self.joints)} joints: "
                f"{known(self.joints)}"
            )
        if not np.isfinite(action).all():
            raise PolicyFileError("the network answers with numbers that are not all finite")
        if (bound := self._policy.action.clip) is not None:
            action = np.clip(action, -bound, bound)
        self._last_action = action
        self.robot.ctrl_array[self._actuators] = self._offset + self._scale * action
        if self._client.step_mode == StepMode.LIVE:
            self._wait_live()
        else:
            self._time_s = float(self._client.step(self._policy.n_steps)["time"])
        return action

    @property
    def elapsed_s(self) -> float:
        """Simulated time since the policy began."""
        return self._time_s - self._began_s

    def observation(self) -> Array:
        """What the network is given now."""
        view = self._view()
        return np.concatenate([term.of(view) for term in self._terms])

    def _view(self) -> PolicyView:
        joints, velocities = self.robot.qpos_array[self._qpos], self.robot.qvel_array[self._qvel]
        return PolicyView(self._client, self.robot, joints, velocities, self._offset, self._last_action, self.elapsed_s)

    def _check_width(self) -> None:
        """PolicyFileError if the network takes another number of inputs, or a term means nothing here."""
        view = self._view()
        try:
            widths = {
                spec.term: term.of(view).size for spec, term in zip(self._policy.observations, self._terms, strict=True)
            }
        except LookupError as unknown:
            raise PolicyFileError(f"observations: {unknown.args[0]}") from unknown
        inputs = getattr(self._network, "inputs", None)
        if inputs is not None and inputs != sum(widths.values()):
            listed = ", ".join(f"{name} {width}" for name, width in widths.items())
            raise PolicyFileError(
                f"the network takes {inputs} numbers, and the policy sees {sum(widths.values())}: {listed}"
            )
        for term in self._terms:
            term.forget()

    def _begin(self) -> None:
        observe = 1 if self._client.step_mode == StepMode.LIVE else 0
        self._time_s = self._began_s = self._due_s = float(self._client.step(observe)["time"])
        self._last_action = np.zeros(len(self.joints))
        for term in self._terms:
            term.forget()

    def _wait_live(self) -> None:
        """Send the setpoints, and wait until their time is over; time that was lost is not made up for."""
        self._due_s = max(self._due_s + self._interval_s, self._time_s)
        give_up_s = time.monotonic() + _STEADY_S
        while True:
            now_s = float(self._client.step()["time"])
            if now_s >= self._due_s or now_s < self._time_s:  # or it was reset
                break
            if time.monotonic() > give_up_s:
                raise PolicyFileError("the simulation stands still: set_paused(False), or use direct mode")
            time.sleep(max(_LIVE_POLL_S, 0.5 * (self._due_s - now_s)))
        if now_s < self._time_s:
            self._due_s = self._began_s = now_s
        self._time_s = now_s

    def _offsets(self, policy: PolicyContent) -> Array:
        offset = policy.action.offset
        if not isinstance(offset, str):
            return np.array(per_joint("action.offset", offset, self.joints))
        keyframes = {one.name: one for one in self._client.runtime.list_keyframes()}
        found: Any = keyframes.get(f"{self.robot.prefix}_{offset}") or keyframes.get(offset)
        if found is None:
            raise PolicyFileError(f"action.offset: there is no keyframe {offset!r}; there are {known(keyframes)}")
        places = [self.robot.joints[name].qpos_offset for name in self.joints]
        return np.array(found.qpos)[places]

    def _set_gains(self, policy: PolicyContent) -> None:
        gains = policy.gains
        if gains is None:
            return
        limit = gains.torque_limit
        self.robot.push_gains(
            self.joints,
            per_joint("gains.kp", gains.kp, self.joints),
            per_joint("gains.kv", gains.kv, self.joints),
            None if limit is None else per_joint("gains.torque_limit", limit, self.joints),
        )


class _Term:
    """A term with its scale, clip and history; before there is a history, the first value stands for all of it."""

    def __init__(self, spec: TermSpec) -> None:
        needs = TERMS[spec.term].needs
        self._term: ObservationTerm = TERMS[spec.term](**{name: getattr(spec, name) for name in needs})
        self._scale, self._clip = spec.scale, spec.clip
        self._past: deque[Array] = deque(maxlen=spec.history)

    def of(self, view: PolicyView) -> Array:
        now = self._term.of(view)
        now = now if self._clip is None else np.clip(now, -self._clip, self._clip)
        now = now * self._scale
        self._past.append(now)
        while len(self._past) < (self._past.maxlen or 1):
            self._past.append(now)
        return np.concatenate(self._past)

    def forget(self) -> None:
        self._past.clear()


def _robot(client: URLabClient, name: str | None) -> URLabArticulation:
    robots = client.articulations
    if name is not None and name in robots:
        return robots[name]
    if name is not None or len(robots) != 1:
        wanted = "say which with robot = NAME" if name is None else f"none is called {name!r}"
        raise PolicyFileError(f"the scene has the robots {known(robots)}: {wanted}")
    return next(iter(robots.values()))


def _check_timestep(client: URLabClient, policy: PolicyContent) -> None:
    actual = float(client.model.opt.timestep)
    if policy.timestep is not None and not np.isclose(policy.timestep, actual, rtol=1e-6):
        raise PolicyFileError(
            f"the policy was trained with a timestep of {policy.timestep:g} s and the simulation has {actual:g} s: "
            f"client.runtime.set_sim_options(timestep={policy.timestep:g})"
        )

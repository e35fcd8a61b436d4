"""What a control step costs without HTTP, in this process and in bare ones."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

import numpy as np
from numpy.typing import NDArray

from urlab.cameras.gl_thread import shared_gl
from urlab.cameras.profile import effective_profile
from urlab.cli.bench.evaluation.pipe_child import ONCE, RESET, PipeChild, tell_all
from urlab.cli.bench.evaluation.trail import SEED, BareSteps, Trail
from urlab.cli.bench.turns import Way
from urlab.config import RenderProfile
from urlab.evaluation.goals.scoring import HOLD_STEPS_P4, sample_layout
from urlab.evaluation.simulation.actions import Action
from urlab.evaluation.simulation.episode import Episode
from urlab.evaluation.simulation.simulation import Simulation

_PHYSICS = "urlab.cli.bench.evaluation.physics_child"
_RENDER = "urlab.cli.bench.evaluation.render_child"


class _Follower:
    """Carries out a trail's actions, one at a call."""

    def __init__(self, trail: Trail, begin: Callable[[], object], step: Callable[[Action], object]) -> None:
        self._actions, self._begin, self._step = trail.actions, begin, step
        self._left = iter(self._actions)

    def reset(self) -> None:
        """Back to the begin of the trail."""
        self._begin()
        self._left = iter(self._actions)

    def once(self) -> None:
        """The next action."""
        self._step(next(self._left))


class Floors:
    """All floors of one trail. A context manager. Each way walks the trail in a simulation of its own."""

    def __init__(self, trail: Trail, *, cameras: bool) -> None:
        with ExitStack() as opened:
            self._trail = trail
            self._physics = BareSteps(trail, cameras=cameras)
            self._alone = Simulation(trail.task, trail.embodiment, cameras=cameras)
            opened.callback(self._alone.close)
            self._scored = Simulation(trail.task, trail.embodiment, cameras=cameras)
            opened.callback(self._scored.close)
            self._episode = _episode(trail, self._scored, cameras=cameras)
            self._processes = [] if cameras else [opened.enter_context(_physics(trail)) for _ in range(3)]
            self._renderer = self._bare_renderer(opened) if cameras else None
            self._opened = opened.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self._opened.close()

    def ways(self) -> list[Way]:
        """Those with cameras draw; those without have bare processes instead."""
        layout = sample_layout(self._trail.task, SEED)
        episode = _Follower(self._trail, self._episode.reset, self._episode.step)
        alone = _Follower(self._trail, lambda: self._alone.reset(layout), self._alone.step)
        steps = [
            Way("episode", episode.reset, episode.once),
            Way("simulation", alone.reset, alone.once),
            Way("physics", self._physics.reset, self._physics.once),
        ]
        return steps + (self._pictures(self._renderer) if self._renderer is not None else self._pairs())

    def joints(self) -> list[NDArray[np.float32]]:
        """Where each of the three is, as an observation tells it."""
        found = (self._scored.joints, self._alone.joints, self._physics.joints)
        return [one.astype(np.float32) for one in found]

    def _pictures(self, bare: PipeChild) -> list[Way]:
        return [
            Way("render", lambda: None, self._alone.render),
            Way("bare_render", lambda: None, lambda: tell_all([bare], ONCE)),
        ]

    def _pairs(self) -> list[Way]:
        """One process is told alone, two others are told together, as the workers are."""
        one, two = self._processes[:1], self._processes[1:]
        return [
            Way("bare_one", lambda: tell_all(one, RESET), lambda: tell_all(one, ONCE)),
            Way("bare_two", lambda: tell_all(two, RESET), lambda: tell_all(two, ONCE)),
        ]

    def _bare_renderer(self, opened: ExitStack) -> PipeChild:
        folder = Path(opened.enter_context(TemporaryDirectory(prefix="urlab-bench-")))
        self._physics.save(folder)
        profile = effective_profile(RenderProfile.AUTO, shared_gl().gl_name())
        return opened.enter_context(PipeChild(_RENDER, str(folder), profile.value))


def _episode(trail: Trail, simulation: Simulation, *, cameras: bool) -> Episode:
    steps = trail.task.num_steps
    return Episode(trail.task, SEED, simulation, hold_steps=HOLD_STEPS_P4, num_steps=steps, cameras=cameras)


def _physics(trail: Trail) -> PipeChild:
    return PipeChild(_PHYSICS, trail.task.name, str(len(trail.actions)))

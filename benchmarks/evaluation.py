"""What a control step of policy evaluation costs over HTTP, and how long a whole evaluation takes."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import mujoco
import numpy as np
import psutil
from numpy.typing import NDArray

from benchmarks.bare_child import CONTROLS_FILE, FAST, MODEL_FILE, STATE, STATE_FILE, BarePhysics
from benchmarks.measuring import (
    Bar,
    BenchmarkError,
    Plan,
    Rounds,
    SampleCounts,
    Subject,
    Tick,
    Timing,
    all_equal_bar,
    bar,
)
from benchmarks.processes import EvaluationServer, PipeChild, ask_all, child_module, environment
from benchmarks.reporting import Panel, PanelBar, Report, Table
from urlab.cameras.gl_thread import shared_gl
from urlab.errors import NoViewport
from urlab.evaluation.embodiments import EMBODIMENTS
from urlab.evaluation.goals.scoring import sample_layout
from urlab.evaluation.policies.random_policy import RandomPolicy
from urlab.evaluation.runs.client import EvalClient
from urlab.evaluation.settings import HOLD_STEPS_LATER_CLIENTS
from urlab.evaluation.simulation.actions import Action, parse_action
from urlab.evaluation.simulation.episode import Episode
from urlab.evaluation.simulation.simulation import Simulation
from urlab.evaluation.tasks.task import find_task

_TASKS = {"franka_panda": "panda_cube_on_plate", "franka_robotiq": "robotiq_align_bar", "aloha": "aloha_lift_tray"}
"""A scene is a robot at one task: the one in which its steps are measured."""

_SCENES = tuple(EMBODIMENTS)
FULL = Plan(_SCENES, 8, SampleCounts(200, 20, 20, 2))
QUICK = Plan(_SCENES, 1, SampleCounts(60, 10, 20, 2), quick=True)
_FRAMES = {False: SampleCounts(20, 2, 5, 2), True: SampleCounts(6, 2, 3, 2)}
"""The counts with cameras, by whether the plan is the quick one."""

MIN_PAIR_RATIO = 1.7
MAX_WHOLE_S = 600.0
TWO_CORES = 1.8
"""Where two bare processes do less than this times the work of one, another process has a part of the second core."""

_SEED = 0
_ALONE, _TOGETHER = ("0",), ("1", "2")
"""The worker that is stepped alone and the two that share a request: three processes, of which at most two are busy."""

_WORKERS = 2
_WHOLE_SEEDS = 5
_MB = 1e6


class StepsResult(msgspec.Struct, kw_only=True):
    """Control steps of one robot, with cameras or without.

    ``timings`` are by subject: ``http`` is one worker through HTTP, ``two`` are two workers in one request. Their
    floors, with the same actions: ``episode`` is the same in process (step, goal, observation, and pictures if there
    are any), ``simulation`` the step alone, ``physics`` its mj_steps with the same controls; ``bare_one`` and
    ``bare_two`` are processes asked through pipes to run that physics and nothing else (without cameras); ``render``
    draws all cameras, ``bare_render`` does so with nothing of ours (with cameras).

    ``judged_rounds`` are those in which the bare pair shows that there were two cores. ``cpu_ms`` is per request, of
    client and server, for one worker and for two; the workers have their own. ``memory_mb`` is after all steps;
    ``worker_own`` is what a worker does not share. ``same_state`` says that every block ended in the same state.
    """

    scene: str
    task: str
    cameras: bool
    same_state: bool
    ready_s: float
    first_reset_s: float
    timings: dict[str, Timing]
    workers_ratio: float
    judged_rounds: list[int]
    judged_ratio: float | None
    bare_ratio: float | None
    cpu_ms: dict[str, tuple[float, float]]
    memory_mb: dict[str, float]
    round_p50_us: dict[str, list[float]]

    @property
    def label(self) -> str:
        """For tables."""
        return f"{self.scene}, cameras" if self.cameras else self.scene

    @property
    def added_ms(self) -> float:
        """What HTTP and the processes add to an episode in process, p50."""
        return (self.timings["http"].p50_us - self.timings["episode"].p50_us) / 1e3


def measure(plan: Plan, tick: Tick) -> Report:
    """Steps of every robot, without cameras and with them where something can be drawn; then a whole evaluation."""
    renderer = _gl_name()
    kinds = (False,) if renderer is None else (False, True)
    steps = [_measure_steps(plan, scene, tick, cameras=cameras) for cameras in kinds for scene in plan.scenes]
    whole = _measure_whole(plan, tick)
    facts = {
        "evaluation": f"{whole['episodes']} episodes of {len(whole['tasks'])} tasks in {whole['took_s']:.0f} s",
        "start to ready": ", ".join(f"{one.ready_s:.2f}" for one in steps) + " s",
        "first reset": ", ".join(f"{one.first_reset_s:.2f}" for one in steps) + " s, with a worker's start",
        "memory": "; ".join(
            "{}: {}".format(one.label, ", ".join(f"{k} {v:.0f} MB" for k, v in one.memory_mb.items())) for one in steps
        ),
        "pictures": renderer or "none: nothing draws here",
    }
    return Report(
        title="Policy evaluation over HTTP",
        data={"renderer": renderer, "steps": steps, "whole": whole},
        tables=_tables(steps, whole),
        bars=_bars(steps, whole, is_whole=not plan.quick and set(plan.scenes) == set(_SCENES)),
        facts=facts,
        panels=_panels(steps),
        libraries=("fastapi", "uvicorn", "uvloop", "httptools"),
    )


def _gl_name() -> str | None:
    try:
        return shared_gl().gl_name()
    except NoViewport:
        return None


# -- the same actions for every subject ---------------------------------------------------------------------------


class ActionSequence:
    """``count`` actions of the random policy in one task, as a client sends them and as a simulation takes them."""

    def __init__(self, task: str, count: int) -> None:
        self.task = find_task(task)
        self.embodiment = EMBODIMENTS[self.task.embodiment]
        policy = RandomPolicy()
        policy.reset({"episode_id": f"urlab/bench/{task}/{_SEED}", "robot_id": self.embodiment.robot_id})
        self.raw: list[dict[str, Any]] = [policy.act({}) for _ in range(count)]
        self.actions = [parse_action(one, self.embodiment, default_is_rel=True) for one in self.raw]


class _InProcess:
    """Carries out the actions of a sequence, one at a call."""

    def __init__(
        self, actions: Sequence[Action], begin: Callable[[], object], step: Callable[[Action], object]
    ) -> None:
        self._actions, self._begin, self._step = actions, begin, step
        self._left = iter(actions)

    def reset(self) -> None:
        self._begin()
        self._left = iter(self._actions)

    def once(self) -> None:
        self._step(next(self._left))


class HttpStepper:
    """Some workers along one sequence, all of them in every request. The first `reset` starts their processes."""

    def __init__(self, server: EvaluationServer, worker_ids: Sequence[str], sequence: ActionSequence) -> None:
        self._client = EvalClient(server.url, worker_ids)
        self._requests = [dict.fromkeys(worker_ids, raw) for raw in sequence.raw]
        self._server = server
        self._replies: dict[str, Any] = {}
        self._next = 0
        begin_s = time.perf_counter()
        self.reset()
        self.first_reset_s = time.perf_counter() - begin_s

    def reset(self) -> None:
        """Begin the workers' episodes again."""
        self._replies = self._client.reset()
        self._next = 0

    def once(self) -> None:
        """One control step of each worker."""
        self._replies = self._client.step(self._requests[self._next])
        self._next += 1
        for reply in self._replies.values():
            if reply["episode_result"] is not None or reply["obs"] is None:
                raise BenchmarkError(f"an episode ended in step {self._next}, while it was measured: {reply}")

    def subject(self, name: str) -> Subject:
        """Its steps, with the CPU of the server."""
        return Subject(name, self.once, self.reset, server_cpu_s=lambda: self._server.cpu_s)

    @property
    def joints(self) -> NDArray[np.float32]:
        """Those of the first worker, as the last reply has them."""
        joints: NDArray[np.float32] = next(iter(self._replies.values()))["obs"]["joint_position_state"]
        return joints


class Floors:
    """What a control step costs without HTTP, in this process and in bare ones, each in a simulation of its own."""

    def __init__(self, sequence: ActionSequence, opened: ExitStack, *, cameras: bool) -> None:
        task, layout = sequence.task, sample_layout(sequence.task, _SEED)
        self._alone, self._scored = (Simulation(task, sequence.embodiment, cameras=cameras) for _ in range(2))
        opened.callback(self._alone.close)
        opened.callback(self._scored.close)
        self._alone_steps = _InProcess(sequence.actions, lambda: self._alone.reset(layout), self._alone.step)
        folder = Path(opened.enter_context(TemporaryDirectory(prefix="urlab-bench-")))
        self._data = _record_physics(self._alone_steps, len(sequence.actions), folder)
        self._physics = BarePhysics(folder)
        children = 1 if cameras else 1 + len(_TOGETHER)
        self._bare = [opened.enter_context(PipeChild(child_module("bare_child", str(folder)))) for _ in range(children)]
        episode = Episode(
            task, _SEED, self._scored, hold_steps=HOLD_STEPS_LATER_CLIENTS, num_steps=task.num_steps, cameras=cameras
        )
        self._episode = _InProcess(sequence.actions, episode.reset, episode.step)
        self._mounts = [mount.name for mount in sequence.embodiment.cameras] if cameras else []

    def subjects(self) -> list[Subject]:
        """Those with cameras draw; those without have bare processes instead."""
        steps = [
            Subject("episode", self._episode.once, self._episode.reset),
            Subject("simulation", self._alone_steps.once, self._alone_steps.reset),
            Subject("physics", self._physics.once, self._physics.reset),
        ]
        if self._mounts:
            order = self._draw_order()
            return [
                *steps,
                Subject("render", self._alone.render),
                Subject("bare_render", lambda: self._bare[0].ask(order)),
            ]
        one, two = self._bare[:1], self._bare[1:]
        reset, once = {"do": "reset"}, {"do": "steps"}
        return [
            *steps,
            Subject("bare_one", lambda: ask_all(one, once), lambda: ask_all(one, reset)),
            Subject("bare_two", lambda: ask_all(two, once), lambda: ask_all(two, reset)),
        ]

    def agree_with(self, joints: NDArray[np.float32]) -> bool:
        """Whether the simulations and the bare physics are where a worker is, to the last bit."""
        same = all(np.array_equal(one.joints.astype(np.float32), joints) for one in (self._alone, self._scored))
        return same and np.array_equal(self._physics.data.qpos, self._data.qpos)

    def _draw_order(self) -> dict[str, Any]:
        """The cameras that policies look through, at the resolution of the first; a robot's model may have more."""
        model = self._physics.model
        names = [model.camera(index).name for index in range(model.ncam)]
        ids = [
            next(i for i, name in enumerate(names) if name == mount or name.endswith(f"_{mount}"))
            for mount in self._mounts
        ]
        width, height = map(int, model.cam_resolution[ids[0]])
        return {
            "do": "draw", "cameras": ids, "modes": ["real", "depth"], "step": False, "width": width, "height": height,
            "profile": FAST,
        }  # fmt: skip


def _record_physics(steps: _InProcess, count: int, folder: Path) -> Any:
    """Carry out a sequence once and save the controls of every mj_step for `BarePhysics`; the simulation's MjData."""
    seen: list[tuple[Any, Any, NDArray[np.float64]]] = []
    step = mujoco.mj_step

    def watched(model: Any, data: Any) -> None:
        seen.append((model, data, data.ctrl.copy()))
        step(model, data)

    mujoco.mj_step = watched
    try:
        steps.reset()
        model, data, _ = seen[-1]
        state = np.empty(mujoco.mj_stateSize(model, STATE))
        mujoco.mj_getState(model, data, state, STATE)
        seen.clear()
        for _ in range(count):
            steps.once()
    finally:
        mujoco.mj_step = step
    mujoco.mj_saveModel(model, str(folder / MODEL_FILE))
    np.save(folder / STATE_FILE, state)
    np.save(folder / CONTROLS_FILE, np.array([one[2] for one in seen]).reshape(count, -1, model.nu))
    return data


# -- steps --------------------------------------------------------------------------------------------------------


def _measure_steps(plan: Plan, scene: str, tick: Tick, *, cameras: bool) -> StepsResult:
    """All rounds of one robot, with one server."""
    words = f"{scene}, cameras" if cameras else scene
    counts, rounds, same_state = _FRAMES[plan.quick] if cameras else plan.counts, Rounds(), True
    sequence = ActionSequence(_TASKS[scene], counts.calls)
    tick(f"{words}: start")
    with ExitStack() as opened:
        server = opened.enter_context(EvaluationServer(_TASKS[scene], 3, cameras=cameras))
        floors = Floors(sequence, opened, cameras=cameras)
        one, two = (HttpStepper(server, workers, sequence) for workers in (_ALONE, _TOGETHER))
        subjects = [one.subject("http"), two.subject("two"), *floors.subjects()]
        for number in range(plan.rounds):
            tick(f"{words}: round {number + 1}/{plan.rounds}")
            rounds.measure(counts, subjects)
            same_state &= floors.agree_with(one.joints)
        memory_mb = _memory_mb(server)
    judged = [n for n in range(plan.rounds) if not cameras and _pair(rounds, "bare_one", "bare_two", [n]) >= TWO_CORES]
    return StepsResult(
        scene=scene,
        task=_TASKS[scene],
        cameras=cameras,
        same_state=same_state,
        ready_s=server.ready_s,
        first_reset_s=one.first_reset_s,
        timings={name: rounds.timing(name) for name in rounds.p50_us},
        workers_ratio=_pair(rounds, "http", "two"),
        judged_rounds=judged,
        judged_ratio=_pair(rounds, "http", "two", judged) if judged else None,
        bare_ratio=None if cameras else _pair(rounds, "bare_one", "bare_two"),
        cpu_ms={name: _cpu_ms(rounds, name) for name in ("http", "two")},
        memory_mb=memory_mb,
        round_p50_us=rounds.p50_us,
    )


def _pair(rounds: Rounds, one: str, two: str, numbers: Sequence[int] | None = None) -> float:
    """Steps per second of two at once over those of one alone; a request of ``two`` has two steps."""
    return 2 * rounds.timing(two, numbers).rate_hz / rounds.timing(one, numbers).rate_hz


def _cpu_ms(rounds: Rounds, name: str) -> tuple[float, float]:
    samples = rounds.samples(name)
    count = len(samples.durations_ns)
    return 1e3 * samples.client_cpu_s / count, 1e3 * samples.server_cpu_s / count


def _memory_mb(server: EvaluationServer) -> dict[str, float]:
    """Resident memory of the server and of its largest worker (a child that simulates), now."""
    used = [one.memory_full_info() for one in psutil.Process(server.pid).children()]
    largest = max(used, key=lambda one: one.rss)
    return {"server": server.rss_mb, "worker": largest.rss / _MB, "worker_own": largest.uss / _MB}


# -- a whole evaluation -------------------------------------------------------------------------------------------


def _measure_whole(plan: Plan, tick: Tick) -> dict[str, Any]:
    """`urlab eval run` with oracles, without cameras, its start and end included; a quick plan has two tasks."""
    tick("a whole evaluation with oracles")
    tasks = ["panda_between_boxes", "panda_cube_in_bowl"] if plan.quick else plan.scenes
    words = ["--policy", "oracle", "--no-cameras", "--workers", str(_WORKERS), "--tasks", ",".join(tasks), "--json"]
    words += ["--episodes", "1" if plan.quick else str(_WHOLE_SEEDS)]
    with TemporaryDirectory(prefix="urlab-bench-") as folder:
        command = [sys.executable, "-m", "urlab", "eval", "run", *words, "--results", folder]
        begin_s = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)
        took_s = time.perf_counter() - begin_s
    if done.returncode != 0:
        raise BenchmarkError(f"the evaluation with oracles ended with code {done.returncode}: {done.stderr[-2000:]}")
    (run,) = json.loads(done.stdout)["runs"]
    found = {name: (one["episodes"], one["successes"], one["mean_score"]) for name, one in run["tasks"].items()}
    return {"workers": _WORKERS, "episodes": run["overall"]["episodes"], "took_s": took_s, "tasks": found}


# -- report -------------------------------------------------------------------------------------------------------


def _tables(steps: Sequence[StepsResult], whole: dict[str, Any]) -> list[Table]:
    names = ("http", "episode", "simulation", "physics", "render", "bare_render")
    columns = ("robot", "steps/s", "HTTP", "in process", "simulation", "physics", "pictures", "bare", "HTTP adds")
    alone = Table("one worker: a control step, p50 / p99 in ms", columns)
    pair_columns = ("robot", "one", "two together", "ratio", "with two cores", "bare pair", "client CPU", "server CPU")
    pairs = Table("two workers in one request: control steps per second; CPU in ms per request", pair_columns)
    for one in steps:
        cells = [one.timings[name].pair_ms if name in one.timings else "" for name in names]
        rates = one.timings["http"].rate_hz, 2 * one.timings["two"].rate_hz
        alone.rows.append([one.label, f"{rates[0]:.0f}", *cells, f"{one.added_ms:.2f}"])
        ratios = [
            "" if value is None else f"{value:.2f}" for value in (one.workers_ratio, one.judged_ratio, one.bare_ratio)
        ]
        cpu = [f"{one.cpu_ms['http'][side]:.2f} / {one.cpu_ms['two'][side]:.2f}" for side in (0, 1)]
        pairs.rows.append([one.label, *(f"{rate:.0f}" for rate in rates), *ratios, *cpu])
    tasks = Table("oracles without cameras", ("task", "succeeded", "score"))
    for name, (episodes, successes, score) in whole["tasks"].items():
        tasks.rows.append([name, f"{successes} of {episodes}", f"{score:.2f}"])
    return [alone, pairs, tasks]


def _bars(steps: Sequence[StepsResult], whole: dict[str, Any], *, is_whole: bool) -> list[Bar]:
    """Not judged: cameras, two workers where there were no two cores, an evaluation that is not whole."""
    bars = [all_equal_bar("cases in which a worker's state differs from bare physics", [s.same_state for s in steps])]
    for one in steps:
        if one.judged_ratio is not None:
            name = f"{one.scene}: two workers in one request / one, control steps per second"
            note = f"{len(one.judged_rounds)} rounds; all {one.workers_ratio:.2f}"
            bars.append(bar(name, one.judged_ratio, at_least=MIN_PAIR_RATIO, note=note))
    if is_whole:
        name = f"{whole['episodes']} episodes of {len(whole['tasks'])} tasks with oracles, no cameras"
        bars.append(bar(name, whole["took_s"], at_most=MAX_WHOLE_S, unit=" s", digits=0))
    return bars


def _panels(steps: Sequence[StepsResult]) -> list[Panel]:
    legend = ("physics", "rest of the simulation", "pictures", "goal and observation", "HTTP and processes")
    panels = []
    for cameras, title in ((False, "a control step"), (True, "with three cameras")):
        bars = [
            PanelBar(one.scene, shares_ms(one), f"{one.timings['http'].rate_hz:.0f}/s")
            for one in steps
            if one.cameras == cameras
        ]
        if bars:
            panels.append(Panel(title, "ms, p50", bars, legend=legend))
    pairs = [
        PanelBar("", [one.workers_ratio], f"{one.workers_ratio:.2f}", mark=one.bare_ratio, colour=4)
        for one in steps
        if not one.cameras
    ]
    return [*panels, Panel("two workers / one", "mark: bare processes", pairs, limit=MIN_PAIR_RATIO)]


def shares_ms(steps: StepsResult) -> list[float]:
    """The parts of a step, p50, in the order of the bar. Pictures are not more than what they are a part of."""
    p50_ms = {name: timing.p50_us / 1e3 for name, timing in steps.timings.items()}
    physics, simulation, episode = (p50_ms[name] for name in ("physics", "simulation", "episode"))
    drawn = min(p50_ms.get("render", 0.0), episode - simulation)
    shares = [physics, simulation - physics, drawn, episode - simulation - drawn, steps.added_ms]
    return [max(value, 0.0) for value in shares]

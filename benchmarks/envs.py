"""Environments beside what they stand on: raw batches of MuJoCo, and Gymnasium's own of the same models."""

import gc
import os
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import gymnasium
import msgspec
import numpy as np
import psutil
from gymnasium.envs.mujoco import MujocoEnv
from gymnasium.vector import AsyncVectorEnv
from mujoco.batch import Batch

from benchmarks.measuring import BenchmarkError, Plan, Rounds, SampleCounts, Subject, Tick, bar, repeat
from benchmarks.processes import Server
from benchmarks.reporting import Panel, PanelBar, Report, Table
from benchmarks.stepping import check_attached, connect_shm
from urlab import launch
from urlab.envs import URLabEnv, URLabVectorEnv

_SINGLE = {"half_cheetah": "HalfCheetah-v5", "ant": "Ant-v5"}
FULL = Plan(("arm", *_SINGLE), 8, SampleCounts(200, 20, 20, 2))
QUICK = Plan(("arm", *_SINGLE), 2, SampleCounts(40, 5, 10, 2), quick=True)

MIN_OF_RAW = 0.85
MIN_OF_ASYNC = 5.0
MIN_SINGLE = {"half_cheetah": 0.6, "ant": 0.9}
MIN_VECTOR_OF_ONE = 1.0
MIN_OVER_SHM = 0.7
MAX_SPREAD = 1.3

_ARM, _LEGS = ("panda", "floor"), ("quadruped", "floor")
_ENVS, _DECIMATION = 256, 5
_SKIP = 5
_SIZES = (16, 64, 256, 1024, 4096)
_MANY = SampleCounts(20, 3, 4, 1)


class EnvResult(msgspec.Struct, kw_only=True):
    """Steps of environments a second, of ours and of what it is compared with, in the same run."""

    name: str
    envs: int
    ours_hz: float
    floor_hz: float

    @property
    def ratio(self) -> float:
        """Ours over the floor."""
        return self.ours_hz / self.floor_hz


def measure(plan: Plan, tick: Tick) -> Report:
    """Many environments beside a raw batch and beside processes, one beside Gymnasium's, and by their number."""
    with TemporaryDirectory(prefix="urlab-bench-") as folder:
        project = Path(folder)
        found: dict[str, Any] = {"batches": [], "singles": []}
        if "arm" in plan.scenes:
            tick(f"{_ENVS} arms beside a raw batch")
            found["batches"].append(_beside_batch(plan, "panda, servos", _ARM, project))
            tick(f"{_ENVS} walking robots with PD per sub-step")
            found["batches"].append(_beside_batch(plan, "quadruped, PD per sub-step", _LEGS, project))
            tick(f"a batch of {_ENVS} arms over shared memory")
            found["over_shm"] = _over_shared_memory(plan, project)
            tick("by the number of environments")
            found["sizes_us"], found["memory_kb"] = _by_size(plan, project)
        for scene in plan.scenes:
            if scene in _SINGLE:
                tick(f"one {scene} beside Gymnasium's")
                found["singles"] += _beside_gymnasium(plan, scene, project)
        if "half_cheetah" in plan.scenes:
            tick("many half_cheetah beside processes")
            found["processes"] = _beside_processes(plan, project)
    return _report(found)


def _report(found: dict[str, Any]) -> Report:
    tables = [Table("steps of environments per second", ["", "environments", "ours", "beside", "ratio"])]
    others = [found[name] for name in ("over_shm", "processes") if name in found]
    rows: list[EnvResult] = [*found["batches"], *found["singles"], *others]
    for one in rows:
        tables[0].rows.append(
            [one.name, str(one.envs), f"{one.ours_hz:,.0f}", f"{one.floor_hz:,.0f}", f"{one.ratio:.2f}"]
        )
    bars = [bar(f"{one.name}: rate / raw batch", one.ratio, at_least=MIN_OF_RAW) for one in found["batches"][:1]]
    for one in found["singles"]:
        least = MIN_VECTOR_OF_ONE if "vector" in one.name else MIN_SINGLE[one.name.split(",")[0]]
        bars.append(bar(f"{one.name}: rate / Gymnasium's own", one.ratio, at_least=least))
    if over_shm := found.get("over_shm"):
        bars.append(bar(f"{over_shm.name}: rate / in process", over_shm.ratio, at_least=MIN_OVER_SHM))
    if processes := found.get("processes"):
        bars.append(bar(f"{processes.name}: rate / AsyncVectorEnv", processes.ratio, at_least=MIN_OF_ASYNC))
    facts = {"cores": str(os.cpu_count())}
    if sizes := found.get("sizes_us"):
        spread = max(sizes.values()) / min(sizes.values())
        bars.append(bar("time per environment, most / least, by their number", spread, at_most=MAX_SPREAD))
        facts["per environment"] = ", ".join(f"{count}: {each:.1f} us" for count, each in sizes.items())
        facts["memory per environment"] = f"{found['memory_kb']:.1f} kB (panda)"
    return Report(
        title="What environments cost", data=found, tables=tables, bars=bars, facts=facts, panels=[_panel(rows)]
    )


def _panel(rows: list[EnvResult]) -> Panel:
    bars = [PanelBar(one.name, [one.ratio], f"{one.ratio:.2f}") for one in rows]
    return Panel("steps per second, over those of what stands beside", "ratio", bars, limit=1.0)


def _beside_batch(plan: Plan, name: str, scene: tuple[str, ...], project: Path) -> EnvResult:
    """The same model and controls in MuJoCo's batch, with the same number of sub-steps and nothing else.

    Of a robot with a PD controller the controls are the torques of the start, and stay.
    """
    with closing(URLabVectorEnv(list(scene), _ENVS, n_steps=_DECIMATION, project=project)) as env:
        env.reset(seed=0)
        raw = Batch(env.interface.layout.model, _ENVS)
        actions = _actions(env)
        start = env._simulations.rows.copy()
        env.step(actions)
        controls, wanted = raw.bind("ctrl"), env._simulations.ctrl.copy()

        def step_raw() -> None:
            controls[:] = wanted
            raw.step(nstep=_DECIMATION)

        def go_back() -> None:
            env.reset(seed=0)
            raw.state[:] = start

        rounds = _measured(
            plan, _MANY, [Subject("ours", lambda: env.step(actions), go_back), Subject("raw", step_raw, go_back)]
        )
        return _result(name, _ENVS, rounds, "raw")


def _over_shared_memory(plan: Plan, project: Path) -> EnvResult:
    """`client.batch` of a server over shared memory, beside the same of a server in the client's own process."""
    with ExitStack() as opened:
        here = opened.enter_context(launch(list(_ARM), project=project, step_mode="direct"))
        server = opened.enter_context(Server(list(_ARM)))
        there, transport = connect_shm(server.step_endpoint)
        opened.enter_context(there)
        batches = [opened.enter_context(client.batch(_ENVS)) for client in (here, there)]
        start = here.articulations["panda"].ctrl_array
        controls = np.tile(start, (_ENVS, 1))
        subjects = [
            Subject(name, partial(batch.step, controls, _DECIMATION), batch.reset)
            for name, batch in zip(("here", "ours"), batches, strict=True)
        ]
        rounds = _measured(plan, _MANY, subjects)
        check_attached(transport)
        return _result("panda, batch over shared memory", _ENVS, rounds, "here")


def _by_size(plan: Plan, project: Path) -> tuple[dict[str, float], float]:
    """Microseconds of one environment's step by how many there are, in turns, and kilobytes that one more takes."""
    sizes = _SIZES[:2] if plan.counts.samples < QUICK.counts.samples else _SIZES
    memory, subjects = {}, []
    with ExitStack() as opened:
        for count in sizes:
            gc.collect()
            before = psutil.Process().memory_info().rss
            vector = URLabVectorEnv(list(_ARM), count, n_steps=_DECIMATION, project=project)
            env = opened.enter_context(closing(vector))
            env.reset(seed=0)
            env.step(_actions(env))
            memory[count] = psutil.Process().memory_info().rss - before
            steps = partial(repeat, partial(env.step, _actions(env)), _repeats(count))
            subjects.append(Subject(str(count), steps, partial(env.reset, seed=0)))
        rounds = _measured(plan, SampleCounts(4, 1, 1), subjects)
    few, many = sizes[0], sizes[-1]
    per_env = {str(count): rounds.timing(str(count)).p50_us / count / _repeats(count) for count in sizes}
    return per_env, (memory[many] - memory[few]) / (many - few) / 1e3


def _repeats(count: int) -> int:
    """How many steps make one sample: about as much work for few environments as for many."""
    return max(1, 1024 // count)


def _beside_gymnasium(plan: Plan, scene: str, project: Path) -> list[EnvResult]:
    """Gymnasium's environment of a model, ours of the same file, and a vector environment of one."""
    file = _asset(scene)
    with ExitStack() as opened:
        theirs: Any = opened.enter_context(closing(gymnasium.make(_SINGLE[scene]).unwrapped))
        ours = opened.enter_context(closing(URLabEnv(file, n_steps=_SKIP, project=project)))
        one = opened.enter_context(closing(URLabVectorEnv(file, 1, n_steps=_SKIP, project=project)))
        if not isinstance(theirs, MujocoEnv) or theirs.frame_skip != _SKIP:
            raise BenchmarkError(f"Gymnasium's {_SINGLE[scene]} does not skip {_SKIP} frames")
        action: Any = np.zeros(len(ours.interface.layout.low))
        row = action[None]
        rounds = _measured(
            plan,
            plan.counts,
            [
                Subject("theirs", lambda: theirs.step(action), lambda: theirs.reset(seed=0)),
                Subject("ours", lambda: ours.step(action), lambda: ours.reset(seed=0)),
                Subject("vector", lambda: one.step(row), lambda: one.reset(seed=0)),
            ],
        )
        return [
            _result(f"{scene}, one", 1, rounds, "theirs"),
            _result(f"{scene}, vector of one", 1, rounds, "theirs", "vector"),
        ]


def _beside_processes(plan: Plan, project: Path) -> EnvResult:
    """As many environments in one process as there are cores, times 16, beside a process of Gymnasium's per core."""
    cores = os.cpu_count() or 1
    count = 16 * cores
    with ExitStack() as opened:
        async_env = opened.enter_context(closing(AsyncVectorEnv([_half_cheetah] * cores)))
        many = opened.enter_context(
            closing(URLabVectorEnv(_asset("half_cheetah"), count, n_steps=_SKIP, project=project))
        )
        width = len(many.interface.layout.low)
        theirs, ours = np.zeros((cores, width)), np.zeros((count, width))
        rounds = _measured(
            plan,
            _MANY,
            [
                Subject("theirs", lambda: async_env.step(theirs), lambda: async_env.reset(seed=0)),
                Subject("ours", lambda: many.step(ours), lambda: many.reset(seed=0)),
            ],
        )
        their_hz = cores * 1e6 / rounds.timing("theirs").p50_us
        return EnvResult(
            name="half_cheetah, many", envs=count, ours_hz=count * 1e6 / rounds.timing("ours").p50_us, floor_hz=their_hz
        )


def _measured(plan: Plan, counts: SampleCounts, subjects: list[Subject]) -> Rounds:
    rounds = Rounds()
    for _ in range(plan.rounds):
        rounds.measure(counts, subjects)
    return rounds


def _result(name: str, envs: int, rounds: Rounds, floor: str, ours: str = "ours") -> EnvResult:
    ours_us, floor_us = rounds.timing(ours).p50_us, rounds.timing(floor).p50_us
    return EnvResult(name=name, envs=envs, ours_hz=envs * 1e6 / ours_us, floor_hz=envs * 1e6 / floor_us)


def _actions(env: URLabVectorEnv) -> Any:
    """The setpoints of the start, with a little noise: robots that stay where they are."""
    start = env.client.articulations[env.interface.layout.robots[0].prefix].ctrl_array
    noise = np.random.Generator(np.random.PCG64(0)).uniform(-0.05, 0.05, (env.num_envs, len(start)))
    return np.clip(start + noise, env.interface.layout.low, env.interface.layout.high)


def _half_cheetah() -> gymnasium.Env[Any, Any]:
    return gymnasium.make("HalfCheetah-v5")


def _asset(name: str) -> Path:
    """A model that Gymnasium ships."""
    return Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets" / f"{name}.xml"

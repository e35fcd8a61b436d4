"""The whole measurement of policy evaluation."""

import time
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

from urlab.cameras.gl_thread import shared_gl
from urlab.cli.bench.evaluation.plan import EvalPlan
from urlab.cli.bench.evaluation.results import EvalResult, StepsResult
from urlab.cli.bench.evaluation.stepping import measure_steps
from urlab.cli.bench.evaluation.verdicts import judge_eval
from urlab.cli.bench.evaluation.whole import chosen_tasks, measure_whole
from urlab.cli.bench.machine import describe_machine, load
from urlab.cli.bench.progress import Watcher
from urlab.cli.bench.results import Machine
from urlab.cli.bench.spawn import terminated_like_interrupted
from urlab.errors import NoViewport
from urlab.evaluation.http import app  # noqa: F401 - asked for here to be able to say what is missing
from urlab.evaluation.runs.run_info import renderer

_LIBRARIES = ("fastapi", "uvicorn", "uvloop", "httptools")
"""The last two are quicker parts for uvicorn, which may be there or not."""


def run_eval(plan: EvalPlan, watcher: Watcher) -> EvalResult:
    """Measure everything; whatever was started has ended when this returns or raises.

    Cameras are left out where nothing can be drawn.
    """
    started, begin, load_before = datetime.now(UTC), time.perf_counter(), load()
    with terminated_like_interrupted():
        kinds = (False, True) if _can_draw() else (False,)
        steps = [_steps(plan, scene, watcher, cameras=cameras) for cameras in kinds for scene in plan.scenes]
        tasks = chosen_tasks(plan)
        whole = measure_whole(plan, tasks, watcher.part("oracles", len(tasks) * plan.episodes))
    verdicts = judge_eval(steps, whole)
    return EvalResult(
        started=started.isoformat(timespec="seconds"),
        duration_s=time.perf_counter() - begin,
        plan=asdict(plan),
        machine=_machine(load_before),
        renderer=renderer(),
        steps=steps,
        whole=whole,
        verdicts=verdicts,
        passed=all(one.passed for one in verdicts),
    )


def _can_draw() -> bool:
    try:
        shared_gl().gl_name()
    except NoViewport:
        return False
    return True


def _steps(plan: EvalPlan, scene: str, watcher: Watcher, *, cameras: bool) -> StepsResult:
    name = f"{scene}, cameras" if cameras else scene
    return measure_steps(plan, scene, watcher.part(name, plan.rounds + 1), cameras=cameras)


def _machine(load_before: float) -> Machine:
    machine = describe_machine(load_before)
    machine.versions |= {name: _version(name) for name in _LIBRARIES}
    return machine


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"

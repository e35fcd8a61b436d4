"""The whole measurement of the bridge, scene by scene."""

import time
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version

from urlab.cli.bench.machine import describe_machine, load
from urlab.cli.bench.progress import Watcher
from urlab.cli.bench.raw import connect
from urlab.cli.bench.results import Machine
from urlab.cli.bench.ros2.loads import measure_loads
from urlab.cli.bench.ros2.message_costs import measure_decoding, measure_messages
from urlab.cli.bench.ros2.plan import LOADS, Ros2Plan, scene_targets
from urlab.cli.bench.ros2.processes import free_domain, only_here
from urlab.cli.bench.ros2.results import Ros2Result, Ros2Scene
from urlab.cli.bench.ros2.topics import scene_sources
from urlab.cli.bench.ros2.verdicts import judge_ros2
from urlab.cli.bench.spawn import serving, terminated_like_interrupted
from urlab.cli.bench.stepping import Tick
from urlab.cli.bench.timing import summarize

_LIBRARIES = ("cyclonedds", "rosbags")


def run_ros2(plan: Ros2Plan, watcher: Watcher) -> Ros2Result:
    """Measure everything; whatever was started has ended when this returns or raises."""
    started, begin, load_before = datetime.now(UTC), time.perf_counter(), load()
    with terminated_like_interrupted(), only_here():
        scenes = [_measure(plan, scene, watcher.part(scene, len(LOADS) + 1)) for scene in plan.scenes]
    verdicts = judge_ros2(scenes)
    return Ros2Result(
        started=started.isoformat(timespec="seconds"),
        duration_s=time.perf_counter() - begin,
        plan=asdict(plan),
        machine=_machine(load_before),
        scenes=scenes,
        verdicts=verdicts,
        passed=all(one.passed for one in verdicts),
    )


def _measure(plan: Ros2Plan, scene: str, tick: Tick) -> Ros2Scene:
    """The loads with physics running, messages with physics paused."""
    domain = free_domain()
    with serving([*scene_targets(scene), "--step-mode", "live"]) as server:
        with scene_sources(server.step_endpoint) as sources:
            loads = measure_loads(plan, server, sources, domain, tick)
            tick("messages")
            with connect(server.step_endpoint, "live") as driver:
                driver.runtime.set_paused(True)
            return Ros2Scene(
                scene=scene,
                physics_hz=sources.physics_hz,
                loads=loads,
                decode=summarize(measure_decoding(plan, sources)),
                messages=measure_messages(plan, sources, domain),
            )


def _machine(load_before: float) -> Machine:
    machine = describe_machine(load_before)
    machine.versions |= {name: version(name) for name in _LIBRARIES}
    return machine

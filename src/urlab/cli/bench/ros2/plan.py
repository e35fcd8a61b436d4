"""What is measured of the bridge, and how much of it."""

from dataclasses import dataclass, replace

from urlab.cli.bench.plan import SCENES

STATES = ("clock", "joint_states", "tf")
PICTURE = "image"
LOADS: dict[str, tuple[str, ...]] = {
    "nothing": (),
    "states": STATES,
    "pictures": (*STATES, PICTURE),
    "stalled": (*STATES, PICTURE),
}
"""Load -> what is subscribed to. `stalled` has the same, and another process that subscribed too and hangs."""

LOAD_TITLES = {
    "nothing": "nobody subscribed",
    "states": "states",
    "pictures": "states and 640x480 image",
    "stalled": "the same, and a process that hangs",
}
ROS2_SCENES = ("arm", "quadruped")
"""Scenes with one robot and a camera of 640x480."""


@dataclass(frozen=True, slots=True)
class Ros2Plan:
    """Amounts. Every load is watched for ``watched_s``.

    Each kind of message is made and sent in ``rounds`` blocks of ``samples``, each after ``warm_up`` that are not
    timed, in turns of ``turn`` with the bytes of such a message sent as they are.
    """

    scenes: tuple[str, ...] = ROS2_SCENES
    watched_s: float = 10.0
    rounds: int = 5
    samples: int = 200
    warm_up: int = 20
    turn: int = 20


FULL = Ros2Plan()
QUICK = Ros2Plan(watched_s=2.0, rounds=1, samples=60, warm_up=10)


def make_ros2_plan(*, quick: bool, scenes: tuple[str, ...], rounds: int | None) -> Ros2Plan:
    """The plan for a command line; None keeps what full or quick says."""
    plan = replace(QUICK if quick else FULL, scenes=scenes)
    return replace(plan, rounds=rounds) if rounds is not None else plan


def scene_targets(scene: str) -> tuple[str, ...]:
    """What `urlab serve` is told to open."""
    return SCENES[scene]

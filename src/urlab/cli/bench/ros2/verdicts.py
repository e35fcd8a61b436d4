"""The bars of the bridge, and what passes them. All are judged per scene, with and without a process that hangs."""

from collections.abc import Sequence

from urlab.cli.bench.results import Verdict
from urlab.cli.bench.ros2.plan import LOAD_TITLES
from urlab.cli.bench.ros2.results import LoadResult, Ros2Scene

MIN_JOINTS_HZ = 195.0
MIN_PICTURES_HZ = 15.0
MIN_CLOCK_SHARE = 0.9
JUDGED = ("pictures", "stalled")


def judge_ros2(scenes: Sequence[Ros2Scene]) -> list[Verdict]:
    """Every bar."""
    return [
        verdict for scene in scenes for load in scene.loads if load.load in JUDGED for verdict in _rates(scene, load)
    ]


def _rates(scene: Ros2Scene, load: LoadResult) -> list[Verdict]:
    bars = {
        "joint_states": MIN_JOINTS_HZ,
        "image": MIN_PICTURES_HZ,
        "clock": MIN_CLOCK_SHARE * scene.physics_hz,
    }
    return [_rate(scene.scene, load, word, bar_hz) for word, bar_hz in bars.items()]


def _rate(scene: str, load: LoadResult, word: str, bar_hz: float) -> Verdict:
    found = load.rates[word]
    return Verdict(
        name=f"{scene}, {LOAD_TITLES[load.load]}: rate of {found.topic}",
        bar=f">= {bar_hz:g} Hz",
        value=found.rate_hz,
        shown=f"{found.rate_hz:.1f} Hz (silent for {found.silence_ms:.0f} ms at most)",
        passed=found.rate_hz >= bar_hz,
    )

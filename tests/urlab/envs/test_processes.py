"""Single environments in processes of their own, and their videos."""

from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

MAKE = partial(gymnasium.make, "urlab.envs:urlab/PandaReach-v0")


def trajectory(env: Any) -> list[Any]:
    with closing(env):
        first = env.reset(seed=5)[0]
        env.action_space.seed(1)
        return [first.tolist(), *(env.step(env.action_space.sample())[0].tolist() for _ in range(2))]


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning")
@pytest.mark.parametrize("context", ["fork", "forkserver", "spawn"])
def test_single_environments_run_in_processes_however_they_are_started(context: str) -> None:
    expected = trajectory(SyncVectorEnv([MAKE, MAKE]))
    assert trajectory(AsyncVectorEnv([MAKE, MAKE], context=context)) == expected


def test_videos_are_recorded_by_gymnasiums_wrapper(tmp_path: Path) -> None:
    pytest.importorskip("moviepy")
    env = gymnasium.make("urlab/PandaReach-v0", render_mode="rgb_array", max_episode_steps=3)
    with closing(gymnasium.wrappers.RecordVideo(env, str(tmp_path / "videos"))) as recorded:
        recorded.reset(seed=1)
        while not recorded.step(recorded.action_space.sample())[3]:
            pass
    assert [one.name for one in (tmp_path / "videos").iterdir()] == ["rl-video-episode-0.mp4"]

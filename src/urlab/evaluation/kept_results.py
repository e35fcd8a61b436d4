"""What a run keeps by itself: the results of a server that may be far away, and only the videos that are wanted."""

from collections.abc import Iterable
from pathlib import Path

from urlab.evaluation.driver import EpisodeDone
from urlab.evaluation.results import RESULT_INFO, write_json

CLIENT_RESULT = "result.json"


def keep_result(folder: Path, done: EpisodeDone) -> None:
    """Write an episode's result into the run's folder, unless the server has written a better one there."""
    episode = folder / done.task / done.seed
    if not (episode / RESULT_INFO).exists():
        numbers = {"score": done.score, "sr": float(done.success)}
        write_json(episode / CLIENT_RESULT, {**numbers, "steps": done.steps, "termination_reason": done.reason})


def remove_videos(folder: Path, solved: Iterable[EpisodeDone]) -> None:
    """Remove the videos of some episodes."""
    for done in solved:
        for video in (folder / done.task / done.seed).glob("*.mp4"):
            video.unlink(missing_ok=True)

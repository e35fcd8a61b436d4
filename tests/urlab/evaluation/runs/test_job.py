"""Who runs which episode, and what the folder of a run says."""

import json
from pathlib import Path

import pytest

from urlab.evaluation.episode_result import EpisodeResult
from urlab.evaluation.errors import BadJob
from urlab.evaluation.runs.job import EpisodeKey, Job
from urlab.evaluation.runs.results import RunFolder, check_run_id, new_run_id

A0, A1, B0 = EpisodeKey("a", 0), EpisodeKey("a", 1), EpisodeKey("b", 0)
WON = EpisodeResult("a", "000", 1.0, True, 60, "success")
HALF = EpisodeResult("a", "001", 0.5, False, 600, "step_limit", nested=[[[0.5]]])


def test_episodes_are_handed_out_in_order_and_once() -> None:
    job = Job("r", [A0, A1, B0], {})
    assert [job.take("0"), job.take("0"), job.take("1")] == [A0, A0, A1]
    job.finish("0", WON)
    assert [job.take("0"), job.take("2")] == [B0, None]
    job.give_back("1")
    assert job.take("2") == A1


def test_scores_are_means_and_progress_is_in_the_keys() -> None:
    job = Job("r", [A0, A1, B0], {A0: WON})
    assert job.progress() == {"*(1/2)a": {"score": 1.0, "sr": 1.0}, "*b": {"score": 0.0, "sr": 0.0}}
    job.take("0")
    job.finish("0", HALF)
    assert job.scores() == {"a": {"score": 0.75, "sr": 0.5}}
    assert job.progress().keys() == {"(2/2)a", "*b"}


@pytest.mark.parametrize(
    ("finished", "workers", "word"),
    [({}, [], "idle"), ({}, ["0"], "running"), ({A0: WON}, [], "incomplete"), ({A0: WON, A1: HALF}, ["0"], "complete")],
)
def test_status_is_one_of_four_words(finished: dict[EpisodeKey, EpisodeResult], workers: list[str], word: str) -> None:
    assert Job("r", [A0, A1], finished).status(workers)["status"] == word


def test_a_finished_episode_is_found_again_and_a_broken_file_is_not(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path, "r")
    info = {"score": 0.5, "success_rate": 0, "log_info": {"metric_score": [[[0.5]]]}}
    texts = {
        "000": '{"score": ',
        "001": json.dumps({**info, "termination_reason": "step_limit", "steps": 600}),
        "002": '{"score": "much", "success_rate": 1}',
    }
    for seed, text in texts.items():
        folder.episode("a", seed).mkdir(parents=True)
        (folder.episode("a", seed) / "result_info.json").write_text(text)
    assert [folder.read_finished("a", f"00{seed}") for seed in range(4)] == [None, HALF, None, None]


@pytest.mark.parametrize("run_id", ["", "/x", "..", "a/../b", "a//b", "./a", "a/", "a\\b", "a\nb", " a", "x" * 300])
def test_a_run_id_that_leads_elsewhere_is_refused(run_id: str) -> None:
    with pytest.raises(BadJob, match="cannot name a folder"):
        check_run_id(run_id)


def test_run_ids_may_have_parts_and_are_made_from_the_time() -> None:
    assert check_run_id("team/run-1") == "team/run-1"
    assert check_run_id(new_run_id()).count("_") == 4

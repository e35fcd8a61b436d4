"""Who runs which episode, and what the folder of a run says."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from urlab.errors import PathNotWritable
from urlab.evaluation.episode_result import EpisodeResult
from urlab.evaluation.errors import BadJob
from urlab.evaluation.runs.job import EpisodeKey, Job, JobFactory
from urlab.evaluation.runs.results import RunFolder, check_run_id, new_run_id
from urlab.evaluation.settings import MetricShape, ServerSettings

A0, A1, B0 = EpisodeKey("a", 0), EpisodeKey("a", 1), EpisodeKey("b", 0)
WON = EpisodeResult("a", "000", 1.0, True, 60, "success")
HALF = EpisodeResult("a", "001", 0.5, False, 600, "step_limit", nested=[[[0.5]]])


@pytest.fixture
def task_file(tmp_path: Path) -> Path:
    """A task of one's own, a copy."""
    return Path(shutil.copy(Path(__file__).parents[1] / "cube_on_plate.toml", tmp_path / "mine.toml"))


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


def test_a_server_without_options_has_a_job_for_the_robot_of_a_client_without_options(tmp_path: Path) -> None:
    run = JobFactory(ServerSettings(results=tmp_path)).first_run()
    assert {task.embodiment for task in run.tasks.values()} == {"franka_panda"}
    assert len(run.tasks) > 1


def test_several_robots_are_several_jobs_one_after_the_other_unless_one_is_wanted(tmp_path: Path) -> None:
    factory = JobFactory(ServerSettings(results=tmp_path, tasks=["all"], episodes=1))
    run, robots = factory.first_run(), []
    for _ in range(4):
        robots.append({task.embodiment for task in run.tasks.values()})
        following = factory.next_run(run)
        assert following is not None
        run = following
    assert robots == [{"franka_panda"}, {"franka_robotiq"}, {"aloha"}, {"franka_panda"}]
    whole = JobFactory(ServerSettings(results=tmp_path, tasks=["all"], one_job=True)).first_run()
    assert len({task.embodiment for task in whole.tasks.values()}) == 3


def test_a_run_that_was_complete_when_the_server_started_is_followed_by_none(tmp_path: Path) -> None:
    settings = ServerSettings(results=tmp_path, tasks=["panda_cube_on_plate"], episodes=1, run_id="old")
    folder = RunFolder(tmp_path, "old").episode("panda_cube_on_plate", "000")
    folder.mkdir(parents=True)
    (folder / "result_info.json").write_text('{"score": 1.0, "success_rate": 1}')
    factory = JobFactory(settings)
    run = factory.first_run()
    assert run.job.is_complete
    assert factory.next_run(run) is None


def test_the_final_metric_has_three_shapes_and_marks_what_is_not_complete() -> None:
    job = Job("r", [A0, A1, B0], {A0: WON, A1: HALF})
    means = {"score": 0.75, "sr": 0.5}
    nothing = {"score": 0.0, "sr": 0.0}
    assert job.metric(MetricShape.RATES) == {"a": 0.5, "*b": 0.0}
    assert job.metric(MetricShape.COUNTED) == {"(2/2)a": means, "*b": nothing}
    assert job.metric(MetricShape.NAMED) == {"a": means, "*b": nothing}
    partly = Job("r", [A0, A1], {A0: WON})
    assert partly.metric(MetricShape.RATES) == {"*(1/2)a": 1.0}
    assert partly.metric(MetricShape.NAMED).keys() == {"*(1/2)a"}


def write_finished(results: Path, run_id: str, task: str) -> None:
    folder = RunFolder(results, run_id).episode(task, "000")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "result_info.json").write_text('{"score": 1.0, "success_rate": 1}')


def test_a_run_does_not_go_on_with_a_task_that_was_changed(tmp_path: Path, task_file: Path) -> None:
    def begin(run_id: str = "old") -> None:
        JobFactory(ServerSettings(results=tmp_path, tasks=[str(task_file)], cameras=False, run_id=run_id)).first_run()

    begin()
    task_file.write_text(task_file.read_text().replace("num_steps = 12", "num_steps = 15"))
    begin()
    write_finished(tmp_path, "old", task_file.stem)
    task_file.write_text("# a comment changes nothing\n" + task_file.read_text())
    begin()
    task_file.write_text(task_file.read_text().replace("num_steps = 15", "num_steps = 20"))
    with pytest.raises(BadJob, match=f"run old has results of {task_file.stem} as it was before .* another --run-id"):
        begin()
    begin("new")


def test_a_run_does_not_go_on_with_the_pictures_of_another_renderer(tmp_path: Path) -> None:
    task = "panda_cube_on_plate"
    settings = ServerSettings(results=tmp_path, tasks=[task], cameras=True, run_id="old")
    JobFactory(settings).first_run()
    write_finished(tmp_path, "old", task)
    JobFactory(settings).first_run()
    description = RunFolder(tmp_path, "old").path / "job.json"
    job = json.loads(description.read_text())
    description.write_text(json.dumps({**job, "renderer": "another one"}))
    with pytest.raises(BadJob, match="pictures by another one, render profile fast, and these would be by"):
        JobFactory(settings).first_run()
    JobFactory(replace(settings, cameras=False)).first_run()


def test_attempts_are_not_written_through_a_link(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_text("mine")
    folder = RunFolder(tmp_path, "run")
    folder.path.mkdir(parents=True)
    (folder.path / "attempts.jsonl").symlink_to(kept)
    with pytest.raises(PathNotWritable):
        folder.add_attempt({"task": "short"})
    assert kept.read_text() == "mine"

"""Reports of results folders that the tests write."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from urlab.evaluation.episode_result import Retries
from urlab.evaluation.report import RunFolderError, UnlikeRuns, document, page, read_run, summarise, write_report
from urlab.evaluation.report.page import MAX_EMBEDDED_BYTES
from urlab.evaluation.report.statistics import wilson

VOID = {"meta"}
WriteRun = Callable[..., Path]


class Checker(HTMLParser):
    """Sees that elements are closed in order, and keeps the text, the tags and the addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [value or "" for key, value in attrs if key in ("src", "href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def checked(text: str) -> Checker:
    checker = Checker()
    checker.feed(text)
    checker.close()
    assert checker.open == []
    return checker


def write_episode(folder: Path, score: float, reason: str, steps: int, videos: dict[str, int]) -> None:
    folder.mkdir(parents=True)
    info = {
        "score": score,
        "success_rate": 1.0 if score == 1 else 0.0,
        "termination_reason": reason,
        "steps": steps,
        "log_info": {
            "episode_start_time": "2026-03-01T10:00:00+01:00",
            "episode_end_time": "2026-03-01T10:00:12.500000+01:00",
            "metric_score": [[[score]]],
        },
    }
    (folder / "result_info.json").write_text(json.dumps(info))
    for camera, size in videos.items():
        (folder / f"{camera}.mp4").write_bytes(b"v" * size)


@pytest.fixture
def write_run(tmp_path: Path) -> WriteRun:
    """Write a run: scores of seeds for each task."""

    def write(name: str, scores: dict[str, list[float]], videos: dict[str, int] | None = None, **info: Any) -> Path:
        folder = tmp_path / "results" / "urlab" / name
        for task, values in scores.items():
            for seed, score in enumerate(values):
                reason = "success" if score == 1 else "step_limit"
                write_episode(folder / task / f"{seed:03d}", score, reason, 100 + seed, videos or {})
        (folder / "run_info.json").write_text(json.dumps({"run_id": name, **info}))
        (folder / "result.json").write_text("{}")
        return folder

    return write


def test_a_run_is_read_as_it_was_written(write_run: WriteRun):
    folder = write_run("first", {"stack": [1.0, 0.5], "sort": [0.0]}, {"obs_camera": 3}, policy="random")
    run = read_run(folder)
    assert (run.name, run.policy) == ("first", "random")
    assert [one.key for one in run.episodes] == [("sort", "000"), ("stack", "000"), ("stack", "001")]
    last = run.episodes[-1]
    assert (last.score, last.success, last.steps, last.reason, last.seconds) == (0.5, False, 101, "step_limit", 12.5)
    assert last.videos == {"obs_camera": folder / "stack" / "001" / "obs_camera.mp4"}


def test_the_results_of_others_are_read_too(tmp_path: Path):
    client, old = tmp_path / "ebench" / "pick" / "004", tmp_path / "pick" / "001_success"
    client.mkdir(parents=True)
    old.mkdir(parents=True)
    (client / "result.json").write_text('{"score": 0.25, "sr": 0.0}')
    (old / "sr_info.json").write_text('{"success_rate": 1}')
    first, second = read_run(tmp_path).episodes
    assert (first.key, first.score, first.success) == (("ebench/pick", "004"), 0.25, False)
    assert (second.key, second.score, second.success, second.reason) == (("pick", "001"), 1.0, True, None)


def test_an_episode_that_is_half_written_does_not_count(write_run: WriteRun):
    folder = write_run("first", {"stack": [1.0, 1.0]})
    (folder / "stack" / "001" / "result_info.json").write_text('{"score": 1.')
    assert len(read_run(folder).episodes) == 1


def test_a_folder_without_results_is_told_with_the_runs_below_it(write_run: WriteRun, tmp_path: Path):
    write_run("first", {"stack": [1.0]})
    with pytest.raises(RunFolderError, match=r"is not one run; runs below it are: .*urlab/first"):
        read_run(tmp_path / "results")
    with pytest.raises(RunFolderError, match="there is no folder"):
        read_run(tmp_path / "nowhere")


def test_a_name_that_no_folder_can_have_is_told_as_a_folder_that_is_not_there(tmp_path: Path):
    with pytest.raises(RunFolderError, match="there is no folder"):
        read_run(tmp_path / ("e" * 300))


def test_the_numbers_are_those_of_the_episodes(write_run: WriteRun):
    run = read_run(write_run("first", {"stack": [1.0, 1.0, 0.5, 0.0], "sort": [1.0]}))
    found = summarise(run)
    assert (found.overall.successes, found.overall.episodes) == (3, 5)
    assert found.overall.mean_score == pytest.approx(0.7)
    assert found.overall.interval == wilson(3, 5)
    assert [(one.task, one.rate) for one in found.tasks] == [("sort", 1.0), ("stack", 0.5)]
    assert found.tasks[1].reasons == {"success": 2, "step_limit": 2}
    numbers = document([run])["runs"][0]
    assert numbers["tasks"]["stack"]["success_rate"] == 0.5
    assert json.loads(json.dumps(numbers, allow_nan=False)) == numbers


def test_a_page_says_everything_and_fetches_nothing(write_run: WriteRun, tmp_path: Path):
    run = read_run(
        write_run(
            "first",
            {"stack <b>": [1.0, 0.5], "sort": [0.0]},
            policy="mine:Policy",
            command="urlab eval run --policy mine:Policy",
            renderer="llvmpipe",
            machine="a small computer",
            versions={"mujoco": "4.0.0"},
            seeds="0 to 1",
        )
    )
    target = tmp_path / "out.html"
    write_report([run], target)
    text = target.read_text()
    seen = checked(text)
    assert not {"script", "link", "img", "iframe"} & set(seen.tags)
    assert seen.addresses == []
    assert "http" not in text
    assert "@import" not in text
    assert "url(" not in text
    for words in ("stack <b>", "mine:Policy", "llvmpipe", "a small computer", "mujoco 4.0.0", "0 to 1", "step_limit"):
        assert words in seen.text
    assert "1 of 3 episodes solved" in seen.text
    assert "Comparison" not in seen.text
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text
    assert 'name="viewport"' in text


def test_a_run_that_is_not_finished_says_so(write_run: WriteRun, tmp_path: Path):
    folder = write_run("first", {"stack": [1.0, 0.5]})
    assert "incomplete" not in page([read_run(folder)], tmp_path)
    (folder / "job.json").write_text(json.dumps({"tasks": {"stack": "aloha", "sort": "aloha"}, "seeds": [0, 1, 2]}))
    assert "incomplete: 4 of 6 episodes have no result" in page([read_run(folder)], tmp_path)


def test_bars_and_bands_are_drawn_to_scale(write_run: WriteRun, tmp_path: Path):
    run = read_run(write_run("first", {"stack": [1.0, 1.0, 1.0, 0.6]}))
    text = page([run], tmp_path)
    svg = text[text.index("<svg") : text.index("</svg>")]
    interval = wilson(3, 4)
    boxes = re.findall(r'<rect x="([\d.]+)" y="\d+" width="([\d.]+)" height="\d+" class="(\w+)">', svg)
    assert ("0.0", "750.0", "bar") in boxes
    band = (f"{1000 * interval.low:.1f}", f"{1000 * (interval.high - interval.low):.1f}", "band")
    assert band in boxes
    assert '<line x1="900.0" x2="900.0"' in svg


def test_videos_of_solved_episodes_come_after_those_of_failures(write_run: WriteRun, tmp_path: Path):
    run = read_run(write_run("all", {"stack": [1.0, 0.0, 1.0]}, {"obs_camera": 100}))
    text = page([run], tmp_path)
    assert checked(text).tags.count("video") == 3
    failures, solved = text.partition("<h2>Solved</h2>")[::2]
    assert (failures.count("<video"), solved.count("<video")) == (1, 2)
    assert [seed in solved for seed in ("stack 000", "stack 001", "stack 002")] == [True, False, True]
    won = read_run(write_run("won", {"stack": [1.0]}, {"obs_camera": 100}))
    seen = checked(page([won], tmp_path))
    assert (seen.tags.count("video"), "Failures" in seen.text) == (1, False)


def test_small_videos_are_in_the_page_and_large_ones_beside_it(write_run: WriteRun, tmp_path: Path):
    small = read_run(write_run("small", {"stack": [0.0]}, {"obs_camera": 100, "realsense": 100}))
    large = read_run(write_run("large one", {"stack": [0.0]}, {"obs_camera": MAX_EMBEDDED_BYTES + 1}))
    target = tmp_path / "reports" / "out.html"
    write_report([small, large], target)
    seen = checked(target.read_text())
    assert seen.tags.count("video") == 2
    embedded, wrist, linked = seen.addresses
    assert embedded.startswith("data:video/mp4;base64,dnZ2")
    assert wrist == "../results/urlab/small/stack/000/realsense.mp4"
    assert linked == "../results/urlab/large%20one/stack/000/obs_camera.mp4"


def test_runs_are_compared_with_the_first(write_run: WriteRun, tmp_path: Path):
    base = read_run(write_run("base", {"stack": [0.0] * 8, "sort": [1.0]}))
    better = read_run(write_run("better", {"stack": [1.0] * 8, "sort": [1.0]}))
    other = read_run(write_run("other", {"another": [1.0]}))
    seen = checked(page([base, better, other], tmp_path))
    assert "better solves 8 more of the 9 common episodes than base; p = 0.00781: unlikely to be chance." in seen.text
    assert "8 episodes with another result" in seen.text
    assert "base and other have no episode in common" in seen.text
    first, second = document([base, better, other])["comparisons"]
    assert (first["pairs"], first["only_second"], first["mcnemar_exact_p"]) == (9, 8, 2 / 2**8)
    assert (second["pairs"], second["score_bootstrap_95"]) == (0, None)


def test_runs_of_different_policies_are_called_by_them(write_run: WriteRun, tmp_path: Path):
    runs = [
        read_run(write_run(f"2026-03-0{day}", {"stack": [score]}, policy=policy))
        for day, (policy, score) in enumerate([("oracle", 1.0), ("random", 0.0)])
    ]
    seen = checked(page(runs, tmp_path)).text
    assert "oracle solves 1 more of the 1 common episodes than random" in seen
    assert "2026-03-00" in seen, "the run's own name is among the conditions"
    again = checked(page([runs[0], runs[0]], tmp_path)).text
    assert "2026-03-00 (2) and 2026-03-00 (1) solve equally many" in again


HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)>&amp;'


def test_nothing_that_others_wrote_becomes_markup(write_run: WriteRun, tmp_path: Path):
    """Names of policies, runs, tasks, cameras and reasons come from files that anybody may have written."""
    task = HOSTILE.replace("/", "_")
    folder = write_run(
        "first",
        {task: [1.0, 0.0]},
        {task: 5},
        policy=HOSTILE,
        command=f"urlab eval run --policy {HOSTILE}",
        tasks={HOSTILE: HOSTILE},
        versions={HOSTILE: HOSTILE},
        machine=HOSTILE,
    )
    (folder / "run_info.json").write_text(json.dumps({**read_run(folder).info, "run_id": HOSTILE}))
    write_more(folder, termination_reason=HOSTILE, instruction=HOSTILE)
    run = read_run(folder)
    seen = checked(page([run, replace(run, name="other")], tmp_path))
    assert not {"script", "img"} & set(seen.tags)
    assert seen.text.count(HOSTILE) >= 10
    assert all(one.startswith(("data:video/mp4;base64,", "results/urlab/first/")) for one in seen.addresses)


@pytest.mark.parametrize(
    "wrong",
    [{"score": "high"}, {"score": None}, {"success_rate": [1]}, {"steps": "many"}, {"score": float("nan")}],
    ids=str,
)
def test_an_episode_whose_numbers_are_none_is_left_out(write_run: WriteRun, wrong: dict[str, Any]):
    folder = write_run("first", {"stack": [1.0, 1.0]})
    write_more(folder / "stack" / "001", **wrong)
    assert [one.seed for one in read_run(folder).episodes] == ["000"]


def write_more(folder: Path, **more: Any) -> None:
    """Write more into the results of a run's episodes."""
    for path in folder.rglob("result_info.json"):
        path.write_text(json.dumps({**json.loads(path.read_text()), **more}))


def test_what_the_robot_was_told_and_how_long_goals_had_to_last_are_told(write_run: WriteRun, tmp_path: Path):
    folder = write_run("first", {"stack": [0.0]}, {"obs_camera": 5})
    write_more(folder, instruction="Stack the red cube.", hold_steps=50)
    seen = checked(page([read_run(folder)], tmp_path)).text
    assert seen.count("Stack the red cube.") == 2, "under the film and in the table"
    assert "more than 50 control steps" in seen


def test_runs_that_were_not_judged_alike_say_so(write_run: WriteRun, tmp_path: Path):
    folders = [write_run(name, {"stack": [1.0]}) for name in ("a", "b", "c")]
    for folder, hold_steps in zip(folders, (50, 100, 50), strict=True):
        write_more(folder, hold_steps=hold_steps)
    a, b, c = map(read_run, folders)
    words = "Not judged alike: subgoals had to last 50 control steps in a, 100 in b."
    assert words in page([a, b], tmp_path)
    assert "Not judged alike" not in page([a, c], tmp_path)


def test_runs_of_a_task_that_was_changed_say_so(write_run: WriteRun, tmp_path: Path):
    folders = {name: write_run(name, {"stack": [1.0], "sort": [1.0]}) for name in ("a", "b", "c")}
    for name, digest in (("a", "1"), ("b", "2"), ("c", "1")):
        (folders[name] / "job.json").write_text(json.dumps({"task_digests": {"stack": digest, "sort": "7"}}))
    a, b, c = map(read_run, folders.values())
    assert "Not the same tasks: stack was changed between a and b." in page([a, b], tmp_path)
    assert "Not the same tasks" not in page([a, c], tmp_path)


def test_a_long_reason_of_an_ending_wraps_and_leaves_the_other_columns_in_sight(write_run: WriteRun, tmp_path: Path):
    folder = write_run("first", {"stack": [0.0]})
    write_more(folder, termination_reason="policy_failed", termination_detail="the policy's act() failed " * 8)
    text = page([read_run(folder)], tmp_path)
    assert '<td class="why">policy_failed: the policy' in text
    assert ".episodes td:not(.why), .episodes th { white-space: nowrap; }" in text


def test_many_episodes_are_folded_and_few_are_not(write_run: WriteRun, tmp_path: Path):
    few, many = (read_run(write_run(name, {"stack": [1.0] * count})) for name, count in (("few", 12), ("many", 13)))
    assert "<details open>" in page([few], tmp_path)
    assert "<details open>" not in page([many], tmp_path)


def test_tasks_are_told_by_robot_and_a_servers_run_with_its_machine(write_run: WriteRun, tmp_path: Path):
    folder = write_run("first", {"stack": [1.0]})
    job = {"tasks": {"stack": "aloha", "sort": "franka_panda", "tower": "aloha"}, "seeds": [0], "platform": "Linux-6"}
    (folder / "job.json").write_text(json.dumps(job))
    seen = checked(page([read_run(folder)], tmp_path)).text
    assert "aloha: stack, tower; franka_panda: sort" in seen
    assert "machineLinux-6" in seen


def test_a_small_lead_is_called_what_it_is(write_run: WriteRun, tmp_path: Path):
    runs = [read_run(write_run("a", {"stack": [1.0, 0.0]})), read_run(write_run("b", {"stack": [0.0, 0.0]}))]
    assert "a solves 1 more of the 2 common episodes than b; p = 1: this may well be chance." in page(runs, tmp_path)


DRAWN = {"renderer": "llvmpipe (LLVM 15)", "render_profile": "fast"}


@pytest.mark.parametrize("other", [{"renderer": "NVIDIA A100"}, {"render_profile": "quality"}])
def test_runs_whose_pictures_were_drawn_differently_are_not_compared(
    write_run: WriteRun, tmp_path: Path, other: dict[str, str]
):
    runs = [
        read_run(write_run("here", {"stack": [1.0]}, policy="one", **DRAWN)),
        read_run(write_run("there", {"stack": [0.0]}, policy="two", **{**DRAWN, **other})),
    ]
    words = r"here: llvmpipe \(LLVM 15\), render profile fast; there: .*--force"
    with pytest.raises(UnlikeRuns, match=words):
        write_report(runs, tmp_path / "out.html")
    with pytest.raises(UnlikeRuns, match=words):
        document(runs)
    assert not (tmp_path / "out.html").exists()
    write_report(runs, tmp_path / "out.html", force=True)
    assert "Not drawn alike: the pictures of one are by llvmpipe" in checked((tmp_path / "out.html").read_text()).text
    assert len(document(runs, force=True)["comparisons"]) == 1


def test_runs_that_saw_alike_or_saw_nothing_are_compared(write_run: WriteRun):
    first = read_run(write_run("first", {"stack": [1.0]}, camera_sizes={"stack": {"obs_camera": "64 x 48"}}, **DRAWN))
    assert "obs_camera 64 x 48" in page([first], first.folder)
    same = read_run(write_run("same", {"stack": [1.0]}, **DRAWN))
    blind = read_run(write_run("blind", {"stack": [1.0]}, renderer="none, as there are no cameras"))
    foreign = read_run(write_run("foreign", {"stack": [1.0]}))
    assert len(document([first, same, blind, foreign])["comparisons"]) == 3


def test_cards_of_other_episodes_come_with_a_warning(write_run: WriteRun, tmp_path: Path):
    many = read_run(write_run("many", {"stack": [1.0, 0.0, 0.0], "sort": [0.0]}, policy="one"))
    few = read_run(write_run("few", {"stack": [1.0, 1.0]}, policy="two"))
    text = checked(page([many, few], tmp_path)).text
    assert "not of the same episodes: one has 4, two has 2. Of the 2 that all have, solved are: one 1, two 2." in text
    assert "not of the same episodes" not in page([many, many], tmp_path)
    none = read_run(write_run("none", {"pile": [1.0]}, policy="three"))
    assert "They have none in common." in checked(page([few, none], tmp_path)).text


def test_the_score_of_doing_nothing_is_told(write_run: WriteRun, tmp_path: Path):
    folder = write_run("first", {"stack": [1.0, 0.2], "sort": [0.0]}, policy="one")
    for path, floor in (("stack/000", 0.2), ("stack/001", 0.2), ("sort/000", 0.05)):
        info = folder / path / "result_info.json"
        info.write_text(json.dumps({**json.loads(info.read_text()), "floor": floor}))
    run = read_run(folder)
    assert document([run])["runs"][0]["tasks"]["stack"]["floor"] == pytest.approx(0.2)
    text = checked(page([run], tmp_path)).text
    assert "mean score 0.40 (a robot that never moves: 0.15)" in text
    assert "score 0.60 (standing still 0.20)" in text


def test_attempts_without_a_result_are_counted_where_the_answer_is(write_run: WriteRun, tmp_path: Path):
    run = read_run(write_run("first", {"stack": [1.0, 0.0]}, policy="one"))
    first, second = run.episodes
    again = replace(
        run,
        episodes=(
            replace(first, retries=Retries(resets=5, steps=500)),
            replace(second, retries=Retries(worker_deaths=1), reason="policy_failed", detail="out of memory"),
        ),
    )
    text = checked(page([again], tmp_path)).text
    assert "6 attempts without a result: 5 resets, 1 worker death" in text
    assert "policy_failed: out of memory" in text
    assert "without a result" not in page([run], tmp_path)

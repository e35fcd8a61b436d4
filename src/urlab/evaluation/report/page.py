"""The report of one run or several: one HTML file, no scripts, nothing fetched from anywhere."""

import base64
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import quote

from urlab.evaluation.episode_result import EpisodeResult
from urlab.evaluation.report.charts import (
    COLOURS,
    Content,
    Markup,
    join,
    key_of_the_chart,
    percent,
    rate_bar,
    share_bar,
    tag,
)
from urlab.evaluation.report.statistics import (
    Comparison,
    RunSummary,
    TaskSummary,
    compare_runs,
    refuse_unlike,
    summarise,
)
from urlab.evaluation.runs.results import Run, named_apart
from urlab.files import replacing

_METHODS = (
    "An episode is solved when its score is 1; the score is the mean over the goal's stages: credit for parts. "
    "Intervals of success are Wilson score intervals at 95 %. Over all tasks the episodes are pooled: they speak for "
    "these tasks, not for others. Runs are compared on the episodes of the same task and seed: success by the exact "
    "McNemar test (two-sided sign test on the episodes that only one run solved), scores by a paired bootstrap of the "
    "mean difference (10,000 resamples, fixed seed). A robot that never moves has a score too, where part of a goal "
    "holds from the start: what counts is what is above that."
)
_CONDITIONS = (
    ("started", "started"),
    ("tasks", "tasks"),
    ("episodes", "episodes per task"),
    ("seeds", "seeds"),
    ("workers", "workers"),
    ("cameras", "cameras"),
    ("camera_sizes", "camera sizes"),
    ("renderer", "renderer"),
    ("render_profile", "render profile"),
    ("server", "server"),
    ("machine", "machine"),
    ("versions", "versions"),
)
_COLUMNS = ("seed", "result", "score", "steps", "attempts", "ended by", "took", "instruction")
_FEW_EPISODES = 12
"""A run of so many shows them all at once."""
SURE_BELOW = 0.05
_MAX_LISTED = 40
MAX_EMBEDDED_BYTES = 400_000
MAX_EMBEDDED_IN_ALL_BYTES = 12_000_000
MAX_SHOWN = 24
_NOTE = "Small videos are in this page; the others, and those of other cameras, are links into the run's folder."
_OVERVIEWS = ("obs_camera", "top_camera", "obs_camera_2")


def write_report(runs: Sequence[Run], path: Path, *, force: bool = False) -> None:
    """Write the page of one run, or of several to be compared with the first; whole or not at all.

    UnlikeRuns if their pictures were drawn differently, unless ``force``.
    """
    if not force:
        refuse_unlike(runs)
    text = page(runs, path.parent)
    with replacing(path) as file:
        file.write(text.encode("utf-8"))


def page(runs: Sequence[Run], folder: Path) -> str:
    """The page's text, for a file in ``folder``: links to videos are relative to it."""
    runs = named_apart(runs)
    summaries = [summarise(run) for run in runs]
    title = "Evaluation of " + ", ".join(dict.fromkeys(run.policy for run in runs))
    body = join(
        tag("header", tag("h1", title), tag("p", _subtitle(runs), cls="note")),
        cards(runs, summaries),
        _other_episodes(runs),
        tasks_section(summaries),
        comparison_section(runs),
        endings_section(summaries),
        videos_section(runs, folder),
        episodes_section(runs),
        conditions_section(runs),
        tag("footer", _METHODS),
    )
    style = resources.files(__package__).joinpath("style.css").read_text(encoding="utf-8")
    head = join(
        Markup('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        tag("title", title),
        tag("style", Markup(style)),
    )
    return f"<!DOCTYPE html>\n{tag('html', tag('head', head), tag('body', tag('main', body)), lang='en')}\n"


def cards(runs: Sequence[Run], summaries: Sequence[RunSummary]) -> Markup:
    """The answer, one card for each run."""
    pairs = enumerate(zip(runs, summaries, strict=True))
    return tag("div", *(_card(run, one, place) for place, (run, one) in pairs), cls="cards")


def tasks_section(summaries: Sequence[RunSummary]) -> Markup:
    """A bar for each task and run."""
    names = sorted({one.task for summary in summaries for one in summary.tasks})
    rows = [_task_rows(name, summaries) for name in names]
    return tag("section", tag("h2", "Tasks"), key_of_the_chart(), tag("div", *rows, cls="tasks"))


def comparison_section(runs: list[Run]) -> Markup:
    """Every run against the first; nothing for a single run."""
    if len(runs) < 2:
        return Markup("")
    parts = [_against(runs[0], other) for other in runs[1:]]
    return tag("section", tag("h2", "Comparison"), *parts)


def endings_section(summaries: Sequence[RunSummary]) -> Markup:
    """Why episodes ended."""
    lines: list[Markup] = []
    for place, summary in enumerate(summaries):
        for reason, count in summary.overall.reasons.items():
            share = count / summary.overall.episodes
            name = reason if len(summaries) == 1 else f"{summary.name}: {reason}"
            lines.append(_chart_line(name, share_bar(share, place), f"{count} ({percent(share)})"))
    return tag("section", tag("h2", "How episodes ended"), tag("div", *lines, cls="tasks"))


def videos_section(runs: Sequence[Run], folder: Path) -> Markup:
    """Videos of failures, and then of what was solved, where they were kept."""
    names = [run.name if len(runs) > 1 else "" for run in runs]
    recorded = [(name, one) for name, run in zip(names, runs, strict=True) for one in run.episodes if one.videos]
    videos = VideoGallery(folder)
    parts = [
        tag("section", tag("h2", title), videos.gallery(episodes))
        for title, solved in (("Failures", False), ("Solved", True))
        if (episodes := [one for one in recorded if one[1].success is solved])
    ]
    return join(*parts)


@dataclass
class VideoGallery:
    """Puts videos into a page that will lie in ``folder``, and counts what it has embedded."""

    folder: Path
    embedded_bytes: int = 0

    def gallery(self, recorded: Sequence[tuple[str, EpisodeResult]]) -> Markup:
        """A figure for each of the first episodes, which have videos; each comes with what to call its run."""
        figures = [self._figure(run, one) for run, one in recorded[:MAX_SHOWN]]
        left_out = len(recorded) - len(figures)
        more = tag("p", f"{left_out} more are in the run's folder.", cls="note") if left_out > 0 else ""
        return join(tag("p", _NOTE, cls="note"), tag("div", *figures, cls="gallery"), more)

    def _figure(self, run: str, episode: EpisodeResult) -> Markup:
        camera = next((name for name in _OVERVIEWS if name in episode.videos), next(iter(episode.videos)))
        video = tag("video", src=self._source(episode.videos[camera]), controls=True, muted=True, playsinline=True,
                    preload="metadata")  # fmt: skip
        others = [
            join(" ", tag("a", name, href=self._link(path))) for name, path in episode.videos.items() if name != camera
        ]
        caption = tag(
            "figcaption",
            tag("b", f"{run} {episode.task} {episode.seed}".strip()),
            f"{episode.reason or 'ended'}, score {episode.score:.2f}",
            tag("small", episode.instruction) if episode.instruction else "",
            tag("small", camera, *others),
        )
        return tag("figure", video, caption)

    def _source(self, path: Path) -> str:
        size = path.stat().st_size
        if size > MAX_EMBEDDED_BYTES or self.embedded_bytes + size > MAX_EMBEDDED_IN_ALL_BYTES:
            return self._link(path)
        self.embedded_bytes += size
        return f"data:video/mp4;base64,{base64.b64encode(path.read_bytes()).decode('ascii')}"

    def _link(self, path: Path) -> str:
        return quote(Path(os.path.relpath(path.resolve(), self.folder.resolve())).as_posix())


def episodes_section(runs: Sequence[Run]) -> Markup:
    """Every episode, folded by run and task."""
    parts: list[Content] = [tag("h2", "Episodes")]
    for run in runs:
        if len(runs) > 1:
            parts.append(tag("h3", run.name))
        is_open = len(run.episodes) <= _FEW_EPISODES
        for task in sorted({one.task for one in run.episodes}):
            episodes = [one for one in run.episodes if one.task == task]
            parts += [_episode_table(task, episodes, is_open=is_open)]
    return tag("section", *parts)


def conditions_section(runs: Sequence[Run]) -> Markup:
    """What a reader needs to believe the numbers, and to get them again."""
    parts: list[Content] = [tag("h2", "Reproduce")]
    for run in runs:
        command = str(run.info.get("command") or "")
        if len(runs) > 1:
            parts.append(tag("h3", run.name))
        if command:
            parts.append(tag("pre", command))
        parts.append(_facts(_conditions(run)))
    return tag("section", *parts)


def verdict(found: Comparison, first: str, second: str) -> str:
    """The comparison in a sentence."""
    if found.pairs == 0:
        return f"{first} and {second} have no episode in common, so they cannot be compared."
    gap = found.only_second - found.only_first
    if gap == 0:
        common = f"{found.pairs} episodes that both have" if found.pairs > 1 else "one episode that both have"
        return f"{second} and {first} solve equally many of the {common}."
    better, worse = (second, first) if gap > 0 else (first, second)
    sure = "unlikely to be chance" if found.p_value < SURE_BELOW else "this may well be chance"
    return (
        f"{better} solves {abs(gap)} more of the {found.pairs} common episodes than {worse}; "
        f"p = {found.p_value:.3g}: {sure}."
    )


def _subtitle(runs: Sequence[Run]) -> str:
    episodes = sum(len(run.episodes) for run in runs)
    tasks = len({one.task for run in runs for one in run.episodes})
    started = next((str(run.info["started"]) for run in runs if run.info.get("started")), "")
    words = ", ".join(
        _counted(count, thing) for count, thing in ((len(runs), "run"), (tasks, "task"), (episodes, "episode"))
    )
    return f"{words}, {started}" if started else words


def _counted(count: int, thing: str) -> str:
    return f"{count} {thing}{'' if count == 1 else 's'}"


def _card(run: Run, summary: RunSummary, place: int) -> Markup:
    overall = summary.overall
    missing = run.expected - overall.episodes
    warning = tag("p", f"incomplete: {missing} of {run.expected} episodes have no result", cls="bad") if missing else ""
    return tag(
        "div",
        tag("h3", tag("i", cls=f"key bar run{place % COLOURS}"), " ", summary.name),
        tag("p", percent(overall.rate), cls="big"),
        tag("p", f"{overall.successes} of {overall.episodes} episodes solved by {summary.policy}"),
        tag("p", f"95 % interval {percent(overall.interval.low)} to {percent(overall.interval.high)}", cls="note"),
        tag("p", f"mean score {overall.mean_score:.2f}{_above(overall)}", cls="note"),
        _retried(overall),
        warning,
        cls="card",
    )


def _above(summary: TaskSummary) -> str:
    """The score of doing nothing, which a reader has to subtract."""
    return "" if summary.floor is None else f" (a robot that never moves: {summary.floor:.2f})"


def _retried(summary: TaskSummary) -> Markup:
    """Attempts that came to no result: an episode that is begun again until it goes well is no first try."""
    retries = summary.retries
    if not retries.attempts:
        return Markup("")
    counts = ((retries.resets, "reset"), (retries.kills, "kill"), (retries.worker_deaths, "worker death"))
    words = ", ".join(_counted(count, thing) for count, thing in counts if count)
    return tag("p", f"{_counted(retries.attempts, 'attempt')} without a result: {words}", cls="bad")


def _other_episodes(runs: Sequence[Run]) -> Markup:
    """A warning where the cards are not about the same episodes."""
    keys = [{one.key for one in run.episodes} for run in runs]
    common = set.intersection(*keys) if keys else set()
    if all(own == common for own in keys):
        return Markup("")
    counts = ", ".join(f"{run.name} has {len(own)}" for run, own in zip(runs, keys, strict=True))
    solved = ", ".join(f"{run.name} {sum(one.success for one in run.episodes if one.key in common)}" for run in runs)
    words = f"The runs above are not of the same episodes: {counts}. "
    words += f"Of the {len(common)} that all have, solved are: {solved}." if common else "They have none in common."
    return tag("p", words, cls="bad")


def _task_rows(name: str, summaries: Sequence[RunSummary]) -> Markup:
    lines = []
    for place, summary in enumerate(summaries):
        found = next((one for one in summary.tasks if one.task == name), None)
        label = name if len(summaries) == 1 else summary.name
        if found is not None:
            lines.append(_chart_line(label, rate_bar(found, place), _in_words(found)))
    return join(*lines) if len(summaries) == 1 else join(tag("h3", name), *lines)


def _in_words(found: TaskSummary) -> str:
    low, high = round(100 * found.interval.low), round(100 * found.interval.high)
    floor = f" (standing still {found.floor:.2f})" if found.floor else ""
    rate = f"{found.successes}/{found.episodes} = {percent(found.rate)} ({low} to {high})"
    return f"{rate}, score {found.mean_score:.2f}{floor}"


def _chart_line(name: str, chart: Markup, words: str) -> Markup:
    return tag("div", tag("span", name, cls="name"), chart, tag("span", words, cls="words"), cls="line")


def _episode_table(task: str, episodes: Sequence[EpisodeResult], *, is_open: bool) -> Markup:
    solved = sum(one.success for one in episodes)
    head = tag("tr", *(tag("th", name, scope="col") for name in _COLUMNS))
    table = tag("table", tag("thead", head), tag("tbody", *(_episode_row(one) for one in episodes)), cls="episodes")
    summary = tag("summary", task, tag("span", f" {solved} of {len(episodes)} solved", cls="note"))
    return tag("details", summary, tag("div", table, cls="scroll"), open=is_open)


def _episode_row(one: EpisodeResult) -> Markup:
    result = tag("td", "solved" if one.success else "failed", cls="good" if one.success else "bad")
    took = "" if one.seconds is None else f"{one.seconds:.1f} s"
    steps = "" if one.steps is None else str(one.steps)
    attempts = "" if one.attempts is None else str(one.attempts)
    ended_by = ": ".join(part for part in (one.reason, one.detail) if part)
    numbers = (f"{one.score:.2f}", steps, attempts)
    words = (tag("td", ended_by, cls="why"), tag("td", took), tag("td", one.instruction or "", cls="why"))
    return tag("tr", tag("td", one.seed), result, *(tag("td", value) for value in numbers), *words)


def _conditions(run: Run) -> Iterator[tuple[str, str]]:
    """What was written down of the conditions, in words."""
    yield "run", run.folder.name
    info = {"machine": run.info.get("platform"), **run.info}
    for key, label in _CONDITIONS:
        value = info.get(key)
        if value not in (None, "", []):
            in_words = _SPECIAL.get(key, _words) if isinstance(value, dict) else _words
            yield label, in_words(value)
    if run.hold_steps:
        yield "a subgoal lasts", f"more than {_words(run.hold_steps)} control steps"


def _by_robot(tasks: dict[str, Any]) -> str:
    """Tasks and their robots, as a list for each robot."""
    robots = dict.fromkeys(map(str, tasks.values()))
    return "; ".join(f"{robot}: {', '.join(task for task in tasks if str(tasks[task]) == robot)}" for robot in robots)


def _sizes(tasks: dict[str, Any]) -> str:
    """The cameras of all tasks, each kind once."""
    found = (f"{name} {size}" for cameras in tasks.values() for name, size in dict(cameras).items())
    return ", ".join(dict.fromkeys(found))


_SPECIAL = {"tasks": _by_robot, "camera_sizes": _sizes}


def _words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {part}" for key, part in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)


def _against(first: Run, second: Run) -> Markup:
    found = compare_runs(first, second)
    return join(
        tag("h3", f"{second.name} against {first.name}"),
        tag("p", verdict(found, first.name, second.name), cls="verdict"),
        _warnings(first, second),
        _table(found, first.name, second.name),
        _flips(first, second),
    )


def _warnings(first: Run, second: Run) -> Markup:
    """Runs that were not judged alike, or did not see alike, say so."""
    parts = (_drawn_differently(first, second), _judged_differently(first, second), _changed_tasks(first, second))
    return join(*parts)


def _changed_tasks(first: Run, second: Run) -> Markup:
    changed = sorted(task for task in first.task_digests.keys() & second.task_digests.keys()
                     if first.task_digests[task] != second.task_digests[task])  # fmt: skip
    if not changed:
        return Markup("")
    words = f"Not the same tasks: {', '.join(changed)} was changed between {first.name} and {second.name}."
    return tag("p", words, cls="bad")


def _drawn_differently(first: Run, second: Run) -> Markup:
    if first.drawing is None or second.drawing is None or first.drawing == second.drawing:
        return Markup("")
    words = f"Not drawn alike: the pictures of {first.name} are by {first.drawing}, those of {second.name} by "
    return tag("p", f"{words}{second.drawing}. The difference may be that of the pictures.", cls="bad")


def _judged_differently(first: Run, second: Run) -> Markup:
    if not first.hold_steps or not second.hold_steps or first.hold_steps == second.hold_steps:
        return Markup("")
    one, other = (" and ".join(map(str, run.hold_steps)) for run in (first, second))
    words = f"Not judged alike: subgoals had to last {one} control steps in {first.name}, {other} in {second.name}."
    return tag("p", words, cls="bad")


def _table(found: Comparison, first: str, second: str) -> Markup:
    interval = found.score_interval
    between = "" if interval is None else f" (95 % bootstrap {interval.low:+.3f} to {interval.high:+.3f})"
    rows = (
        ("common episodes (same task and seed)", str(found.pairs)),
        ("solved by both", str(found.both)),
        (f"solved by {first} only", str(found.only_first)),
        (f"solved by {second} only", str(found.only_second)),
        ("solved by neither", str(found.neither)),
        (
            "difference of success",
            f"{100 * found.success_difference:+.1f} points, exact McNemar p = {found.p_value:.3g}",
        ),
        ("difference of mean score", f"{found.score_difference:+.3f}{between}"),
    )
    return _facts(rows)


def _facts(rows: Iterable[tuple[str, str]]) -> Markup:
    """A table of names and values."""
    cells = (tag("tr", tag("th", name, scope="row"), tag("td", value)) for name, value in rows)
    return tag("table", *cells, cls="facts")


def _flips(first: Run, second: Run) -> Markup:
    """The episodes whose result changed: where to look."""
    before = {one.key: one for one in first.episodes}
    changed = [one for one in second.episodes if one.key in before and before[one.key].success != one.success]
    if not changed:
        return Markup("")
    items = [
        tag("li", f"{one.task} {one.seed}: ", tag("b", "gained" if one.success else "lost"),
            f", score {percent(before[one.key].score)} to {percent(one.score)}")
        for one in changed[:_MAX_LISTED]
    ]  # fmt: skip
    return tag("details", tag("summary", f"{len(changed)} episodes with another result"), tag("ul", *items))

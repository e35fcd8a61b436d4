"""The parts of the page that every report has."""

from collections.abc import Iterator, Sequence
from typing import Any

from urlab.evaluation.episode_result import EpisodeResult
from urlab.evaluation.report.charts import COLOURS, key_of_the_chart, percent, rate_bar, share_bar
from urlab.evaluation.report.markup import Content, Markup, join, tag
from urlab.evaluation.report.summary import RunSummary, TaskSummary
from urlab.evaluation.runs.results import Run

_CONDITIONS = (
    ("started", "started"),
    ("tasks", "tasks"),
    ("episodes", "episodes per task"),
    ("seeds", "seeds"),
    ("workers", "workers"),
    ("cameras", "cameras"),
    ("renderer", "renderer"),
    ("server", "server"),
    ("machine", "machine"),
    ("versions", "versions"),
)

_COLUMNS = ("seed", "result", "score", "steps", "ended by", "took", "told")

_FEW_EPISODES = 12
"""A run of so many shows them all at once."""


def cards(runs: Sequence[Run], summaries: Sequence[RunSummary]) -> Markup:
    """The answer, one card for each run."""
    pairs = enumerate(zip(runs, summaries, strict=True))
    return tag("div", *(_card(run, one, place) for place, (run, one) in pairs), cls="cards")


def tasks_section(summaries: Sequence[RunSummary]) -> Markup:
    """A bar for each task and run."""
    names = sorted({one.task for summary in summaries for one in summary.tasks})
    rows = [_task_rows(name, summaries) for name in names]
    return tag("section", tag("h2", "Tasks"), key_of_the_chart(), tag("div", *rows, cls="tasks"))


def endings_section(summaries: Sequence[RunSummary]) -> Markup:
    """Why episodes ended."""
    lines: list[Markup] = []
    for place, summary in enumerate(summaries):
        for reason, count in summary.overall.reasons.items():
            share = count / summary.overall.episodes
            name = reason if len(summaries) == 1 else f"{summary.name}: {reason}"
            lines.append(_chart_line(name, share_bar(share, place), f"{count} ({percent(share)})"))
    return tag("section", tag("h2", "How episodes ended"), tag("div", *lines, cls="tasks"))


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
        rows = (_fact(name, value) for name, value in _conditions(run))
        parts.append(tag("table", *rows, cls="facts"))
    return tag("section", *parts)


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
        tag("p", f"mean score {overall.mean_score:.2f}", cls="note"),
        warning,
        cls="card",
    )


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
    return f"{found.successes}/{found.episodes} = {percent(found.rate)} ({low} to {high}), score {found.mean_score:.2f}"


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
    values = (f"{one.score:.2f}", steps, one.reason or "", took, one.instruction or "")
    return tag("tr", tag("td", one.seed), result, *(tag("td", value) for value in values))


def _conditions(run: Run) -> Iterator[tuple[str, str]]:
    """What was written down of the conditions, in words."""
    yield "run", run.folder.name
    info = {"machine": run.info.get("platform"), **run.info}
    for key, label in _CONDITIONS:
        value = info.get(key)
        if value not in (None, "", []):
            yield label, _by_robot(value) if key == "tasks" and isinstance(value, dict) else _words(value)
    if run.hold_steps:
        yield "a subgoal lasts", f"more than {_words(run.hold_steps)} control steps"


def _by_robot(tasks: dict[str, Any]) -> str:
    """Tasks and their robots, as a list for each robot."""
    robots = dict.fromkeys(map(str, tasks.values()))
    return "; ".join(f"{robot}: {', '.join(task for task in tasks if str(tasks[task]) == robot)}" for robot in robots)


def _fact(name: str, value: str) -> Markup:
    return tag("tr", tag("th", name, scope="row"), tag("td", value))


def _words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {part}" for key, part in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)

"""The whole page: one file, no scripts, nothing fetched from anywhere."""

from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from urlab.evaluation.report.comparison import comparison_section
from urlab.evaluation.report.markup import Markup, join, tag
from urlab.evaluation.report.run_folder import Run, named_apart
from urlab.evaluation.report.sections import (
    cards,
    conditions_section,
    endings_section,
    episodes_section,
    tasks_section,
)
from urlab.evaluation.report.summary import summarise
from urlab.evaluation.report.videos import VideoShelf
from urlab.files import replacing

_METHODS = (
    "An episode is solved when its score is 1; the score is the mean over the goal's stages: credit for parts. "
    "Intervals of success are Wilson score intervals at 95 %. Over all tasks the episodes are pooled: they speak for "
    "these tasks, not for others. Runs are compared on the episodes of the same task and seed: success by the exact "
    "McNemar test (two-sided sign test on the episodes that only one run solved), scores by a paired bootstrap of the "
    "mean difference (10,000 resamples, fixed seed)."
)


def write_report(runs: Sequence[Run], path: Path) -> None:
    """Write the page of one run, or of several to be compared with the first; whole or not at all."""
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
        tasks_section(summaries),
        comparison_section(runs),
        endings_section(summaries),
        _failures(runs, folder),
        episodes_section(runs),
        conditions_section(runs),
        tag("footer", _METHODS),
    )
    head = join(
        Markup('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        tag("title", title),
        tag("style", Markup(_style())),
    )
    return f"<!DOCTYPE html>\n{tag('html', tag('head', head), tag('body', tag('main', body)), lang='en')}\n"


def _style() -> str:
    return resources.files(__package__).joinpath("style.css").read_text(encoding="utf-8")


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


def _failures(runs: Sequence[Run], folder: Path) -> Markup:
    several = len(runs) > 1
    failures = [(run.name if several else "", one) for run in runs for one in run.episodes if not one.success]
    if not any(one.videos for _, one in failures):
        return Markup("")
    return tag("section", tag("h2", "Failures"), VideoShelf(folder).gallery(failures))

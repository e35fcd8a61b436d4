"""Two runs side by side, on the episodes that both have."""

from urlab.evaluation.report.charts import percent
from urlab.evaluation.report.markup import Markup, join, tag
from urlab.evaluation.report.summary import compare_runs
from urlab.evaluation.runs.results import Run
from urlab.evaluation.statistics import Comparison

SURE_BELOW = 0.05
_MAX_LISTED = 40


def comparison_section(runs: list[Run]) -> Markup:
    """Every run against the first; nothing for a single run."""
    if len(runs) < 2:
        return Markup("")
    parts = [_against(runs[0], other) for other in runs[1:]]
    return tag("section", tag("h2", "Comparison"), *parts)


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


def _against(first: Run, second: Run) -> Markup:
    found = compare_runs(first, second)
    return join(
        tag("h3", f"{second.name} against {first.name}"),
        tag("p", verdict(found, first.name, second.name), cls="verdict"),
        _warning(first, second),
        _table(found, first.name, second.name),
        _flips(first, second),
    )


def _warning(first: Run, second: Run) -> Markup:
    """Runs that were not judged alike say so."""
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
    return tag(
        "table", *(tag("tr", tag("th", name, scope="row"), tag("td", value)) for name, value in rows), cls="facts"
    )


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

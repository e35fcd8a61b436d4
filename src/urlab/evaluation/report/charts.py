"""HTML elements, and bars with their uncertainty as inline SVG that stretches to the width it is given."""

from html import escape

from urlab.evaluation.report.statistics import TaskSummary

_WIDTH, _HEIGHT = 1000, 20
COLOURS = 5
_BAR, _BAND = (5, 10), (1, 18)


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Content = Markup | str | int


def tag(name: str, *content: Content, **attributes: str | int | bool | None) -> Markup:
    """An element. ``cls`` is the class, other underscores become hyphens; None and False leave an attribute out."""
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    return Markup(f"<{name}{written}>{join(*content)}</{name}>")


def join(*content: Content) -> Markup:
    """The contents one after the other; plain text is escaped."""
    return Markup("".join(one if isinstance(one, Markup) else escape(str(one)) for one in content))


def rate_bar(summary: TaskSummary, colour: int) -> Markup:
    """The success rate as a bar, its Wilson interval as a band with ends, the mean score as a tick."""
    label = (
        f"success {percent(summary.rate)}, 95 % interval {percent(summary.interval.low)} to "
        f"{percent(summary.interval.high)}, mean score {summary.mean_score:.2f}"
    )
    low, high = summary.interval.low, summary.interval.high
    return tag(
        "svg",
        tag("title", label),
        _box(0, 1, _BAR, "track"),
        _box(0, summary.rate, _BAR, "bar"),
        _box(low, high - low, _BAND, "band"),
        _line(low, _BAND, "end"),
        _line(high, _BAND, "end"),
        _line(summary.mean_score, (0, _HEIGHT), "score"),
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        preserveAspectRatio="none",
        role="img",
        cls=f"rate run{colour % COLOURS}",
    )


def share_bar(share: float, colour: int) -> Markup:
    """A plain bar from 0 to 1."""
    return tag(
        "svg",
        _box(0, 1, _BAR, "track"),
        _box(0, share, _BAR, "bar"),
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        preserveAspectRatio="none",
        aria_hidden="true",
        cls=f"rate run{colour % COLOURS}",
    )


def percent(part: float) -> str:
    """A part of 1 in per cent, as text."""
    return f"{100 * part:.0f} %"


def key_of_the_chart() -> Markup:
    """What bar, band and tick are."""
    return tag(
        "p",
        join(tag("i", cls="key bar"), " success rate "),
        join(tag("i", cls="key band"), " 95 % interval (Wilson) "),
        join(tag("i", cls="key score"), " mean score"),
        cls="keys",
    )


def _box(begin: float, length: float, rows: tuple[int, int], cls: str) -> Markup:
    top, height = rows
    return tag("rect", x=_x(begin), y=top, width=_x(length), height=height, cls=cls)


def _line(place: float, rows: tuple[int, int], cls: str) -> Markup:
    top, height = rows
    return tag("line", x1=_x(place), x2=_x(place), y1=top, y2=top + height, cls=cls)


def _x(part: float) -> str:
    return f"{_WIDTH * part:.1f}"


def _attribute(key: str, value: str | int | bool | None) -> str:
    name = "class" if key == "cls" else key.replace("_", "-")
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'

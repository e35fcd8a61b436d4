"""Debug drawings, overlay texts and choices, as data that every view draws. Nothing here knows of physics or of pixels.

Lengths are metres in world coordinates, thickness is pixels.
"""

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from urlab.errors import BadValue, known
from urlab.geometry import IDENTITY_WXYZ, Quat, Vec3

Color = tuple[float, float, float]
"""Red, green, blue in 0..1."""

MARKER_RADIUS_M = 0.05
MAX_REACH_M = 1e6
"""Farther from the origin, and larger, nothing is drawn: single precision would show noise."""

DEFAULT_THICKNESS_PX = 1.0
DEFAULT_AXES_SCALE_M = 0.2
HEAD_SHARE = 0.2
"""How much of an arrow is its head, unless the drawing says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """Anything that is drawn. ``ttl_s`` is in wall seconds: 0 is the next picture of each view, below 0 is for good.

    Drawings of one ``tag`` can be cleared together.
    """

    ttl_s: float = 0.0
    tag: str = ""


@dataclass(frozen=True, slots=True)
class Marker(Drawing):
    """A small sphere, with a text beside it."""

    location: Vec3
    color: Color
    label: str = ""


@dataclass(frozen=True, slots=True)
class Line(Drawing):
    """A straight line."""

    from_: Vec3
    to: Vec3
    color: Color
    thickness: float = DEFAULT_THICKNESS_PX


@dataclass(frozen=True, slots=True)
class WireBox(Drawing):
    """The edges of a box."""

    center: Vec3
    half_extents: Vec3
    color: Color
    quat_wxyz: Quat = IDENTITY_WXYZ


@dataclass(frozen=True, slots=True)
class Arrow(Drawing):
    """A line that ends in a head. ``arrow_size`` is the head's length; None is a share of the arrow's length."""

    from_: Vec3
    to: Vec3
    color: Color
    thickness: float = DEFAULT_THICKNESS_PX
    arrow_size: float | None = None


@dataclass(frozen=True, slots=True)
class Axes(Drawing):
    """A coordinate frame: x red, y green, z blue, each ``scale`` long."""

    location: Vec3
    quat_wxyz: Quat = IDENTITY_WXYZ
    scale: float = DEFAULT_AXES_SCALE_M


ANCHORS = ("top_left", "top", "top_right", "center", "bottom_left", "bottom", "bottom_right")
DEFAULT_ANCHOR = "top_left"
TEXT_TTL_S = 10.0
ONCE_LIMIT_S = 10.0
"""How long a drawing for one picture waits for a view that takes none."""

MAX_DRAWINGS = 10_000
"""Beyond this many the oldest go, so that no client can fill the memory."""

MAX_TEXT_LENGTH = 4_000
MAX_WORD_LENGTH = 200
MAX_CHOICES, MAX_OPTIONS = 16, 256


@dataclass(frozen=True, slots=True)
class ViewChoice:
    """What a program lets people choose in the views, and what is chosen."""

    options: tuple[str, ...]
    chosen: str


@dataclass(frozen=True, slots=True)
class Drawings:
    """What one view draws now: drawings in the order in which they were made, texts by anchor, choices by name."""

    items: tuple[Drawing, ...] = ()
    texts: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    choices: Mapping[str, ViewChoice] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(slots=True)
class _Entry:
    drawing: Drawing
    until_s: float
    waiting: set[str] | None = None
    """Of a drawing for one picture: the views that have not drawn it."""


class Overlay:
    """Owns the list. Any thread may call it. Views name themselves, so that each draws a ttl of 0 once."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: dict[int, _Entry] = {}
        self._texts: dict[str, tuple[str, float]] = {}
        self._choices: dict[str, tuple[ViewChoice, float]] = {}
        self._views: set[str] = set()
        self._next_id = 0

    def add(self, drawing: Drawing) -> None:
        """Draw something; BadValue when a label or a tag is too long to read."""
        _check_length("tag", drawing.tag, MAX_WORD_LENGTH)
        if isinstance(drawing, Marker):
            _check_length("label", drawing.label, MAX_WORD_LENGTH)
        with self._lock:
            entry = self._entry(drawing)
            if entry.waiting is not None and not entry.waiting:
                return
            if len(self._entries) >= MAX_DRAWINGS:
                del self._entries[next(iter(self._entries))]
            self._entries[self._next_id] = entry
            self._next_id += 1

    def clear(self, tag: str | None = None) -> None:
        """Remove the drawings of one tag, or all; texts stay."""
        with self._lock:
            kept = {} if tag is None else {key: one for key, one in self._entries.items() if one.drawing.tag != tag}
            self._entries = kept

    def set_text(self, text: str, anchor: str = DEFAULT_ANCHOR) -> None:
        """Show a text for 10 s in place of the one at that anchor; an empty one clears it. BadValue names anchors."""
        if anchor not in ANCHORS:
            raise BadValue(f"anchor must be one of {known(ANCHORS)}, not {anchor!r}")
        _check_length("text", text, MAX_TEXT_LENGTH)
        with self._lock:
            if text:
                self._texts[anchor] = (text, self._clock() + TEXT_TTL_S)
            else:
                self._texts.pop(anchor, None)

    def offer_choice(self, name: str, options: Sequence[str]) -> str | None:
        """Offer a choice for 10 s, in place of the one of that name; what is chosen. None, and no choice, if empty.

        What was chosen before stays so while it is an option; otherwise the first one is. BadValue if there are too
        many, or two are the same.
        """
        _check_choice(name, options)
        with self._lock:
            self._drop_old()
            before = self._choices.pop(name, None)
            if not options:
                return None
            if len(self._choices) >= MAX_CHOICES:
                raise BadValue(f"there are {MAX_CHOICES} choices already: {known(self._choices)}")
            chosen = before[0].chosen if before is not None and before[0].chosen in options else options[0]
            self._choices[name] = (ViewChoice(tuple(options), chosen), self._clock() + TEXT_TTL_S)
            return chosen

    def choose(self, name: str, option: str) -> str:
        """Choose an option of a choice that is offered, and return it; BadValue names what there is."""
        with self._lock:
            self._drop_old()
            if name not in self._choices:
                raise BadValue(f"there is no choice {name!r}: {known(self._choices)}")
            choice, until_s = self._choices[name]
            if option not in choice.options:
                raise BadValue(f"{name} is one of {known(choice.options)}, not {option!r}")
            self._choices[name] = (ViewChoice(choice.options, option), until_s)
            return option

    def add_view(self, view: str) -> None:
        """Let a view draw, from now on, what is meant for the next picture of each view."""
        with self._lock:
            self._views.add(view)

    def remove_view(self, view: str) -> None:
        """Wait for that view no longer."""
        with self._lock:
            self._views.discard(view)
            for entry in self._entries.values():
                if entry.waiting is not None:
                    entry.waiting.discard(view)
            self._drop_old()

    def take(self, view: str) -> Drawings:
        """What that view draws in its next picture. A view that is new gets nothing that was meant for one picture."""
        with self._lock:
            self._views.add(view)
            self._drop_old()
            shown = [one for one in self._entries.values() if one.waiting is None or view in one.waiting]
            for entry in shown:
                if entry.waiting is not None:
                    entry.waiting.discard(view)
            self._drop_old()
            texts = MappingProxyType({anchor: text for anchor, (text, _) in self._texts.items()})
            choices = MappingProxyType({name: choice for name, (choice, _) in self._choices.items()})
            return Drawings(tuple(one.drawing for one in shown), texts, choices)

    def _entry(self, drawing: Drawing) -> _Entry:
        now = self._clock()
        if drawing.ttl_s < 0:
            return _Entry(drawing, math.inf)
        if drawing.ttl_s > 0:
            return _Entry(drawing, now + drawing.ttl_s)
        return _Entry(drawing, now + ONCE_LIMIT_S, set(self._views))

    def _drop_old(self) -> None:
        now = self._clock()
        self._entries = {key: one for key, one in self._entries.items() if _is_alive(one, now)}
        self._texts = {anchor: text for anchor, text in self._texts.items() if text[1] > now}
        self._choices = {name: choice for name, choice in self._choices.items() if choice[1] > now}


def _is_alive(entry: _Entry, now_s: float) -> bool:
    return entry.until_s > now_s and (entry.waiting is None or bool(entry.waiting))


def _check_choice(name: str, options: Sequence[str]) -> None:
    if len(options) > MAX_OPTIONS or len(set(options)) < len(options):
        raise BadValue(f"options must be at most {MAX_OPTIONS}, no two the same; here are {len(options)}")
    for word in (name, *options):
        _check_length("a choice", word, MAX_WORD_LENGTH)


def _check_length(field_name: str, text: str, limit: int) -> None:
    if len(text) > limit:
        raise BadValue(f"{field_name} may have {limit} characters, but has {len(text)}")

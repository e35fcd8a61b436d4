"""The browser editor's page in a real Chromium, for tests: finds its widgets, and does with them what a person does.

Tests get pages from the fixtures in tests/urlab/editor/conftest.py.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

FLAGS = ("--use-angle=swiftshader", "--enable-unsafe-swiftshader")
"""Options of Chromium's command line: WebGL without a GPU."""
WAIT_S = 60.0


class EditorPage:
    """A tab with the editor; ``tab`` is the `Page` of browser.py. It is there when the state of the level is shown."""

    def __init__(self, tab: Any) -> None:
        self.tab = tab
        self.until(lambda: tab.evaluate("!!document.querySelector('#urlab-status')"))

    def until(self, condition: Callable[[], Any]) -> Any:
        """What the condition says when it first holds; page and server tell what they did by their state."""
        deadline = time.monotonic() + WAIT_S
        while not (found := condition()):
            assert time.monotonic() < deadline, f"it has not come; the page says:\n{self._text()}"
            time.sleep(0.05)
        return found

    @property
    def state(self) -> str:
        """What the level does: playing, paused, editing, compile_failed ..."""
        return str(self.tab.evaluate("document.querySelector('#urlab-status')?.dataset.state"))

    def says(self, words: str) -> bool:
        """Whether that is to be read on the page."""
        return bool(self.tab.evaluate(f"document.body.innerText.includes({words!r})"))

    def close_notices(self) -> None:
        """Those in the upper left corner, which cover the picture."""
        self.tab.evaluate("document.querySelectorAll('.mantine-Notification-closeButton').forEach(one => one.click())")
        self.until(lambda: not self.tab.evaluate("!!document.querySelector('.mantine-Notification-closeButton')"))

    def _text(self) -> str:
        return "nothing: it is closed" if self.tab.has_ended else self.tab.evaluate("document.body.innerText")

    # -- widgets ----------------------------------------------------------------------------------------------------

    def press(self, text: str, row: str = "") -> None:
        """A button in sight; ``row`` is the label that it stands beside, where several buttons say the same."""
        found = f"[...document.querySelectorAll('button')].filter(one => one.innerText.trim() === {text!r})"
        if row:
            found += f".filter(one => one.parentElement.parentElement.parentElement.innerText.startsWith({row!r}))"
        self.tab.click(f"{found}.find(one => one.offsetParent)")

    def open_tab(self, label: str) -> None:
        """One of the tabs."""
        tab = f"[...document.querySelectorAll('[role=tab]')].find(one => one.innerText.trim() === {label!r})"
        self.tab.click(tab)
        self.until(lambda: self.tab.evaluate(f"{tab}.ariaSelected === 'true'"))

    def open_folder(self, label: str) -> None:
        """A folder that is closed at first."""
        self.tab.click(_said(label))

    def tick(self, label: str) -> None:
        """A checkbox."""
        self.tab.click(_input(label))

    def choose(self, label: str, option: str, number: int = 0) -> None:
        """An option of a dropdown; ``number`` says of which, where several have that label."""
        self.tab.click(_input(label, number))
        self.tab.click(
            f"[...document.querySelectorAll('[role=option]')].find(one => one.offsetParent"
            f" && one.innerText.trim() === {option!r})"
        )

    def value(self, label: str) -> str:
        """What stands in an input."""
        return str(self.tab.evaluate(f"({_input(label)})?.value"))

    def write(self, label: str, text: str) -> None:
        """A text, instead of the one that is there."""
        self.tab.click(_input(label))
        self.tab.evaluate(f"({_input(label)}).select()")
        self.tab.type(text)

    def slide(self, label: str, share: float) -> None:
        """Drag a slider from where it is to a share of its way."""
        self.until(lambda: self.tab.evaluate(f"!!({_input(label)})?.querySelector('[role=slider][tabindex=\"0\"]')"))
        self.tab.evaluate(f"({_input(label)}).scrollIntoView({{block: 'center'}})")
        way = self.tab.box(f"({_input(label)}).querySelector('.mantine-Slider-track')")
        thumb = self.tab.box(f"({_input(label)}).querySelector('[role=slider]')")
        y, begin = way["y"] + way["height"] / 2, thumb["x"] + thumb["width"] / 2
        end = way["x"] + share * way["width"]
        self.tab.drag((begin, y), ((begin + end) / 2, y), (end, y))

    def upload(self, file: Path) -> None:
        """Choose a file for the button that imports one."""
        self.tab.choose_files("document.querySelector('input[type=file]')", file)

    # -- the picture ------------------------------------------------------------------------------------------------

    def middle_of(self, is_colour: Callable[[Any, Any, Any], Any]) -> tuple[int, int] | None:
        """Where that colour is in the left half of the window, which no panel covers; None if it is hardly there."""
        rows, columns = self._places_of(is_colour)
        return (int(columns.mean()), int(rows.mean())) if len(rows) > 200 else None

    def top_of(self, is_colour: Callable[[Any, Any, Any], Any]) -> tuple[int, int] | None:
        """Where that colour begins, from above, in the same half; None if it is hardly there."""
        rows, columns = self._places_of(is_colour)
        return (int(columns[0]), int(rows[0])) if len(rows) > 20 else None

    def _places_of(self, is_colour: Callable[[Any, Any, Any], Any]) -> Any:
        """Rows and columns of the pixels that have it, the upper ones first."""
        pixels = self.tab.pixels()
        left = pixels[:, : pixels.shape[1] // 2].astype(int)
        return np.nonzero(is_colour(left[..., 0], left[..., 1], left[..., 2]))


def _said(label: str) -> str:
    """The innermost element in sight that says just that."""
    return (
        "[...document.querySelectorAll('label, div, p, span, legend')].filter(one => one.offsetParent"
        f" && one.innerText.trim() === {label!r}).at(-1)"
    )


def _input(label: str, number: int = 0) -> str:
    """The input in sight that a label stands beside; those for texts do not have the id that the label names."""
    return (
        "(one => one && (document.getElementById(one.htmlFor) ?? one.parentElement.parentElement.querySelector('input')"
        " ?? one.parentElement.parentElement.parentElement.querySelector('input')))"
        "([...document.querySelectorAll('label')].filter(one => one.offsetParent"
        f" && one.innerText.trim() === {label!r})[{number}])"
    )

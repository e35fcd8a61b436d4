"""Which of the pages holds the controls: one at a time; the others look on, and may ask for them."""

import threading
from collections.abc import Callable


class Controls:
    """Hands the controls from page to page. Pages are known by their number; any thread may call it.

    The first page gets them. They go on when the page that holds them gives them away or is closed: to the page that
    has asked for longest, or else to the one that came first. ``on_change`` is called after each change, without locks.
    """

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._lock = threading.Lock()
        self._on_change = on_change
        self._pages: list[int] = []
        self._asking: list[int] = []
        self._holder: int | None = None

    @property
    def holder(self) -> int | None:
        """The page that holds the controls."""
        return self._holder

    @property
    def asking(self) -> tuple[int, ...]:
        """Pages that wait for them, the first one first."""
        return tuple(self._asking)

    def add(self, page: int) -> None:
        """A page was opened."""
        with self._lock:
            self._pages.append(page)
            if self._holder is None:
                self._holder = page
        self._on_change()

    def remove(self, page: int) -> None:
        """A page was closed, or has lost its connection."""
        with self._lock:
            self._pages = [one for one in self._pages if one != page]
            self._asking = [one for one in self._asking if one != page]
            if self._holder == page:
                self._hand_on()
        self._on_change()

    def ask(self, page: int) -> bool:
        """A page wants the controls; whether it has them now."""
        with self._lock:
            if self._holder is None:
                self._holder = page
            elif page not in self._asking and page != self._holder:
                self._asking.append(page)
            has_them = self._holder == page
        self._on_change()
        return has_them

    def give(self, page: int) -> None:
        """The page that holds them gives them away; nothing happens when no other page is there, or it has none."""
        with self._lock:
            if self._holder == page and len(self._pages) > 1:
                self._pages.append(self._pages.pop(self._pages.index(page)))
                self._hand_on()
        self._on_change()

    def take(self, page: int) -> None:
        """A page takes them without being given them."""
        with self._lock:
            if page in self._pages:
                self._holder = page
                self._asking = [one for one in self._asking if one != page]
        self._on_change()

    def _hand_on(self) -> None:
        waiting = self._asking or self._pages
        self._holder = waiting[0] if waiting else None
        self._asking = [one for one in self._asking if one != self._holder]

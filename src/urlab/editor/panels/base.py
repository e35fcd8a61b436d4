"""What a panel is."""

from typing import TYPE_CHECKING, Any, ClassVar

from urlab.editor.feed import ShownWorld

if TYPE_CHECKING:
    from urlab.editor.page import Page

PANELS: list[type["Panel"]] = []
"""Every panel, those that come first on the page first."""


class Panel:
    """A part of the page. One with a ``title`` is a tab; one without stands above the tabs."""

    title: ClassVar[str | None] = None
    icon: ClassVar[Any] = None
    order: ClassVar[int]
    """Where it stands among the others, from low to high; each has a number of its own."""

    @property
    def shares_camera(self) -> bool:
        """Whether it has the page's camera follow the viewport's."""
        return False

    def __init_subclass__(cls) -> None:
        if any(cls.order == one.order or (cls.title is not None and cls.title == one.title) for one in PANELS):
            raise TypeError(f"{cls.__name__}: another panel has that order or title")
        PANELS.append(cls)

    def __init__(self, page: "Page") -> None:
        self.page = page
        self.gui = page.gui

    def build(self) -> None:
        """Make the widgets, in the container that is open."""

    def show_model(self, world: ShownWorld) -> None:
        """Another model is shown. On the feed's thread."""

    def show_status(self, world: ShownWorld) -> None:
        """The world a moment later, a few times a second. On the feed's thread."""

    def close(self) -> None:
        """The page is gone."""

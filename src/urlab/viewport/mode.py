"""The ways in which a viewport shows the world."""

from dataclasses import dataclass
from enum import StrEnum

from urlab.errors import InvalidMode, known


class ViewMode(StrEnum):
    """The word of a mode on the wire."""

    LIT = "lit"
    UNLIT = "unlit"
    WIREFRAME = "wireframe"
    COLLISION = "collision"
    REFLECTIONS = "reflections"

    @classmethod
    def of(cls, word: str) -> "ViewMode":
        """The mode of a word, in any case; InvalidMode lists the words."""
        try:
            return cls(word.lower())
        except ValueError:
            raise InvalidMode(f"mode must be one of {known(map(str, cls))}, not {word!r}") from None


@dataclass(frozen=True, slots=True)
class Look:
    """What a mode means for a renderer.

    ``flat`` is the plain colours of the materials, ``shapes`` only what collides, in the shape in which it does.
    Mirrors and shadows cost a software renderer several times the picture, so only one mode has them.
    """

    flat: bool = False
    wires: bool = False
    shapes: bool = False
    mirrors: bool = False


LOOKS = {
    ViewMode.LIT: Look(),
    ViewMode.UNLIT: Look(flat=True),
    ViewMode.WIREFRAME: Look(flat=True, wires=True),
    ViewMode.COLLISION: Look(shapes=True),
    ViewMode.REFLECTIONS: Look(mirrors=True),
}

"""What every camera mode is: how a scene is drawn, and how what was drawn becomes a frame's pixels.

A mode registers by being declared: ``class Mine(Mode, kind=CameraMode.MINE, dtype=PixelType.BGRA8)``.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar

from numpy.typing import NDArray

from urlab.cameras.film import Film
from urlab.cameras.frame import PixelType
from urlab.cameras.lens import Lens
from urlab.cameras.profile import DrawSettings
from urlab.compile.compiled_scene import CompiledScene
from urlab_wire.enums import CameraMode

_MODES: dict[CameraMode, type["Mode"]] = {}


class Mode(ABC):
    """One mode for one scene. Every method is called on the GL thread."""

    kind: ClassVar[CameraMode]
    dtype: ClassVar[PixelType]

    def __init_subclass__(cls, *, kind: CameraMode | None = None, dtype: PixelType | None = None, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        if kind is None or dtype is None:
            return
        if kind in _MODES:
            raise TypeError(f"camera mode {kind.value!r} is already {_MODES[kind].__qualname__}")
        cls.kind, cls.dtype = kind, dtype
        _MODES[kind] = cls

    def __init__(self, scene: CompiledScene, settings: DrawSettings) -> None:
        """Prepare for a scene; ``settings`` are those of the profile in force."""
        self.scene = scene
        self.settings = settings

    @abstractmethod
    def set_up(self, drawn: Any) -> None:
        """Set all render flags of an MjvScene that has just been filled, and whatever else the mode changes in it."""

    def expose(self, film: Film, drawn: Any) -> None:
        """Draw it."""
        film.expose(drawn)

    @abstractmethod
    def develop(self, film: Film, lens: Lens) -> NDArray[Any]:
        """The pixels of a frame, (height, width), of 4 bytes each, from the top left, in memory of their own."""


def make_mode(kind: CameraMode, scene: CompiledScene, settings: DrawSettings) -> Mode:
    """The mode of that kind."""
    return _MODES[kind](scene, settings)


def mode_kinds() -> frozenset[CameraMode]:
    """Every kind that is declared."""
    return frozenset(_MODES)


def set_flags(drawn: Any, flags: Iterable[int]) -> None:
    """Switch on these mjtRndFlag members and no others."""
    drawn.flags[:] = 0
    drawn.flags[list(flags)] = 1

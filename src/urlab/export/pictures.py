"""Pictures of recorded states through a camera of a scene."""

from typing import Protocol

from urlab.cameras import RenderRequest, SceneRenderer
from urlab.compile.compiled_scene import CameraSlot, CompiledScene
from urlab.config import RenderProfile
from urlab.export.clip import RecordedState
from urlab_wire.enums import CameraMode
from urlab_wire.pixels import Bytes, pick_channels


class StatePictures(Protocol):
    """Pictures of states, all through one camera. For one thread."""

    @property
    def size(self) -> tuple[int, int]:
        """(width, height) in pixels."""

    def draw(self, state: RecordedState) -> Bytes:
        """The picture of a state, RGB (height, width, 3), the first row at the top."""

    def close(self) -> None:
        """Give back what drawing needed. May be called twice."""


class CameraPictures:
    """What a camera of the scene would have seen, in colour; ``size`` (width, height) is its own by default.

    It has a renderer of its own, which draws on the GL thread; physics and other views do not notice.
    """

    def __init__(
        self, scene: CompiledScene, camera: CameraSlot, profile: RenderProfile, size: tuple[int, int] | None = None
    ) -> None:
        self._renderer = SceneRenderer(scene, profile)
        self._request = RenderRequest(camera, CameraMode.REAL, size)

    @property
    def size(self) -> tuple[int, int]:
        """(width, height) in pixels."""
        return self._request.size

    def draw(self, state: RecordedState) -> Bytes:
        """The picture of a state, RGB (height, width, 3); NoViewport when nothing can be drawn."""
        (frame,) = self._renderer.render([self._request], state)
        return pick_channels(frame.array(), "bgra")

    def close(self) -> None:
        """Give back the GL memory."""
        self._renderer.close()

"""Keeps what is needed to draw the model that was drawn last."""

from collections.abc import Hashable, Sequence

import mujoco

from urlab.errors import NoViewport
from urlab.overlay import Drawing
from urlab.viewport.camera import ViewCamera
from urlab.viewport.mode import Look
from urlab.viewport.model_view import ModelView, Pixels
from urlab.viewport.stage import Stage


class Canvas:
    """Draws stages. Used on the GL thread only; it holds GL memory for one model at a time."""

    def __init__(self) -> None:
        self._key: Hashable = None
        self._view: ModelView | None = None

    @property
    def is_in_use(self) -> bool:
        """Whether it holds GL memory."""
        return self._view is not None

    def paint(
        self, stage: Stage, camera: ViewCamera, look: Look, drawings: Sequence[Drawing], width: int, height: int
    ) -> Pixels:
        """One picture, (height, width, 3); NoViewport when MuJoCo cannot draw this model."""
        try:
            view = self._view_of(stage)
            view.pose(stage)
            return view.picture(camera, look, drawings, width, height)
        except mujoco.FatalError as refused:
            self.free()
            raise NoViewport(f"this scene cannot be drawn at {width}x{height}: {refused}") from refused

    def free(self) -> None:
        """Give back the GL memory; the next picture takes it anew."""
        view, self._view = self._view, None
        if view is not None:
            view.free()

    def _view_of(self, stage: Stage) -> ModelView:
        if self._view is None or self._key != stage.key:
            self.free()
            self._view, self._key = ModelView(stage.model), stage.key
        return self._view

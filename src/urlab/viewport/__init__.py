"""A viewport without a window: a camera that can be placed and follow an actor, and pictures of what it sees."""

from urlab.viewport.camera import ViewCamera
from urlab.viewport.renderer import PosedModel
from urlab.viewport.viewport import DEFAULT_SIZE, Viewport

__all__ = ["DEFAULT_SIZE", "PosedModel", "ViewCamera", "Viewport"]

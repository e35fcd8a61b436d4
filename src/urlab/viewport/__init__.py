"""A viewport without a window: a camera that can be placed and follow an actor, and pictures of what it sees."""

from urlab.viewport.camera import ViewCamera
from urlab.viewport.mode import ViewMode
from urlab.viewport.stage import Stage
from urlab.viewport.viewport import Screenshot, Viewport

__all__ = ["Screenshot", "Stage", "ViewCamera", "ViewMode", "Viewport"]

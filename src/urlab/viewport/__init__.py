"""The viewport: a posed model in, PNG pictures out, through a camera that can be placed and can follow an actor.

`viewport` is what ops call; `camera` is where it looks from, `view_mode` how the world is shown. `renderer` draws on
the GL thread, `overlay_geoms` adds the debug drawings and `texts` the texts.
"""

from urlab.viewport.camera import ViewCamera
from urlab.viewport.renderer import PosedModel
from urlab.viewport.viewport import DEFAULT_SIZE, Viewport

__all__ = ["DEFAULT_SIZE", "PosedModel", "ViewCamera", "Viewport"]

"""The viewport: a posed model in, PNG pictures out, through a camera that can be placed and can follow an actor.

`viewport` is what ops call; `camera` is where it looks from, `framing` what it looks at by itself, `view_mode` how the
world is shown. `renderer` draws a `posed_model` on the GL thread, `overlay_geoms` adds the debug drawings and `texts`
the texts. `model_pictures` shows models by themselves; `remote_view` is for viewers that draw by themselves.
"""

from urlab.viewport.camera import ViewCamera
from urlab.viewport.model_pictures import ModelPictures
from urlab.viewport.posed_model import HeldBody, PosedModel
from urlab.viewport.renderer import check_size
from urlab.viewport.viewport import DEFAULT_SIZE, ViewPictures, Viewport

__all__ = [
    "DEFAULT_SIZE",
    "HeldBody",
    "ModelPictures",
    "PosedModel",
    "ViewCamera",
    "ViewPictures",
    "Viewport",
    "check_size",
]

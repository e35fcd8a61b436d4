"""The viewport: a posed model in, PNG pictures out, through a camera that can be placed and can follow an actor.

`viewport` is what ops call; `camera` is where it looks from, `framing` what it looks at by itself, `view_mode` how the
world is shown and `visual_flags` what MuJoCo draws over it. `renderer` draws a `posed_model` on the GL thread,
`overlay_geoms` adds the debug drawings and `texts` the texts.
"""

from urlab.viewport.camera import ViewCamera
from urlab.viewport.posed_model import PosedModel
from urlab.viewport.viewport import DEFAULT_SIZE, ViewPictures, Viewport, check_size
from urlab.viewport.visual_flags import OVERLAY_WORDS

__all__ = ["DEFAULT_SIZE", "OVERLAY_WORDS", "PosedModel", "ViewCamera", "ViewPictures", "Viewport", "check_size"]

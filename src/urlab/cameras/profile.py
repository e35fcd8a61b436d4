"""How much a picture may cost: what the render profiles draw and what they leave out."""

from dataclasses import dataclass

import mujoco

from urlab.config import RenderProfile
from urlab.mujoco_versions import POST_PROCESSING

_FLAGS = mujoco.mjtRndFlag
_SOFTWARE = ("llvmpipe", "softpipe", "lavapipe", "swrast", "swiftshader", "software rasterizer", "osmesa")


@dataclass(frozen=True, slots=True)
class DrawSettings:
    """``samples`` per pixel, 0 = one; ``flags`` are the mjtRndFlag members that are on in a real picture.

    Without ``shadows`` no shadow map is even allocated; with them it has the size that the model asks for.
    """

    samples: int
    shadows: bool
    flags: tuple[int, ...]

    @property
    def reflections(self) -> bool:
        """Whether something is mirrored: that takes a stencil buffer."""
        return int(_FLAGS.mjRND_REFLECTION) in self.flags


SETTINGS = {
    RenderProfile.FAST: DrawSettings(samples=0, shadows=False, flags=(int(_FLAGS.mjRND_CULL_FACE),)),
    RenderProfile.QUALITY: DrawSettings(
        samples=4,
        shadows=True,
        flags=(
            int(_FLAGS.mjRND_SHADOW),
            int(_FLAGS.mjRND_REFLECTION),
            int(_FLAGS.mjRND_SKYBOX),
            int(_FLAGS.mjRND_HAZE),
            int(_FLAGS.mjRND_CULL_FACE),
            *(() if POST_PROCESSING is None else (POST_PROCESSING,)),
        ),
    ),
}
"""Fast leaves out whatever is dear where the CPU draws; quality is what MuJoCo draws by default."""


def effective_profile(wanted: RenderProfile, gl_name: str) -> RenderProfile:
    """The profile in force where that GL draws: auto is fast in software, else quality."""
    if wanted is not RenderProfile.AUTO:
        return wanted
    return RenderProfile.FAST if is_software(gl_name) else RenderProfile.QUALITY


def is_software(gl_name: str) -> bool:
    """Whether the CPU draws, by what the driver calls its renderer."""
    return any(word in gl_name.lower() for word in _SOFTWARE)

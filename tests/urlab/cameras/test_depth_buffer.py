"""Drawing without a stencil buffer, compared with drawing with one."""

import ctypes
from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
import pytest

from urlab.cameras import shared_gl
from urlab.cameras.depth_buffer import DepthBuffer
from urlab.cameras.film import Film
from urlab.cameras.gl_framebuffer import gl_library
from urlab.cameras.profile import SETTINGS
from urlab.config import RenderProfile

WORLD = """<light pos="0 0 3"/><geom type="plane" size="3 3 1" rgba=".3 .5 .7 1"/>
<geom pos="0 0 .5" size=".4"/><geom type="capsule" pos=".4 .5 .7" size=".2 .3" rgba="1 0 0 .5"/>"""
STENCIL_ATTACHMENT, FRAMEBUFFER, OBJECT_TYPE = 0x8D20, 0x8D40, 0x8CD0


def draw(context: Any, model: Any, flags: list[int]) -> tuple[Any, Any]:
    """The colours and depths of a picture of 64x48 pixels."""
    data, scene, eye = mujoco.MjData(model), mujoco.MjvScene(model, maxgeom=100), mujoco.MjvCamera()
    mujoco.mj_forward(model, data)
    mujoco.mjv_defaultFreeCamera(model, eye)
    mujoco.mjv_updateScene(model, data, mujoco.MjvOption(), None, eye, mujoco.mjtCatBit.mjCAT_ALL.value, scene)
    scene.flags[:] = 0
    scene.flags[flags] = 1
    colors, depths = np.empty((48, 64, 3), np.uint8), np.empty((48, 64), np.float32)
    rectangle = mujoco.MjrRect(0, 0, 64, 48)
    mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value, context)
    mujoco.mjr_render(rectangle, scene, context)
    mujoco.mjr_readPixels(colors, depths, rectangle, context)
    return colors, depths


def has_stencil() -> bool:
    """Of the framebuffer that is bound."""
    kind = ctypes.c_int()
    gl_library().glGetFramebufferAttachmentParameteriv(FRAMEBUFFER, STENCIL_ATTACHMENT, OBJECT_TYPE, ctypes.byref(kind))
    return kind.value != 0


@pytest.mark.usefixtures("needs_gl")
def test_colours_and_depths_are_the_same_to_the_last_bit(eyes: Any) -> None:
    model = mujoco.MjModel.from_xml_string(eyes.mjcf(WORLD))
    model.vis.global_.offwidth, model.vis.global_.offheight = 64, 48
    model.vis.quality.offsamples = 0
    flags = [int(mujoco.mjtRndFlag.mjRND_CULL_FACE)]

    def both() -> tuple[tuple[Any, Any], tuple[Any, Any]]:
        context = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_50.value)
        before = draw(context, model, flags)
        assert has_stencil()
        buffer = DepthBuffer(context)
        assert not has_stencil()
        after = draw(context, model, flags)
        buffer.free()
        context.free()
        return before, after

    before, after = shared_gl().run(both)
    assert len(np.unique(before[1])) > 400
    for one, other in zip(before, after, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("profile", [RenderProfile.FAST, RenderProfile.QUALITY])
@pytest.mark.usefixtures("needs_gl")
def test_only_a_profile_that_mirrors_things_keeps_the_stencil(profile: RenderProfile, eyes: Any) -> None:
    model = mujoco.MjModel.from_xml_string(eyes.mjcf(WORLD))

    def sizes() -> list[bool]:
        film, found = Film(model, SETTINGS[profile]), []
        for size in ((64, 48), (32, 100), (16, 12)):
            film.load(*size)
            found.append(has_stencil())
        film.free()
        return found

    mirrors = SETTINGS[profile].reflections
    assert mirrors == (profile is RenderProfile.QUALITY)
    assert shared_gl().run(sizes) == [mirrors] * 3


def test_what_is_mirrored_is_still_seen_in_quality(stage: Callable[..., Any], eyes: Any) -> None:
    mirror = '<asset><material name="m" rgba=".1 .1 .1 1" reflectance=".9"/></asset>'
    world = f"""<light pos="0 0 3"/><geom type="plane" size="3 3 .1" material="m"/>
    <geom pos="0 0 1" size=".3" rgba="1 0 0 1"/>
    <body pos="-2 0 1" euler="0 30 0"><camera name="eye" {eyes.along_x}/></body>"""
    reds = [
        (eyes.bgra(stage(world, mirror, profile=profile).shoot("real"))[80:, :, 2] > 60).sum()
        for profile in (RenderProfile.QUALITY, RenderProfile.FAST)
    ]
    assert reds[0] > reds[1]

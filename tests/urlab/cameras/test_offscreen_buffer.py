"""The buffer that pictures are drawn into: its depths, its rows, and several views in one GL context."""

import ctypes
import io
from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
import pytest
from PIL import Image

from urlab.cameras import SceneRenderer, offscreen_buffer, shared_gl
from urlab.cameras.offscreen_buffer import OffscreenBuffer, gl_library, replace_depth_stencil
from urlab.cameras.profile import SETTINGS
from urlab.config import RenderProfile
from urlab.overlay import Overlay
from urlab.viewport import PosedModel, Viewport

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
def test_colours_and_depths_are_the_same_to_the_last_bit(images: Any) -> None:
    model = mujoco.MjModel.from_xml_string(images.mjcf(WORLD))
    model.vis.global_.offwidth, model.vis.global_.offheight = 64, 48
    model.vis.quality.offsamples = 0
    flags = [int(mujoco.mjtRndFlag.mjRND_CULL_FACE)]

    def both() -> tuple[tuple[Any, Any], tuple[Any, Any]]:
        context = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_50.value)
        before = draw(context, model, flags)
        assert has_stencil()
        name = replace_depth_stencil(context)
        assert not has_stencil()
        after = draw(context, model, flags)
        gl_library().glDeleteRenderbuffers(1, ctypes.byref(name))
        context.free()
        return before, after

    before, after = shared_gl().run(both)
    assert len(np.unique(before[1])) > 400
    for one, other in zip(before, after, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("profile", [RenderProfile.FAST, RenderProfile.QUALITY])
@pytest.mark.usefixtures("needs_gl")
def test_only_a_profile_that_mirrors_things_keeps_the_stencil(profile: RenderProfile, images: Any) -> None:
    model = mujoco.MjModel.from_xml_string(images.mjcf(WORLD))

    def sizes() -> list[bool]:
        buffer, found = OffscreenBuffer(model, SETTINGS[profile]), []
        for size in ((64, 48), (32, 100), (16, 12)):
            buffer.resize(*size)
            found.append(has_stencil())
        buffer.free()
        return found

    mirrors = SETTINGS[profile].reflections
    assert mirrors == (profile is RenderProfile.QUALITY)
    assert shared_gl().run(sizes) == [mirrors] * 3


def test_what_is_mirrored_is_still_seen_in_quality(scene_of: Callable[..., Any], images: Any) -> None:
    mirror = '<asset><material name="m" rgba=".1 .1 .1 1" reflectance=".9"/></asset>'
    world = f"""<light pos="0 0 3"/><geom type="plane" size="3 3 .1" material="m"/>
    <geom pos="0 0 1" size=".3" rgba="1 0 0 1"/>
    <body pos="-2 0 1" euler="0 30 0"><camera name="eye" {images.along_x}/></body>"""
    reds = [
        (images.bgra(scene_of(world, mirror, profile=profile).draw("real"))[80:, :, 2] > 60).sum()
        for profile in (RenderProfile.QUALITY, RenderProfile.FAST)
    ]
    assert reds[0] > reds[1]


def pixel(viewport: Viewport) -> Any:
    with Image.open(io.BytesIO(viewport.screenshot(64, 48).png)) as image:
        return image.getpixel((32, 24))


def test_cameras_and_the_viewport_do_not_draw_into_each_others_pictures(
    scene_of: Callable[..., Any], images: Any
) -> None:
    red = '<geom size=".5" rgba="1 0 0 1"/>'
    made = scene_of(f'<camera name="eye" pos="-3 0 0" {images.along_x}/>{red}')
    green = scene_of('<geom size=".5" rgba="0 1 0 1"/>')
    seen = PosedModel(
        1, green.scene.model, *(getattr(green.snapshot, part) for part in ("qpos", "mocap_pos", "mocap_quat"))
    )
    viewport = Viewport(lambda: seen, Overlay())
    viewport.set_mode("unlit")
    viewport.set_camera((-3, 0, 0), (1, 0, 0, 0))
    first, before = made.draw("real"), pixel(viewport)
    for _ in range(2):
        assert made.draw("real").data == first.data
        assert pixel(viewport) == before == (0, 255, 0)
    other = SceneRenderer(made.scene, made.renderer.profile)
    other.close()
    made.renderer.close()
    assert pixel(viewport) == before
    assert np.argmax(images.bgra(first)[60, 80, :3]) == 2
    viewport.close()


@pytest.mark.parametrize("mode", ["real", "depth", "instance"])
def test_a_gl_that_cannot_turn_pictures_over_gives_the_same_ones(
    scene_of: Callable[..., Any], images: Any, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = scene_of(
        f'<camera name="eye" pos="-3 0 .4" {images.along_x}/><geom size=".5"/><geom pos="0 1 1" size=".3"/>'
    )
    first = made.draw(mode)
    monkeypatch.setattr(offscreen_buffer, "_can_invert_rows", lambda: False)
    assert made.draw(mode).data == first.data
    rows = np.frombuffer(first.data, np.uint32).reshape(first.height, first.width)
    assert (rows != rows[::-1]).any()


def test_drawing_depths_leaves_colours_as_they_are_and_the_next_picture_has_its_own(
    scene_of: Callable[..., Any], images: Any
) -> None:
    made = scene_of(f'<camera name="eye" pos="-3 0 0" {images.along_x}/><geom size=".5" rgba="1 0 0 1"/>')
    depths = made.draw("depth")
    real = made.draw("real")
    assert np.isfinite(images.metres(depths)).any()
    assert images.bgra(real)[60, 80, 2] > 100
    made.draw("depth")
    assert made.draw("real").data == real.data

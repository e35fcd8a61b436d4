"""What is asked of GL besides drawing, and several views in one GL context."""

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PIL import Image

from urlab.cameras import SceneRenderer, gl_framebuffer
from urlab.overlay import Overlay
from urlab.viewport import Stage as ViewStage
from urlab.viewport import Viewport


def pixel(viewport: Viewport) -> Any:
    with Image.open(io.BytesIO(viewport.screenshot(64, 48).png)) as image:
        return image.getpixel((32, 24))


def test_cameras_and_the_viewport_do_not_draw_into_each_others_pictures(stage: Callable[..., Any], eyes: Any) -> None:
    red = '<geom size=".5" rgba="1 0 0 1"/>'
    made = stage(f'<camera name="eye" pos="-3 0 0" {eyes.along_x}/>{red}')
    green = stage('<geom size=".5" rgba="0 1 0 1"/>')
    seen = ViewStage(
        1, green.scene.model, *(getattr(green.snapshot, part) for part in ("qpos", "mocap_pos", "mocap_quat"))
    )
    viewport = Viewport(lambda: seen, Overlay())
    viewport.set_mode("unlit")
    viewport.set_camera((-3, 0, 0), (1, 0, 0, 0))
    first, before = made.shoot("real"), pixel(viewport)
    for _ in range(2):
        assert made.shoot("real").data == first.data
        assert pixel(viewport) == before == (0, 255, 0)
    other = SceneRenderer(made.scene, made.renderer.profile)
    other.close()
    made.renderer.close()
    assert pixel(viewport) == before
    assert np.argmax(eyes.bgra(first)[60, 80, :3]) == 2
    viewport.close()


@pytest.mark.parametrize("mode", ["real", "depth", "instance"])
def test_a_gl_that_cannot_turn_pictures_over_gives_the_same_ones(
    stage: Callable[..., Any], eyes: Any, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = stage(f'<camera name="eye" pos="-3 0 .4" {eyes.along_x}/><geom size=".5"/><geom pos="0 1 1" size=".3"/>')
    first = made.shoot(mode)
    monkeypatch.setattr(gl_framebuffer, "_can_turn_over", lambda: False)
    assert made.shoot(mode).data == first.data
    rows = np.frombuffer(first.data, np.uint32).reshape(first.height, first.width)
    assert (rows != rows[::-1]).any()


def test_drawing_depths_leaves_colours_as_they_are_and_the_next_picture_has_its_own(
    stage: Callable[..., Any], eyes: Any
) -> None:
    made = stage(f'<camera name="eye" pos="-3 0 0" {eyes.along_x}/><geom size=".5" rgba="1 0 0 1"/>')
    depths = made.shoot("depth")
    real = made.shoot("real")
    assert np.isfinite(eyes.metres(depths)).any()
    assert eyes.bgra(real)[60, 80, 2] > 100
    made.shoot("depth")
    assert made.shoot("real").data == real.data

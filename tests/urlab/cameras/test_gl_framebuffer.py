"""Several views in one GL context."""

import io
from collections.abc import Callable
from typing import Any

import numpy as np
from PIL import Image

from urlab.cameras import SceneRenderer
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

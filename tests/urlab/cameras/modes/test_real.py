"""Colour pictures, compared with what bare MuJoCo draws."""

from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
import pytest

from urlab.cameras.profile import SETTINGS
from urlab.config import RenderProfile

MakeScene = Callable[..., Any]

SKY = '<asset><texture type="skybox" builtin="flat" rgb1="0 0 1" width="8" height="48"/></asset>'
LIT = """<light pos="0 0 4" dir="0 0 -1"/><geom type="plane" size="9 9 1" rgba=".5 .5 .5 1"/>
<geom type="box" pos="0 0 1" size=".4 .4 .1" rgba="1 0 0 1"/>
<camera name="eye" pos="-3 0 2" xyaxes="0 -1 0 .5 0 1" fovy="50"/>"""


@pytest.mark.parametrize("profile", SETTINGS)
def test_a_picture_is_mujocos_own(scene_of: MakeScene, images: Any, profile: RenderProfile) -> None:
    made = scene_of(LIT, SKY, profile=profile)
    pixels = images.bgra(made.draw("real"))
    settings, model = SETTINGS[profile], made.scene.model
    model.vis.quality.offsamples = settings.samples
    bare = images.bare_picture(model, made.engine.data, 0, images.size, settings.flags)
    differing = (pixels[..., 2::-1] != bare).any(axis=2)
    assert differing.mean() < 0.002
    assert (pixels[..., 3] == 255).all()


def test_the_profiles_differ_in_sky_shadow_and_smoothness(scene_of: MakeScene, images: Any) -> None:
    fast = images.bgra(scene_of(LIT, SKY, profile=RenderProfile.FAST).draw("real"))
    fine = images.bgra(scene_of(LIT, SKY, profile=RenderProfile.QUALITY).draw("real"))
    assert fast[0, 80, :3].tolist() == [0, 0, 0]
    assert fine[0, 80].tolist() == [255, 0, 0, 255]
    ground = (fast[..., 0] == fast[..., 1]) & (fast[..., 1] > 40)
    assert (fine[ground].astype(int)[:, 1] < fast[ground].astype(int)[:, 1] - 20).any(), "no shadow"
    reds = [len(np.unique(picture[picture[..., 2] > picture[..., 1]], axis=0)) for picture in (fast, fine)]
    assert reds[1] > reds[0], "edges are not smoothed"


def test_the_first_byte_is_blue_and_the_first_row_is_at_the_top(scene_of: MakeScene, images: Any) -> None:
    world = f"""<camera name="eye" {images.along_x} fovy="60"/>
    <geom type="box" pos="2 0 2" size=".1 4 1.9" rgba="0 0 1 1"/>
    <geom type="box" pos="2 0 -2" size=".1 4 1.9" rgba="1 0 0 1"/>"""
    pixels = images.bgra(scene_of(world).draw("real")).astype(int)
    top, bottom = pixels[2, 80], pixels[-3, 80]
    assert top[0] > 2 * max(top[1], top[2])
    assert bottom[2] > 2 * max(bottom[0], bottom[1])


def test_the_left_of_the_picture_is_the_left_of_the_camera(scene_of: MakeScene, images: Any) -> None:
    world = f'<camera name="eye" {images.along_x} fovy="60"/><geom pos="2 .6 0" size=".1" rgba="1 0 0 1"/>'
    frame = scene_of(world).draw("real")
    rows, columns = np.nonzero(images.bgra(frame)[..., 2])
    u, v, _ = images.project(frame, (2, 0.6, 0))
    assert (columns.mean() + 0.5, rows.mean() + 0.5) == pytest.approx((u, v), abs=0.5)
    assert u < 80


def test_the_rays_of_range_finders_are_not_seen(scene_of: MakeScene, images: Any) -> None:
    extra = '<sensor><rangefinder site="s"/></sensor>'
    world = f'<camera name="eye" {images.along_x}/><site name="s" pos="2 -1 0" quat="1 1 0 0" rgba="0 0 0 0"/>'
    assert not images.bgra(scene_of(world + '<geom pos="2 9 0" size=".1"/>', extra).draw("real"))[..., :3].any()


def test_skins_tendons_flexes_and_lights_follow_the_state(scene_of: MakeScene, images: Any) -> None:
    world = f"""<camera name="eye" pos="-1.5 0 0" {images.along_x}/><light pos="-1 0 2" dir="0 0 -1"/>
    <site name="a" pos="0 .5 0"/>
    <body name="ball"><joint name="up" type="slide" axis="0 0 1"/><geom size=".1"/><site name="b" pos="0 -.2 0"/>
    <light pos="-.5 0 .5" dir="1 0 -1"/>
    <flexcomp name="rag" type="grid" count="4 4 1" spacing=".1 .1 .1" radius=".01" rigid="true" dim="2"/></body>"""
    skin = """<deformable><skin name="tail" vertex="0 .3 0  0 .5 0  0 .3 .2" face="0 2 1 0 1 2">
    <bone body="ball" bindpos="0 0 0" bindquat="1 0 0 0" vertid="0 1 2" vertweight="1 1 1"/></skin></deformable>"""
    tendon = '<tendon><spatial name="string" width=".02"><site site="a"/><site site="b"/></spatial></tendon>'
    made = scene_of(world, skin + tendon)
    with made.engine.locked():
        made.engine.data.qpos[0] = 0.4
        made.engine.publish()
    data = mujoco.MjData(made.scene.model)
    data.qpos[0] = 0.4
    mujoco.mj_forward(made.scene.model, data)
    made.scene.model.vis.quality.offsamples = 0
    bare = images.bare_picture(made.scene.model, data, 0, images.size, SETTINGS[RenderProfile.FAST].flags)
    differing = (images.bgra(made.draw("real"))[..., 2::-1] != bare).any(axis=2)
    assert differing.mean() < 0.002
    assert (bare > 0).any(axis=2).mean() > 0.02

"""What each camera mode draws, and what its pixels mean."""

from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
import pytest

from urlab.cameras import segmentation_table
from urlab.cameras.modes import RealMode, declared_modes
from urlab.cameras.profile import SETTINGS
from urlab.config import RenderProfile
from urlab_wire.enums import CameraMode


def test_every_mode_of_the_protocol_is_declared() -> None:
    assert declared_modes() == set(CameraMode)


def test_a_mode_cannot_be_declared_twice() -> None:
    with pytest.raises(TypeError, match="camera mode 'real' is already RealMode"):
        type("Mine", (RealMode,), {}, kind=CameraMode.REAL)


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


def facing(distance_m: float, images: Any, camera: str = 'fovy="60"') -> str:
    """A camera at the origin that looks along X at the middle of a cube's face."""
    half = 0.4 * distance_m
    return f"""<camera name="eye" {images.along_x} {camera}/>
    <geom type="box" pos="{distance_m + half} 0 0" size="{half} {half} {half}"/>"""


@pytest.mark.parametrize("distance_m", [0.011, 0.05, 0.3, 1.75, 12.5, 40.0, 99.0])
def test_a_face_is_at_its_distance_to_a_tenth_of_a_millimetre(
    scene_of: MakeScene, images: Any, distance_m: float
) -> None:
    depths = images.metres(scene_of(facing(distance_m, images)).draw("depth"))
    seen = depths[np.isfinite(depths)]
    assert seen.size > 1000
    assert np.abs(seen - distance_m).max() < 1e-4


def test_it_is_measured_along_the_optical_axis_and_not_along_the_ray(scene_of: MakeScene, images: Any) -> None:
    world = f'<camera name="eye" {images.along_x} fovy="90"/><geom type="box" pos="2.5 0 0" size=".5 9 9"/>'
    depths = images.metres(scene_of(world).draw("depth"))
    assert depths == pytest.approx(np.full_like(depths, 2.0), abs=1e-5)


SCATTERED = """<geom type="plane" size="200 200 1"/>
<geom type="box" pos="1.2 .3 .8" euler="20 30 40" size=".1 .2 .3"/>
<geom type="box" pos="6 -1 .5" euler="50 10 80" size=".4 .3 .9"/>
<geom type="box" pos="50 6 3" euler="70 30 40" size="4 3 2"/>"""


@pytest.mark.parametrize("profile", [RenderProfile.FAST, RenderProfile.QUALITY])
@pytest.mark.parametrize(
    "camera",
    ['fovy="60"', 'sensorsize=".0064 .0048" focal=".005 .006" principal=".001 -.0005" resolution="160 120"'],
)
def test_every_pixel_agrees_with_a_ray(scene_of: MakeScene, images: Any, profile: RenderProfile, camera: str) -> None:
    tilted = f'<body pos="-.1 .05 1.1" euler="5 12 -7"><camera name="eye" {images.along_x} {camera}/></body>'
    made = scene_of(tilted + SCATTERED, profile=profile)
    frame = made.draw("depth")
    depths, truth = images.metres(frame), images.truth(made, frame)
    sure = truth.inside() & (truth.depths < 90)
    assert sure.mean() > 0.5
    assert {0, 1, 2, 3} <= set(np.unique(truth.geoms[sure]))
    assert (np.abs(depths[sure] / truth.depths[sure] - 1) < 2e-5).all()
    assert np.isinf(depths[truth.inside() & (truth.geoms < 0)]).all()


def test_nothing_is_infinitely_far(scene_of: MakeScene, images: Any) -> None:
    depths = images.metres(
        scene_of(f'<camera name="eye" {images.along_x}/><geom pos="-3 0 0" size="1"/>').draw("depth")
    )
    assert np.isposinf(depths).all()


def test_what_is_in_the_hand_is_seen_in_a_large_scene(scene_of: MakeScene, images: Any) -> None:
    made = scene_of(facing(0.02, images) + '<geom pos="0 400 0" size="1"/>')
    assert made.scene.model.stat.extent > 100
    depths = images.metres(made.draw("depth"))
    assert depths[60, 80] == pytest.approx(0.02, abs=1e-5)


def test_an_orthographic_camera_measures_too(scene_of: MakeScene, images: Any) -> None:
    frame = scene_of(facing(2.0, images, 'projection="orthographic" fovy="4"')).draw("depth")
    depths = images.metres(frame)
    seen = np.isfinite(depths)
    assert depths[seen] == pytest.approx(np.full(seen.sum(), 2.0), abs=1e-4)
    assert seen.sum() == (1.6 * frame.K[0]) * (1.6 * frame.K[4]) == 48 * 48


BOXES = """<body name="near" pos="2 .2 0" euler="20 30 40"><geom type="box" size=".3 .2 .4"/></body>
<body name="far" pos="5 -.6 .3" euler="70 30 40"><geom type="box" size=".8 .6 .9"/></body>
<body name="behind" pos="7 0 0"><geom type="box" size=".1 9 .3"/></body>"""


@pytest.mark.parametrize("profile", [RenderProfile.FAST, RenderProfile.QUALITY])
def test_every_pixel_has_exactly_the_colour_of_what_its_ray_meets(
    scene_of: MakeScene, images: Any, profile: RenderProfile
) -> None:
    made = scene_of(f'<camera name="eye" {images.along_x}/><light pos="0 0 3"/>' + BOXES, profile=profile)
    frame = made.draw("instance")
    names = images.names_seen(frame, segmentation_table(made.scene)["instance"])
    truth = images.truth(made, frame)
    expected = np.array(["t_near", "t_far", "t_behind", "background"])[truth.geoms]
    sure = truth.inside()
    assert sure.mean() > 0.8
    assert (names[sure] == expected[sure]).all()
    for name in ("t_near", "t_far", "t_behind"):
        edge = ((expected == name) & ~sure).sum()
        assert abs(int((names == name).sum()) - int((expected == name).sum())) <= edge / 2


def test_a_face_covers_the_pixels_that_its_size_and_distance_say(scene_of: MakeScene, images: Any) -> None:
    made = scene_of(f'<camera name="eye" {images.along_x} fovy="60"/><geom type="box" pos="2 0 0" size=".25 .4 .3"/>')
    frame = made.draw("semantic", size=(640, 480))
    names = images.names_seen(frame, segmentation_table(made.scene)["semantic"])
    left, top, depth = images.project(frame, (1.75, 0.4, 0.3))
    right, bottom, _ = images.project(frame, (1.75, -0.4, -0.3))
    assert depth == pytest.approx(1.75)
    u, v = np.meshgrid(np.arange(640) + 0.5, np.arange(480) + 0.5)
    expected = (u > left) & (u < right) & (v > top) & (v < bottom)
    assert ((names == "t") == expected).all()


def test_all_the_robot_is_one_thing_and_a_free_body_in_its_file_another(scene_of: MakeScene, images: Any) -> None:
    robot = images.mjcf(
        f"""<camera name="eye" {images.along_x}/><geom type="plane" pos="0 0 -.5" size="9 9 1"/>
        <body name="base" pos="3 1 0"><geom size=".3"/>
        <body name="arm" pos="0 -1 0"><joint/><geom size=".3"/></body></body>
        <body name="cube" pos="3 -1 0"><freejoint/><geom type="box" size=".3 .3 .3"/></body>"""
    )
    made = scene_of({"robot": robot})
    seen = images.names_seen(made.draw("instance"), segmentation_table(made.scene)["instance"])
    left, middle, right = (seen[60, column] for column in (45, 80, 115))
    assert (left, middle, right) == ("robot", "robot", "robot_cube")
    assert seen[118, 80] == "world"
    assert seen[5, 80] == "background"


def test_flexes_hfields_skins_and_tendons_belong_to_somebody(scene_of: MakeScene, images: Any) -> None:
    soft = f"""<mujoco><asset><hfield name="hill" nrow="4" ncol="4" size="1 1 .2 .1" elevation="{"1 0 " * 8}"/></asset>
    <worldbody><camera name="eye" pos="-3 0 1" xyaxes="0 -1 0 .3 0 1" fovy="80"/>
    <geom name="hill" type="hfield" hfield="hill" pos="0 0 -.5"/>
    <site name="a" pos="0 1 1" size=".01"/><site name="b" pos="0 -1 1" size=".01"/>
    <flexcomp name="rag" type="grid" count="6 6 1" spacing=".1 .1 .1" radius=".02" dim="2" pos="0 0 .4"/>
    <body name="ball" pos="0 0 1.3"><geom size=".1"/></body></worldbody>
    <deformable><skin name="tail" vertex="0 .6 0  0 1.2 0  0 .6 .4" face="0 2 1 0 1 2">
    <bone body="ball" bindpos="0 0 0" bindquat="1 0 0 0" vertid="0 1 2" vertweight="1 1 1"/></skin></deformable>
    <tendon><spatial width=".05"><site site="a"/><site site="b"/></spatial></tendon></mujoco>"""
    made = scene_of({"soft": soft})
    table = segmentation_table(made.scene)
    frame = made.draw("semantic")
    semantic = images.names_seen(frame, table["semantic"])
    places = {"tendon": (0, 0, 1), "flex": (0, 0, 0.4), "skin": (0, 0.7, 1.4), "hill": (-0.9, 0, -0.5)}
    pixels = {what: images.project(frame, point) for what, point in places.items()}
    found = {what: semantic[int(v), int(u)] for what, (u, v, _) in pixels.items()}
    assert found == {"tendon": "soft", "flex": "soft", "skin": "soft", "hill": "world"}
    shapes = np.isfinite(images.metres(made.draw("depth")))
    assert ((semantic != "background") == shapes).all(), "something is seen that belongs to nobody"


def test_colours_of_thousands_of_things_stay_exact(scene_of: MakeScene, images: Any) -> None:
    boxes = "".join(
        f'<body name="b{row}_{column}" pos="3 {1.95 - 0.1 * column} {1.45 - 0.1 * row}">'
        '<geom type="box" size=".01 .05 .05"/></body>'
        for row in range(30)
        for column in range(40)
    )
    made = scene_of(f'<camera name="eye" {images.along_x} fovy="53.6"/>' + boxes)
    seen = images.names_seen(made.draw("instance"), segmentation_table(made.scene)["instance"])
    assert seen[6, 6] == "t_b1_1"
    assert seen[114, 154] == "t_b28_38"
    assert len(np.unique(seen)) >= 1200

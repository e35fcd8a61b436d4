"""Segmentation, compared with geometry and with rays of MuJoCo's own."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from urlab.cameras import segmentation_table
from urlab.config import RenderProfile

MakeScene = Callable[..., Any]

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

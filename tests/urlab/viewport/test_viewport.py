"""The viewport: camera, pictures, and what they show of a state."""

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

import urlab
from urlab.cameras import SceneCamera, shared_gl
from urlab.compile.compiled_scene import CameraSlot
from urlab.config import RenderProfile
from urlab.errors import BadValue
from urlab.geometry import euler_deg_from_wxyz, wxyz_from_euler_deg
from urlab.overlay import Overlay
from urlab.viewport import Viewport
from urlab.viewport.renderer import OUTLINE_RGB
from urlab.viewport.view_mode import ViewMode
from urlab_wire.enums import CameraMode

RED, GREEN = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)
OUTLINE = tuple(part / 255 for part in OUTLINE_RGB)
WIDTH, HEIGHT = 320, 180
RED_BALL = "<geom size='.2' rgba='1 0 0 1'/>"
SLIDER = """
<mujoco><worldbody>
  <body><joint type="slide" axis="0 1 0"/><geom size=".1" rgba="1 0 0 1"/></body>
  <body mocap="true"><geom size=".1" rgba="0 1 0 1"/></body>
</worldbody></mujoco>
"""


def test_it_starts_out_looking_at_the_origin_from_above(make_posed: Any) -> None:
    camera = Viewport(lambda: make_posed("<mujoco/>"), Overlay()).camera
    assert camera.project((0.0, 0.0, 0.0), 200, 100) == pytest.approx((100.0, 50.0))
    assert (camera.location, camera.fov_deg) == ((-3.0, -3.0, 2.0), 90.0)


def test_what_is_left_out_when_the_camera_is_placed_stays(studio: Any) -> None:
    turn = wxyz_from_euler_deg((10, 20, 30))
    studio.viewport.set_camera((1.0, 2.0, 3.0), turn, 40.0)
    moved = studio.viewport.set_camera((4.0, 5.0, 6.0))
    assert (moved.location, moved.quat_wxyz, moved.fov_deg) == ((4.0, 5.0, 6.0), turn, 40.0)
    assert studio.viewport.camera == moved
    assert euler_deg_from_wxyz(moved.quat_wxyz) == pytest.approx((10, 20, 30))


@pytest.mark.parametrize("fov", [0.0, -10.0, 180.0, 360.0, float("nan")])
def test_a_field_of_view_outside_0_and_180_is_refused_and_changes_nothing(fov: float, studio: Any) -> None:
    before = studio.viewport.camera
    with pytest.raises(BadValue, match="fov must be between 0 and 180 degrees"):
        studio.viewport.set_camera((1.0, 2.0, 3.0), None, fov)
    assert studio.viewport.camera == before


def test_a_camera_out_of_this_world_is_refused(studio: Any) -> None:
    with pytest.raises(BadValue, match=r"within 1e\+06 m of the origin"):
        studio.viewport.set_camera((0.0, 2e6, 0.0))


@pytest.mark.parametrize("fov", [20.0, 60.0, 120.0])
@pytest.mark.parametrize(("width", "height"), [(320, 180), (200, 300)])
def test_the_field_of_view_is_horizontal(fov: float, width: int, height: int, studio: Any) -> None:
    studio.viewport.set_camera((-3.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0), fov)
    rim = 3 * np.tan(np.radians(fov) / 2)
    studio.show(f"<geom type='box' size='.001 {rim / 2} {rim / 4}' rgba='1 0 0 1'/>", mode="unlit")
    left, top, right, bottom = studio.find(RED, studio.picture(width=width, height=height)).box
    assert (left, right) == pytest.approx((width / 4, 3 * width / 4), abs=1)
    assert bottom - top == pytest.approx(width / 4, abs=1.5)


def test_a_rolled_camera_sees_a_rolled_world(studio: Any) -> None:
    studio.show("<geom size='.2' pos='0 1 0' rgba='1 0 0 1'/>", mode="unlit")
    studio.viewport.set_camera((-3.0, 0.0, 0.0), wxyz_from_euler_deg((90, 0, 0)))
    x, y = studio.find(RED, studio.picture(width=200, height=200)).middle
    assert x == pytest.approx(100, abs=1)
    assert y == pytest.approx(100 + 100 / 3, abs=2)


@pytest.mark.parametrize(("width", "height"), [(320, 180), (180, 320)])
def test_a_framed_box_fills_the_picture(width: int, height: int, studio: Any) -> None:
    studio.show("<geom type='box' pos='4 5 6' size='.3 .8 .4' rgba='1 0 0 1'/>", mode="unlit")
    studio.viewport.set_camera((0.0, 0.0, 9.0), wxyz_from_euler_deg((0, 25, 50)), 60.0)
    studio.picture(width=width, height=height)
    studio.viewport.frame((3.7, 4.2, 5.6), (4.3, 5.8, 6.4))
    left, top, right, bottom = studio.find(RED, studio.picture(width=width, height=height)).box
    assert 0 < left < right < width
    assert 0 < top < bottom < height
    assert max((right - left) / width, (bottom - top) / height) == pytest.approx(0.9, abs=0.02)
    assert (left + right) / 2 == pytest.approx(width / 2, abs=2)
    assert (top + bottom) / 2 == pytest.approx(height / 2, abs=2)


@pytest.mark.parametrize("size", [(16, 16), (4096, 16), (16, 4096), (333, 77)])
def test_pictures_have_the_size_that_was_asked_for(size: tuple[int, int], studio: Any) -> None:
    assert studio.picture(width=size[0], height=size[1]).shape == (size[1], size[0], 3)


@pytest.mark.parametrize("size", [(15, 100), (100, 15), (4097, 100), (100, 4097), (0, 0), (-1, 100)])
def test_other_sizes_are_refused(size: tuple[int, int], studio: Any) -> None:
    with pytest.raises(BadValue, match="must be between 16 and 4096 pixels, but is"):
        studio.viewport.screenshot(*size)


def test_a_picture_says_what_it_shows(studio: Any) -> None:
    studio.posed = replace(studio.posed, sim_time=1.25)
    shot = studio.viewport.screenshot()
    assert (shot.width, shot.height, shot.mode, shot.sim_time) == (1280, 720, ViewMode.LIT, 1.25)


def test_an_empty_level_is_one_colour(studio: Any) -> None:
    picture = studio.picture()
    assert (picture == picture[0, 0]).all()
    assert picture[0, 0].min() > 40, "and not black"


def test_a_model_with_a_sky_shows_it(studio: Any) -> None:
    sky = """<asset>
      <texture type='skybox' builtin='flat' rgb1='.1 .9 .3' rgb2='.1 .9 .3' width='16' height='96'/>
    </asset>"""
    studio.show(RED_BALL, extra=sky)
    assert list(studio.picture()[0, 0]) == pytest.approx([26, 230, 76], abs=2)


def test_a_picture_shows_the_state_of_the_stage(studio: Any, make_posed: Any) -> None:
    studio.viewport.set_mode("unlit")
    start = make_posed(SLIDER)
    for y, z in ((0.5, 0.3), (-0.7, -0.2)):
        studio.posed = replace(start, qpos=np.array([y]), mocap_pos=np.array([[0.0, 0.0, z]]))
        picture = studio.picture()
        assert studio.find(RED, picture).middle == pytest.approx(studio.pixel((0.0, y, 0.0)), abs=1)
        assert studio.find(GREEN, picture).middle == pytest.approx(studio.pixel((0.0, 0.0, z)), abs=1)


def test_tendons_and_lights_go_with_the_bodies_that_carry_them(studio: Any, make_posed: Any) -> None:
    stage = make_posed("""
      <mujoco>
        <visual><headlight active="0"/></visual>
        <worldbody>
          <geom type="plane" size="3 3 .05" pos="1 0 0" zaxis="-1 0 0" rgba="1 1 1 1"/>
          <site name="fixed" pos="0 0 .8" rgba="0 0 0 0"/>
          <body><joint type="slide" axis="0 1 0"/><geom size=".05" pos="-.1 0 0" rgba="0 0 0 0"/>
            <light pos="-1 0 0" dir="1 0 0" cutoff="15" diffuse="1 1 1" ambient="0 0 0"/>
            <site name="moving" rgba="0 0 0 0"/></body>
        </worldbody>
        <tendon><spatial width=".02" rgba="1 0 0 1"><site site="fixed"/><site site="moving"/></spatial></tendon>
      </mujoco>""")
    for y in (0.9, -0.9):
        studio.posed = replace(stage, qpos=np.array([y]))
        assert studio.find(RED, studio.picture("unlit")).has(*studio.pixel((0.0, y / 2, 0.4)), within=2)
        brightness = studio.picture("lit").sum(axis=2)
        lit, dark = studio.pixel((1.0, y, 0.0)), studio.pixel((1.0, -y, 0.0))
        assert brightness[int(lit[1]), int(lit[0])] > brightness[int(dark[1]), int(dark[0])] + 100


def test_a_sleeping_body_is_drawn_where_the_stage_says(studio: Any, make_posed: Any) -> None:
    stage = make_posed("""
      <mujoco><option><flag sleep="enable"/></option><worldbody>
        <body sleep="init"><freejoint/><geom size=".1" rgba="1 0 0 1"/></body></worldbody></mujoco>""")
    qpos = stage.qpos.copy()
    qpos[1] = 0.7
    studio.posed = replace(stage, qpos=qpos)
    assert studio.find(RED, studio.picture("unlit")).middle == pytest.approx(studio.pixel((0.0, 0.7, 0.0)), abs=1)


def test_another_model_under_another_key_is_drawn_anew(studio: Any) -> None:
    studio.show(RED_BALL, mode="unlit")
    assert studio.find(RED).count > 0
    studio.show("<geom size='.2' pos='0 1 0' rgba='0 1 0 1'/>", mode="unlit")
    picture = studio.picture()
    assert (studio.find(RED, picture).count, studio.find(GREEN, picture).count > 0) == (0, True)


def test_closing_gives_back_the_memory_and_the_next_picture_works_again(studio: Any) -> None:
    def framebuffers() -> int:
        from OpenGL import GL

        return sum(bool(GL.glIsFramebuffer(number)) for number in range(1, 1000))

    before = shared_gl().run(framebuffers)
    studio.show(RED_BALL, mode="unlit")
    first = studio.picture()
    assert shared_gl().run(framebuffers) > before
    studio.viewport.close()
    assert shared_gl().run(framebuffers) == before
    assert (studio.picture() == first).all()


def test_a_viewport_that_never_drew_closes_too(make_posed: Any) -> None:
    Viewport(lambda: make_posed("<mujoco/>"), Overlay()).close()


def test_an_error_of_the_stage_is_passed_on_and_costs_no_drawing(studio: Any) -> None:
    def broken() -> Any:
        raise BadValue("the level does not compile")

    viewport = Viewport(broken, studio.overlay)
    with pytest.raises(BadValue, match="does not compile"):
        viewport.screenshot()


def test_threads_may_ask_at_once(studio: Any, decode_png: Any) -> None:
    studio.show(RED_BALL)
    expected, shots = studio.picture(), []

    def shoot() -> None:
        shots.extend(studio.viewport.screenshot(320, 180).png for _ in range(5))

    threads = [threading.Thread(target=shoot) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(shots) == 20
    assert all((decode_png(png) == expected).all() for png in shots)


def test_taking_pictures_does_not_touch_a_simulation_that_runs(studio: Any, make_posed: Any) -> None:
    xml = """<mujoco><worldbody><geom type="plane" size="5 5 .1" pos="0 0 -1"/>
      <body pos="0 0 .5"><freejoint/><geom type="box" size=".1 .2 .3" rgba="1 0 0 1"/></body></worldbody></mujoco>"""
    stage = make_posed(xml)
    data, alone = mujoco.MjData(stage.model), mujoco.MjData(stage.model)
    data.qvel[:] = alone.qvel[:] = [0.3, 0.2, 0.1, 1.0, 2.0, 3.0]
    stop = threading.Event()

    def shoot() -> None:
        while not stop.is_set():
            studio.posed = replace(stage, qpos=data.qpos.copy())
            studio.viewport.screenshot(64, 64)

    viewer = threading.Thread(target=shoot)
    viewer.start()
    for _ in range(1500):
        mujoco.mj_step(stage.model, data)
    stop.set()
    viewer.join()
    for _ in range(1500):
        mujoco.mj_step(stage.model, alone)
    assert (data.qpos == alone.qpos).all()
    assert (data.qvel == alone.qvel).all()


def test_pictures_of_two_servers_do_not_mix(tmp_path: Path) -> None:
    with urlab.launch("box", project=tmp_path / "a") as box, urlab.launch("panda", project=tmp_path / "b") as arm:
        for client in (box, arm):
            client.viewport.set_camera((-1, 0, 0.3), rotation_euler=(0, 0, 0))
        taken = [client.viewport.screenshot(width=64, height=48) for client in (box, arm, box, arm)]
    assert taken[0] == taken[2] != taken[1] == taken[3]


# -- render profiles ---------------------------------------------------------------------------------------------------


def blended(picture: Any) -> int:
    """How many pixels of a red ball's picture are neither the ball nor what is behind it."""
    is_red = (np.abs(picture - np.array([255, 0, 0])) <= 3).all(axis=2)
    is_behind = (np.abs(picture - picture[0, 0]) <= 3).all(axis=2)
    return int((~is_red & ~is_behind).sum())


@pytest.mark.parametrize(("profile", "smooth"), [("fast", False), ("quality", True)])
def test_pictures_are_drawn_in_the_render_profile_and_say_so(studio: Any, profile: str, smooth: bool) -> None:
    studio.show(RED_BALL)
    viewport = studio.viewport = Viewport(lambda: studio.posed, Overlay(), profile=RenderProfile(profile))
    viewport.set_camera((-3.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0), 90.0)
    assert (blended(studio.picture("unlit")) > 0) == smooth
    assert viewport.screenshot(64, 48).rendering == {"profile": profile, "renderer": shared_gl().gl_name()}
    viewport.close()


def test_mirrors_are_drawn_in_every_profile(studio: Any) -> None:
    mirror = "<asset><material name='m' reflectance='.9' rgba='.1 .1 .1 1'/></asset>"
    studio.show("<geom type='plane' size='3 3 1' pos='0 0 -.3' material='m'/>" + RED_BALL, extra=mirror)
    studio.viewport = Viewport(lambda: studio.posed, Overlay(), profile=RenderProfile.FAST)
    studio.viewport.set_camera((-3.0, 0.0, 0.2), (1.0, 0.0, 0.0, 0.0), 60.0)

    def reddish(picture: Any) -> int:
        below = picture[HEIGHT // 2 + 50 :]
        return int((below[..., 0] > below[..., 1] + 40).sum())

    assert reddish(studio.picture("lit")) == 0
    assert reddish(studio.picture("reflections")) > 50
    assert reddish(studio.picture("lit")) == 0
    studio.viewport.close()


# -- the cameras of a model, and what is selected ----------------------------------------------------------------------

WATCHER = """<mujoco model="watcher"><worldbody>
  <geom size=".1" pos="2 0 0" rgba="1 0 0 1"/><geom size=".1" pos="0 2 0" rgba="0 1 0 1"/>
  <body name="head"><joint name="turn" axis="0 0 1"/><geom size=".01"/>
    <camera name="eye" xyaxes="0 -1 0 0 0 1" fovy="40"/><camera name="back" xyaxes="0 1 0 0 0 1"/></body>
</worldbody></mujoco>"""


def with_cameras(posed: Any) -> Any:
    slots = [
        CameraSlot(index, f"watcher_{name}", name, CameraMode.REAL, (64, 48), 40.0)
        for index, name in enumerate(("eye", "back"))
    ]
    cameras = {f"watcher/{one.short}": SceneCamera(f"watcher/{one.short}", one, "", one.mode) for one in slots}
    return replace(posed, cameras=cameras)


def test_it_looks_through_a_camera_of_the_model_wherever_that_goes(studio: Any, make_posed: Any) -> None:
    studio.posed = with_cameras(make_posed(WATCHER))
    before = studio.viewport.camera
    camera = studio.viewport.look_through("eye")
    assert studio.viewport.looks_through == "eye"
    assert camera.forward == pytest.approx((1, 0, 0), abs=1e-9)
    assert camera.up == pytest.approx((0, 0, 1), abs=1e-9)
    ahead = studio.find(RED, studio.picture("unlit"))
    assert ahead.middle == pytest.approx((WIDTH / 2, HEIGHT / 2), abs=1)
    left, _, right, _ = ahead.box
    assert right - left == pytest.approx(HEIGHT / np.tan(np.radians(20)) * 0.05, abs=2), "fovy is vertical"
    studio.posed = replace(studio.posed, qpos=np.array([np.pi / 2]))
    picture = studio.picture("unlit")
    assert (studio.find(RED, picture).count, studio.find(GREEN, picture).count > 0) == (0, True)
    assert studio.viewport.camera.forward == pytest.approx((0, 1, 0), abs=1e-9)
    assert studio.viewport.untrack() is True
    assert (studio.viewport.camera, studio.viewport.looks_through) == (before, None)
    assert studio.viewport.untrack() is False


def test_a_camera_that_is_not_there_is_refused_and_one_that_goes_leaves_the_view_behind(
    studio: Any, make_posed: Any
) -> None:
    studio.posed = with_cameras(make_posed(WATCHER))
    before = studio.viewport.camera
    with pytest.raises(BadValue, match="there is no camera 'nose'; there are: watcher/back, watcher/eye"):
        studio.viewport.look_through("nose")
    assert studio.viewport.camera == before
    studio.viewport.look_through("watcher/back")
    studio.posed = make_posed("<mujoco/>")
    assert studio.viewport.camera == before


@pytest.mark.parametrize("profile", ["fast", "quality"])
def test_the_selected_actor_is_outlined_and_no_other(studio: Any, make_posed: Any, profile: str) -> None:
    bodies = "".join(f"<body pos='0 {y} 0'><geom size='.3' rgba='0 0 1 1'/></body>" for y in (0.8, -0.8))
    studio.posed = make_posed(f"<mujoco><worldbody>{bodies}</worldbody></mujoco>")
    studio.viewport = Viewport(lambda: studio.posed, Overlay(), profile=RenderProfile(profile))
    studio.viewport.set_camera((-3.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0), 90.0)
    plain = studio.picture("lit")
    assert studio.find(OUTLINE, plain).count == 0
    studio.posed = replace(studio.posed, selected_bodies=(1,))
    outline = studio.find(OUTLINE, studio.picture())
    assert outline.middle == pytest.approx(studio.pixel((0.0, 0.8, 0.0)), abs=1.5)
    left, top, right, bottom = outline.box
    width = WIDTH / 2 * 0.3 / 3 * 2
    assert (right - left, bottom - top) == pytest.approx((width, width), abs=5)
    changed = np.abs(studio.picture() - plain).sum(axis=2) > 10
    assert (changed == outline.mask).all(), "nothing else changes"
    studio.posed = replace(studio.posed, selected_bodies=())
    assert (studio.picture() == plain).all()
    studio.viewport.close()


def test_what_hides_the_selected_actor_hides_its_outline(studio: Any, make_posed: Any) -> None:
    posed = make_posed("""<mujoco><worldbody><geom type="box" pos="-1 0 0" size=".1 1 1"/>
      <body><geom size=".3"/></body></worldbody></mujoco>""")
    studio.posed = replace(posed, selected_bodies=(1,))
    studio.viewport.set_camera((-3.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0), 60.0)
    assert studio.find(OUTLINE).count == 0


BALL = '<body><joint name="y" type="slide" axis="0 1 0"/><geom size=".3" rgba="1 0 0 1"/></body>'


def test_pictures_of_other_states_have_the_camera_of_now(studio: Any) -> None:
    posed = studio.show(BALL, mode="unlit")
    pictures = studio.viewport.pictures(200, 100)
    studio.viewport.set_camera((-30.0, 0.0, 0.0))
    studio.viewport.set_mode("wireframe")
    places = []
    for y in (-1.0, 0.0, 1.0):
        picture = pictures.draw(replace(posed, qpos=np.array([y])))
        assert picture.shape == (100, 200, 3)
        places.append(studio.find((1, 0, 0), picture.astype(int)).middle[0])
    pictures.close()
    pictures.close()
    assert places == pytest.approx([100 * (1 + 1 / 3), 100, 100 * (1 - 1 / 3)], abs=2)


def test_pictures_of_other_states_have_the_sizes_of_screenshots(studio: Any) -> None:
    with pytest.raises(BadValue, match="width must be between 16 and 4096"):
        studio.viewport.pictures(8, 100)

"""What MuJoCo draws over a model, looked at in the pictures."""

from dataclasses import dataclass, replace
from typing import Any

import mujoco
import numpy as np
import pytest

from urlab.errors import BadValue
from urlab.overlay.visual_flags import FLAGS, FRAMES, NAMES, VisualFlags

BOX = """<mujoco><worldbody><geom type="plane" size="9 9 1" rgba=".2 .2 .2 1"/>
<body name="crate" pos="0 0 .099"><freejoint/><geom type="box" size=".1 .1 .1" rgba="0 0 1 1"/></body>
<light pos="0 0 5"/></worldbody></mujoco>"""
ARM = """<mujoco><worldbody><body name="upper"><joint name="hinge" axis="0 1 0"/>
<geom type="capsule" fromto="0 0 0 0 0 .6" size=".04" rgba="0 0 1 1"/><site name="tip" pos="0 0 .6" size=".02"/>
<body name="lower" pos="0 0 .6"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 .5 0" size=".04"/>
<site name="end"/></body>
</body></worldbody>
<tendon><spatial width=".02" rgba="1 0 0 1"><site site="tip"/><site site="end"/></spatial></tendon>
<actuator><motor joint="hinge"/></actuator></mujoco>"""


def changed(studio: Any, **overlays: Any) -> Any:
    """Which pixels an overlay changes, (height, width)."""
    studio.viewport.set_overlays(dict.fromkeys(overlays, False))
    before = studio.picture()
    studio.viewport.set_overlays(overlays)
    after = studio.picture()
    studio.viewport.set_overlays(dict.fromkeys(overlays, False))
    return np.abs(after - before).sum(axis=2) > 40


def near(mask: Any, pixel: tuple[float, float], within: int = 6) -> bool:
    x, y = int(pixel[0]), int(pixel[1])
    return bool(mask[max(0, y - within) : y + within + 1, max(0, x - within) : x + within + 1].any())


@pytest.fixture
def resting(studio: Any, make_posed: Any) -> Any:
    """A box on a floor, seen from in front and a little above."""
    studio.posed = make_posed(BOX)
    studio.viewport.set_camera((-1.0, 0.0, 0.25), (1.0, 0.0, 0.0, 0.0), 60.0)
    return studio


def test_contacts_appear_where_mujoco_has_them(resting: Any) -> None:
    data = mujoco.MjData(resting.posed.model)
    mujoco.mj_forward(resting.posed.model, data)
    assert data.ncon == 4
    mask = changed(resting, contacts=True)
    front = [place for place in data.contact.pos if place[0] < 0]
    assert len(front) == 2
    for place in front:
        assert near(mask, resting.pixel(tuple(place)))
    rows = np.flatnonzero(mask.any(axis=1))
    floor_row = resting.pixel((-0.1, 0.0, 0.0))[1]
    assert (np.abs(rows - floor_row) < 25).all(), "nothing else changes"


def test_frames_of_contacts_appear_where_mujoco_has_them(resting: Any) -> None:
    mask = changed(resting, frames="contact")
    assert near(mask, resting.pixel((-0.1, 0.1, 0.02)))
    assert not near(mask, resting.pixel((-0.1, 0.0, 0.1)), within=3)


def test_a_box_in_the_air_has_no_contacts(resting: Any) -> None:
    lifted = resting.posed.qpos.copy()
    lifted[2] = 0.5
    resting.posed = replace(resting.posed, qpos=lifted)
    assert not changed(resting, contacts=True, contact_forces=True).any()


def test_contact_forces_stand_on_the_contacts(resting: Any) -> None:
    mask = changed(resting, contact_forces=True)
    upward = [resting.pixel((-0.1, y, 0.05)) for y in (-0.1, 0.1)]
    assert all(near(mask, pixel) for pixel in upward)


def test_pictures_with_overlays_are_of_the_velocities_and_controls_too(studio: Any, make_posed: Any) -> None:
    studio.posed = make_posed(ARM)
    studio.viewport.set_camera((-2.0, 0.0, 0.3), (1.0, 0.0, 0.0, 0.0), 60.0)
    studio.viewport.set_overlays({"actuators": True})
    idle = studio.picture()
    studio.posed = replace(studio.posed, ctrl=np.array([1.0]), qvel=np.zeros(2))
    assert (idle != studio.picture()).any()


@pytest.mark.parametrize(
    ("overlays", "place"),
    [
        ({"joints": True}, (0.0, 0.0, 0.0)),
        ({"com": True}, (0.0, 0.25, 0.6)),
        ({"frames": "world"}, (0.0, 0.0, 0.02)),
        ({"frames": True}, (0.0, 0.0, 0.6)),
        ({"inertia": True}, (0.0, 0.0, 0.3)),
        ({"transparent": True}, (0.0, 0.0, 0.3)),
    ],
)
def test_overlays_appear_at_their_elements(
    studio: Any, make_posed: Any, overlays: dict[str, Any], place: tuple[float, float, float]
) -> None:
    studio.posed = make_posed(ARM)
    studio.viewport.set_camera((-2.0, 0.0, 0.3), (1.0, 0.0, 0.0, 0.0), 60.0)
    assert near(changed(studio, **overlays), studio.pixel(place), within=14)


def test_names_are_written_at_their_bodies(studio: Any, make_posed: Any) -> None:
    studio.posed = make_posed(ARM)
    studio.viewport.set_camera((-2.0, 0.0, 0.3), (1.0, 0.0, 0.0, 0.0), 60.0)
    bodies, joints = changed(studio, names=True), changed(studio, names="joint")
    assert bodies.sum() > 30
    assert (joints & ~changed(studio, joints=True)).sum() > 10


@pytest.mark.parametrize("word", [*FLAGS, "frames", "names"])
@pytest.mark.parametrize("mode", ["lit", "collision"])
def test_every_overlay_can_be_drawn(studio: Any, make_posed: Any, word: str, mode: str) -> None:
    studio.posed = make_posed(ARM)
    studio.viewport.set_overlays({word: True})
    assert studio.picture(mode, width=64, height=48).shape == (48, 64, 3)


@pytest.mark.parametrize(
    ("word", "kind"), [*(("frames", kind) for kind in FRAMES), *(("names", kind) for kind in NAMES)]
)
def test_every_kind_can_be_drawn(studio: Any, make_posed: Any, word: str, kind: str) -> None:
    studio.posed = make_posed(BOX)
    assert studio.viewport.set_overlays({word: kind})[word] == kind
    assert studio.picture(width=64, height=48).shape == (48, 64, 3)


def test_every_flag_of_mujoco_has_a_word() -> None:
    own = {mujoco.mjtVisFlag.mjVIS_PERTOBJ, mujoco.mjtVisFlag.mjVIS_SELECT}  # they come with perturbation
    every = {flag for name, flag in mujoco.mjtVisFlag.__members__.items() if name != "mjNVISFLAG"}
    assert set(FLAGS.values()) | own == every


def test_what_is_in_force_is_told_and_the_rest_is_as_mujoco_has_it() -> None:
    flags = VisualFlags()
    shown = {word for word, value in flags.in_force().items() if value}
    assert shown == {"tendons", "textures", "static_bodies", "skins", "flex_edges", "flex_skins"}
    both = flags.changed({"contacts": True, "names": True}).changed({"tendons": False})
    assert {word: both.in_force()[word] for word in ("contacts", "names", "tendons", "frames")} == {
        "contacts": True,
        "names": "body",
        "tendons": False,
        "frames": False,
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"contatcs": True}, "there is no overlay 'contatcs'; there are: .*contacts"),
        ({"frames": "wheel"}, "frames must be true, false or one of .*body.*, not 'wheel'"),
        ({"contacts": "yes"}, "contacts must be true or false, not 'yes'"),
    ],
)
def test_what_does_not_exist_is_refused_and_changes_nothing(studio: Any, changes: dict[str, Any], message: str) -> None:
    before = studio.viewport.set_overlays({})
    with pytest.raises(BadValue, match=message):
        studio.viewport.set_overlays({"joints": True, **changes})
    assert studio.viewport.set_overlays({}) == before


def test_a_sleeping_body_has_its_contacts_where_it_is_shown(studio: Any, make_posed: Any) -> None:
    asleep = BOX.replace("<worldbody>", "<option><flag sleep='enable'/></option><worldbody>")
    studio.posed = make_posed(asleep.replace('name="crate"', 'name="crate" sleep="init"'))
    studio.viewport.set_camera((-1.0, 0.0, 0.25), (1.0, 0.0, 0.0, 0.0), 60.0)
    assert near(changed(studio, contacts=True), studio.pixel((-0.1, 0.1, 0.0)))


# -- bodies that are pushed and dragged --------------------------------------------------------------------------------


@dataclass
class Held:
    """What holds a body, by default nothing."""

    body_id: int = 1
    point: Any = (0.0, 0.0, 0.0)
    force: Any = None
    torque: Any = None
    target: Any = None


def test_a_push_is_an_arrow_along_its_force(resting: Any) -> None:
    resting.posed = replace(resting.posed, held=(Held(force=np.array([0.0, 500.0, 0.0])),))
    mask = changed(resting, perturbation=True)
    columns = np.flatnonzero(mask.any(axis=0))
    middle = resting.pixel((0.0, 0.0, 0.1))[0]
    assert columns.size
    assert columns.min() < middle - 10, "+Y is to the left"
    assert columns.max() < middle + 10


def test_a_drag_is_drawn_from_the_body_to_its_target(resting: Any) -> None:
    resting.posed = replace(resting.posed, held=(Held(target=np.array([0.0, 0.3, 0.4])),))
    mask = changed(resting, perturbation=True)
    assert near(mask, resting.pixel((0.0, 0.3, 0.4)), within=12)
    assert near(mask, resting.pixel((0.0, 0.2, 0.3)), within=12), "and on the way"


def test_without_the_overlay_nothing_is_drawn_of_it(resting: Any) -> None:
    before = resting.picture()
    resting.posed = replace(resting.posed, held=(Held(target=np.array([0.0, 0.3, 0.4])), Held(force=np.ones(3))))
    assert (resting.picture() == before).all()

"""Contacts and keyframes, as clients read them."""

from typing import Any

import mujoco
import numpy as np
import pytest

from urlab.errors import UnknownKeyframe
from urlab.physics.queries import find_keyframes, list_keyframes, read_contacts
from urlab_wire.ops.runtime import ContactFilter

MASS_KG, GRAVITY = 2.0, 9.81
SCENE = """
<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 .1"/>
    <body name="crate" pos="0 0 .1"><freejoint/><geom name="hull" type="box" size=".1 .1 .1" mass="2"/></body>
    <body name="ball" pos="1 0 .05"><freejoint/><geom name="skin" size=".05" mass="1"/></body>
    <body name="drone" pos="0 1 3" gravcomp="1"><freejoint/><geom name="rotor" size=".05" mass="1"/></body>
  </worldbody>
</mujoco>
"""


@pytest.fixture(scope="module")
def rest() -> tuple[Any, Any]:
    model = mujoco.MjModel.from_xml_string(SCENE)
    data = mujoco.MjData(model)
    for _ in range(500):
        mujoco.mj_step(model, data)
    return model, data


def test_a_contact_says_who_touches_whom(rest: tuple[Any, Any]) -> None:
    contacts, truncated = read_contacts(*rest, None, 64)
    assert not truncated
    assert [(one.geom1, one.geom2, one.body1, one.body2) for one in contacts] == [
        *[("floor", "hull", "world", "crate")] * 4,
        ("floor", "skin", "world", "ball"),
    ]


def test_a_contact_says_where(rest: tuple[Any, Any]) -> None:
    for one in read_contacts(*rest, ContactFilter(geom2="hull"), 64)[0]:
        np.testing.assert_allclose(one.normal, (0, 0, 1), atol=1e-9)
        np.testing.assert_allclose(np.abs(one.pos), (0.1, 0.1, 0), atol=2e-3)
        assert -1e-3 < one.dist <= 0


def test_the_forces_carry_the_weight(rest: tuple[Any, Any]) -> None:
    forces = np.array([one.force for one in read_contacts(*rest, ContactFilter(body2="crate"), 64)[0]])
    assert forces.shape == (4, 6)
    assert forces[:, 0].sum() == pytest.approx(MASS_KG * GRAVITY, rel=1e-3)
    np.testing.assert_allclose(forces[:, 1:], 0, atol=1e-3)


@pytest.mark.parametrize(
    ("wanted", "count"),
    [
        (ContactFilter(), 5),
        (ContactFilter(geom1="floor"), 5),
        (ContactFilter(geom2="skin"), 1),
        (ContactFilter(body1="world", body2="ball"), 1),
        (ContactFilter(geom1="floor", geom2="hull", body1="world", body2="crate"), 4),
        (ContactFilter(geom1="hull", body2="ball"), 0),
        (ContactFilter(body2="drone"), 0),
        (ContactFilter(geom1="nobody"), 0),
    ],
)
def test_filters_must_all_hold(wanted: ContactFilter, count: int, rest: tuple[Any, Any]) -> None:
    assert len(read_contacts(*rest, wanted, 64)[0]) == count


@pytest.mark.parametrize(("limit", "count", "truncated"), [(0, 0, True), (4, 4, True), (5, 5, False), (99, 5, False)])
def test_more_than_the_limit_is_said_not_sent(limit: int, count: int, truncated: bool, rest: tuple[Any, Any]) -> None:
    contacts, more = read_contacts(*rest, None, limit)
    assert (len(contacts), more) == (count, truncated)


def test_the_limit_counts_only_what_matches(rest: tuple[Any, Any]) -> None:
    contacts, more = read_contacts(*rest, ContactFilter(geom2="skin"), 1)
    assert (len(contacts), more) == (1, False)


def test_nothing_touches_in_an_empty_world() -> None:
    model = mujoco.MjModel.from_xml_string("<mujoco/>")
    assert read_contacts(model, mujoco.MjData(model), None, 64) == ([], False)


MODEL = """
<mujoco>
  <worldbody>
    <body><joint name="j"/><geom size=".1"/></body><body mocap="true"/>
  </worldbody>
  <actuator><motor joint="j"/></actuator>
  <keyframe>
    <key name="a_home" time="2" qpos="1" qvel="2" ctrl="3" mpos="4 5 6" mquat="0 0 0 1"/>
    <key name="b_home"/><key name="b_rest" qpos="7"/><key name="home-b"/>
  </keyframe>
</mujoco>
"""


@pytest.fixture(scope="module")
def model() -> Any:
    return mujoco.MjModel.from_xml_string(MODEL)


@pytest.mark.parametrize(("name", "index"), [("a_home", 0), ("b_home", 1), ("b_rest", 2), ("rest", 2), ("home-b", 3)])
def test_a_keyframe_is_found_by_its_name_with_or_without_prefix(name: str, index: int, model: Any) -> None:
    assert find_keyframes(model, name, ["a", "b"]) == [index]


def test_a_short_name_that_two_robots_have_means_both_keyframes(model: Any) -> None:
    assert find_keyframes(model, "home", ["a", "b"]) == [0, 1]
    assert find_keyframes(model, "home", ["b"]) == [1]


@pytest.mark.parametrize("name", ["", "none", "ome", "a_rest"])
def test_a_keyframe_that_is_not_there_says_which_are(name: str, model: Any) -> None:
    with pytest.raises(UnknownKeyframe, match=r"there is no keyframe '.*'; there are: a_home, b_home, b_rest, home-b"):
        find_keyframes(model, name, ["a", "b"])


def test_keyframes_are_listed_with_all_their_numbers(model: Any) -> None:
    first, second, *_ = list_keyframes(model)
    assert (first.name, first.time, first.qpos, first.qvel, first.ctrl) == ("a_home", 2, [1], [2], [3])
    assert (first.mocap_pos, first.mocap_quat) == ([4, 5, 6], [0, 0, 0, 1])
    assert (second.qpos, second.mocap_pos, second.mocap_quat) == ([0], [0, 0, 0], [1, 0, 0, 0])
    assert [one.name for one in list_keyframes(model)] == ["a_home", "b_home", "b_rest", "home-b"]

"""Contacts and keyframes, as clients read them."""

from typing import Any

import mujoco
import numpy as np
import pytest

from urlab.errors import UnknownBody, UnknownKeyframe
from urlab.physics.queries import ContactNames, find_keyframes, list_keyframes, read_contacts
from urlab.physics.snapshot import ContactSnapshot
from urlab_wire.ops.runtime import ContactFilter

Contacts = tuple[ContactSnapshot, ContactNames]
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
def rest() -> Contacts:
    model = mujoco.MjModel.from_xml_string(SCENE)
    data = mujoco.MjData(model)
    for _ in range(500):
        mujoco.mj_step(model, data)
    return contacts_of(model, data)


def contacts_of(model: Any, data: Any, prefixes: tuple[str, ...] = ()) -> Contacts:
    return ContactSnapshot(model, data, 0), ContactNames(model, prefixes)


def test_a_contact_says_who_touches_whom(rest: Contacts) -> None:
    contacts, truncated = read_contacts(*rest, None, 64)
    assert not truncated
    assert [(one.geom1, one.geom2, one.body1, one.body2) for one in contacts] == [
        *[("floor", "hull", "world", "crate")] * 4,
        ("floor", "skin", "world", "ball"),
    ]


def test_a_contact_says_where(rest: Contacts) -> None:
    for one in read_contacts(*rest, ContactFilter(geom2="hull"), 64)[0]:
        np.testing.assert_allclose(one.normal, (0, 0, 1), atol=1e-9)
        np.testing.assert_allclose(np.abs(one.pos), (0.1, 0.1, 0), atol=2e-3)
        assert -1e-3 < one.dist <= 0


def test_the_forces_carry_the_weight(rest: Contacts) -> None:
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
    ],
)
def test_filters_must_all_hold(wanted: ContactFilter, count: int, rest: Contacts) -> None:
    assert len(read_contacts(*rest, wanted, 64)[0]) == count


@pytest.mark.parametrize(("limit", "count", "truncated"), [(0, 0, True), (4, 4, True), (5, 5, False), (99, 5, False)])
def test_more_than_the_limit_is_said_not_sent(limit: int, count: int, truncated: bool, rest: Contacts) -> None:
    contacts, more = read_contacts(*rest, None, limit)
    assert (len(contacts), more) == (count, truncated)


def test_the_limit_counts_only_what_matches(rest: Contacts) -> None:
    contacts, more = read_contacts(*rest, ContactFilter(geom2="skin"), 1)
    assert (len(contacts), more) == (1, False)


def test_nothing_touches_in_an_empty_world() -> None:
    model = mujoco.MjModel.from_xml_string("<mujoco/>")
    assert read_contacts(*contacts_of(model, mujoco.MjData(model)), None, 64) == ([], False)


PILE = """
<mujoco><option cone="{cone}"/><worldbody><geom name="floor" type="plane" size="5 5 .1" condim="1"/>
  <body name="a_box" pos="0 0 .09"><freejoint/><geom name="a_hull" type="box" size=".1 .1 .1" condim="3"/></body>
  <body name="a_ball" pos="1 0 .09"><freejoint/><geom name="a_skin" size=".1" condim="6"/></body>
  <body name="b_ball" pos="2 0 .09"><freejoint/><geom name="b_skin" size=".1" condim="1"/></body>
  <body name="b_peg" pos="2.5 0 .09"><freejoint/><geom name="b_tip" size=".1" condim="4"/></body>
  <flexcomp name="b_cloth" type="grid" count="3 3 1" spacing=".1 .1 .1" pos="3 0 .05" mass="1" radius=".02" dim="2">
    <edge equality="true"/><contact condim="3" selfcollide="none"/></flexcomp></worldbody></mujoco>"""


def piled(cone: str = "pyramidal") -> tuple[Any, Any]:
    model = mujoco.MjModel.from_xml_string(PILE.format(cone=cone))
    data = mujoco.MjData(model)
    data.qvel[:] = 0.3
    for _ in range(60):
        mujoco.mj_step(model, data)
    return model, data


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_forces_of_every_kind_of_contact_are_bit_for_bit_those_of_mujoco(cone: str) -> None:
    model, data = piled(cone)
    contacts, _ = read_contacts(*contacts_of(model, data), None, 999)
    assert set(data.contact.dim) == {1, 3, 4, 6}
    assert len(contacts) == data.ncon
    force = np.zeros(6)
    for index, one in enumerate(contacts):
        mujoco.mj_contactForce(model, data, index, force)
        assert one.force == force.tolist()


def test_contacts_keep_what_they_were_while_the_simulation_goes_on() -> None:
    model, data = piled()
    contacts, names = contacts_of(model, data)
    before = read_contacts(contacts, names, None, 999)
    for _ in range(50):
        mujoco.mj_step(model, data)
    assert read_contacts(contacts, names, None, 999) == before
    assert read_contacts(*contacts_of(model, data), None, 999) != before


def test_a_flex_that_touches_has_a_name() -> None:
    contacts, names = contacts_of(*piled(), ("a", "b"))
    sides = {(one.geom2, one.body2) for one in read_contacts(contacts, names, None, 999)[0]}
    assert ("b_cloth", "b_cloth") in sides
    touching = read_contacts(contacts, names, ContactFilter(geom1="floor", body2="cloth"), 999)[0]
    assert len(touching) == 9, "one per vertex"


def test_a_name_may_be_short_where_it_is_unique() -> None:
    contacts, names = contacts_of(*piled(), ("a", "b"))
    short, full = ({"body2": name} for name in ("box", "a_box"))
    assert read_contacts(contacts, names, ContactFilter(**short), 64)[0]
    assert read_contacts(contacts, names, ContactFilter(**short), 64) == (
        read_contacts(contacts, names, ContactFilter(**full), 64)
    )


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (ContactFilter(body1="ball"), "body 'ball' is ambiguous: a_ball, b_ball"),
        (ContactFilter(body2="a_bax"), r"no body 'a_bax' \(did you mean 'a_box'\?\); there are: a_ball, a_box, b_ball"),
        (ContactFilter(geom1="a_box"), "no geom 'a_box'.* there are: a_hull, a_skin, b_cloth, b_skin, b_tip, floor"),
        (ContactFilter(geom2="nothing"), "no geom 'nothing'; there are"),
    ],
)
def test_a_name_of_nothing_is_refused_with_those_that_exist(wanted: ContactFilter, words: str) -> None:
    contacts, names = contacts_of(*piled(), ("a", "b"))
    with pytest.raises(UnknownBody, match=words):
        read_contacts(contacts, names, wanted, 64)


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
    with pytest.raises(
        UnknownKeyframe, match=r"there is no keyframe '.*'; there are: a_home, b_home, b_rest, home, home-b, rest"
    ):
        find_keyframes(model, name, ["a", "b"])


def test_keyframes_are_listed_with_all_their_numbers(model: Any) -> None:
    first, second, *_ = list_keyframes(model)
    assert (first.name, first.time, first.qpos, first.qvel, first.ctrl) == ("a_home", 2, [1], [2], [3])
    assert (first.mocap_pos, first.mocap_quat) == ([4, 5, 6], [0, 0, 0, 1])
    assert (second.qpos, second.mocap_pos, second.mocap_quat) == ([0], [0, 0, 0], [1, 0, 0, 0])
    assert [one.name for one in list_keyframes(model)] == ["a_home", "b_home", "b_rest", "home-b"]

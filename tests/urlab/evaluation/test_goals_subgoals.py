"""Subgoals about positions, directions and joints."""

import math

import pytest

from urlab.evaluation.goals.placed import PlacedObjects
from urlab.evaluation.goals.subgoals import (
    SUBGOALS,
    AxisAlign,
    CountRelationship,
    JointAngle,
    MatchOrientation,
    OrientationRange,
    Range,
    Relationship,
    Status,
)
from urlab.evaluation.tasks.objects import ObjectSpec, Placement
from urlab.evaluation.tasks.pose import Pose, angle_quat
from urlab.evaluation.tasks.shapes.furniture import DoorCabinet, DrawerCabinet
from urlab.evaluation.tasks.shapes.solids import Box
from urlab.geometry import Quat

NOWHERE = Placement((0.0, 0.0), (0.0, 0.0))
OBJECTS = {name: ObjectSpec(name, Box((0.04, 0.04, 0.04)), NOWHERE) for name in ("a", "b", "c", "d")}
OBJECTS["drawers"] = ObjectSpec("drawers", DrawerCabinet((0.2, 0.2, 0.1), 0.15), NOWHERE, fixed=True)
OBJECTS["closet"] = ObjectSpec("closet", DoorCabinet((0.14, 0.18, 0.14)), NOWHERE, fixed=True)


def at(*, drawer: float = 0.0, door_deg: float = 0.0, **poses: Pose) -> PlacedObjects:
    everywhere = {name: Pose((5.0 * number, 5.0, 1.0)) for number, name in enumerate(OBJECTS)}
    return PlacedObjects(
        OBJECTS, {**everywhere, **poses}, {"drawers": {"drawer": drawer}, "closet": {"door": math.radians(door_deg)}}
    )


def turned(axis: str, degrees: float) -> Pose:
    return Pose((0.0, 0.0, 1.0), angle_quat([float(axis == one) for one in "xyz"], math.radians(degrees)))


def test_the_registry_has_the_types_of_genmanip_and_status() -> None:
    assert set(SUBGOALS) == {
        "relationship",
        "range",
        "axis_align",
        "match_local_world_orientation",
        "check_joint_angle",
        "count_multi_object_relationship",
        "status",
    }


@pytest.mark.parametrize(("z", "expected"), [(1.0999, False), (1.1, True), (1.2, True), (1.2001, False)])
def test_a_range_includes_its_ends(z: float, expected: bool) -> None:
    subgoal = Range("a", x=(-0.1, 0.1), z=(1.1, 1.2))
    assert subgoal.holds(at(a=Pose((0.0, 9.0, z)))) is expected
    assert not subgoal.holds(at(a=Pose((0.2, 9.0, z))))


def test_a_range_can_be_relative_axis_by_axis() -> None:
    subgoal = Range("a", x=(0.1, 0.2), y=(-0.05, 0.05), x_of="b", y_of="c")
    placed = {"b": Pose((1.0, 7.0, 1.0)), "c": Pose((7.0, 2.0, 1.0))}
    assert subgoal.holds(at(a=Pose((1.15, 2.04, 3.0)), **placed))
    assert not subgoal.holds(at(a=Pose((1.25, 2.04, 3.0)), **placed))
    assert not subgoal.holds(at(a=Pose((1.15, 2.06, 3.0)), **placed))


@pytest.mark.parametrize(
    ("degrees", "below", "above"), [(0, True, False), (9.9, True, False), (10.1, False, True), (180, False, True)]
)
def test_axes_are_aligned_below_a_threshold(degrees: float, below: bool, above: bool) -> None:
    placed = at(a=turned("z", 30 + degrees), b=turned("z", 30))
    assert AxisAlign("a", "b", "x", "x", 10.0).holds(placed) is below
    assert AxisAlign("a", "b", "x", "x", 10.0, "above").holds(placed) is above


def test_axes_have_signs_unless_either_way_will_do() -> None:
    placed = at(a=turned("z", 180), b=turned("z", 0))
    assert not AxisAlign("a", "b", "x", "+x", 10.0).holds(placed)
    assert AxisAlign("a", "b", "-x", "x", 10.0).holds(placed)
    assert AxisAlign("a", "b", "x", "x", 10.0, either_way=True).holds(placed)
    assert AxisAlign("a", "b", "x", "y", 91.0).holds(placed)
    assert not AxisAlign("a", "b", "x", "y", 89.0, either_way=True).holds(placed)


@pytest.mark.parametrize(
    ("tilt", "upright", "fallen"), [(0, True, False), (14, True, False), (20, False, False), (90, False, True)]
)
def test_orientation_is_an_angle_between_own_and_world_axes(tilt: float, upright: bool, fallen: bool) -> None:
    placed = at(a=turned("x", tilt))
    up = OrientationRange("z", "z", (0.0, 15.0))
    sideways = OrientationRange("z", "-y", (0.0, 15.0))
    assert MatchOrientation("a", [up]).holds(placed) is upright
    assert MatchOrientation("a", [sideways]).holds(placed) is fallen
    assert MatchOrientation("a", [up, sideways]).holds(placed) is False
    assert MatchOrientation("a", [up, sideways], "any").holds(placed) is (upright or fallen)


@pytest.mark.parametrize(("degrees", "expected"), [(29.9, False), (30.1, True), (59.9, True), (60.1, False)])
def test_a_hinge_is_judged_in_degrees(degrees: float, expected: bool) -> None:
    assert JointAngle("closet", "door", (30.0, 60.0)).holds(at(door_deg=degrees)) is expected


@pytest.mark.parametrize(("metres", "expected"), [(0.099, False), (0.1, True), (0.151, False)])
def test_a_slide_is_judged_in_metres(metres: float, expected: bool) -> None:
    assert JointAngle("drawers", "drawer", (0.1, 0.15)).holds(at(drawer=metres)) is expected


@pytest.mark.parametrize(("metres", "expected"), [(0.0, True), (0.05, False), (0.12, True)])
def test_any_status_will_do(metres: float, expected: bool) -> None:
    statuses = [{"drawer": (0.0, 0.01)}, {"drawer": (0.1, 0.15)}]
    assert Status("drawers", statuses).holds(at(drawer=metres)) is expected


@pytest.mark.parametrize("count", range(4))
def test_counting_needs_enough_objects_in_their_place(count: int) -> None:
    poses = {
        name: Pose((0.0, 0.0, 1.04 + 0.04 * number)) for number, name in enumerate(("b", "c", "d")) if number < count
    }
    placed = at(a=Pose((0.0, 0.0, 1.0)), **poses)
    assert [CountRelationship(["b", "c", "d"], "near", "a", at_least).holds(placed) for at_least in (1, 2, 3)] == [
        count >= 1,
        count >= 2,
        count >= 3,
    ]


def test_a_relationship_asks_about_its_objects() -> None:
    placed = at(a=Pose((0.0, 0.0, 1.04)), b=Pose((0.0, 0.0, 1.0)), c=Pose((0.1, 0.0, 1.0)), d=Pose((-0.1, 0.0, 1.0)))
    assert Relationship("a", "on", "b").holds(placed)
    assert not Relationship("c", "on", "a").holds(placed)
    assert Relationship("b", "between", "c", "d").holds(placed)
    assert Relationship("b", "front", "c").holds(placed)


def test_a_tiny_error_in_a_quaternion_does_no_harm() -> None:
    almost: Quat = (1.0, 1e-12, 0.0, 0.0)
    assert MatchOrientation("a", [OrientationRange("z", "z", (0.0, 1e-6))]).holds(at(a=Pose((0, 0, 1), almost)))

"""Subgoals about positions, directions and joints."""

import math

import msgspec
import pytest

from urlab.evaluation.goals.scoring import holds, is_true
from urlab.evaluation.goals.solids import Handling, PlacedObjects
from urlab.evaluation.tasks.goal import (
    SUBGOALS,
    AxisAlign,
    CountRelationship,
    JointAngle,
    JointStatus,
    MatchOrientation,
    OrientationRange,
    PositionRange,
    Relationship,
)
from urlab.evaluation.tasks.objects import ObjectSpec, PlacementRange
from urlab.evaluation.tasks.shapes import BoxShape, DoorCabinet, DrawerCabinet
from urlab.geometry import Pose, Quat, wxyz_from_axis_angle

NOWHERE = PlacementRange((0.0, 0.0), (0.0, 0.0))
OBJECTS = {name: ObjectSpec(name, BoxShape((0.04, 0.04, 0.04)), NOWHERE) for name in ("a", "b", "c", "d")}
OBJECTS["drawers"] = ObjectSpec("drawers", DrawerCabinet((0.2, 0.2, 0.1), 0.15), NOWHERE, fixed=True)
OBJECTS["closet"] = ObjectSpec("closet", DoorCabinet((0.14, 0.18, 0.14)), NOWHERE, fixed=True)


def at(*, drawer: float = 0.0, door_deg: float = 0.0, **poses: Pose) -> PlacedObjects:
    everywhere = {name: Pose((5.0 * number, 5.0, 1.0)) for number, name in enumerate(OBJECTS)}
    return PlacedObjects(
        OBJECTS, {**everywhere, **poses}, {"drawers": {"drawer": drawer}, "closet": {"door": math.radians(door_deg)}}
    )


def turned(axis: str, degrees: float) -> Pose:
    return Pose((0.0, 0.0, 1.0), wxyz_from_axis_angle([float(axis == one) for one in "xyz"], math.radians(degrees)))


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


def test_every_type_of_subgoal_is_decided() -> None:
    assert set(is_true.registry) == {object, *SUBGOALS.values()}


@pytest.mark.parametrize(("z", "expected"), [(1.0999, False), (1.1, True), (1.2, True), (1.2001, False)])
def test_a_range_includes_its_ends(z: float, expected: bool) -> None:
    subgoal = PositionRange("a", x=(-0.1, 0.1), z=(1.1, 1.2))
    assert holds(subgoal, at(a=Pose((0.0, 9.0, z)))) is expected
    assert not holds(subgoal, at(a=Pose((0.2, 9.0, z))))


def test_a_range_can_be_relative_axis_by_axis() -> None:
    subgoal = PositionRange("a", x=(0.1, 0.2), y=(-0.05, 0.05), x_of="b", y_of="c")
    placed = {"b": Pose((1.0, 7.0, 1.0)), "c": Pose((7.0, 2.0, 1.0))}
    assert holds(subgoal, at(a=Pose((1.15, 2.04, 3.0)), **placed))
    assert not holds(subgoal, at(a=Pose((1.25, 2.04, 3.0)), **placed))
    assert not holds(subgoal, at(a=Pose((1.15, 2.06, 3.0)), **placed))


@pytest.mark.parametrize(
    ("degrees", "below", "above"), [(0, True, False), (9.9, True, False), (10.1, False, True), (180, False, True)]
)
def test_axes_are_aligned_below_a_threshold(degrees: float, below: bool, above: bool) -> None:
    placed = at(a=turned("z", 30 + degrees), b=turned("z", 30))
    assert holds(AxisAlign("a", "b", "x", "x", 10.0), placed) is below
    assert holds(AxisAlign("a", "b", "x", "x", 10.0, "above"), placed) is above


def test_axes_have_signs_unless_either_way_will_do() -> None:
    placed = at(a=turned("z", 180), b=turned("z", 0))
    assert not holds(AxisAlign("a", "b", "x", "+x", 10.0), placed)
    assert holds(AxisAlign("a", "b", "-x", "x", 10.0), placed)
    assert holds(AxisAlign("a", "b", "x", "x", 10.0, either_way=True), placed)
    assert holds(AxisAlign("a", "b", "x", "y", 91.0), placed)
    assert not holds(AxisAlign("a", "b", "x", "y", 89.0, either_way=True), placed)


@pytest.mark.parametrize(
    ("tilt", "upright", "fallen"), [(0, True, False), (14, True, False), (20, False, False), (90, False, True)]
)
def test_orientation_is_an_angle_between_own_and_world_axes(tilt: float, upright: bool, fallen: bool) -> None:
    placed = at(a=turned("x", tilt))
    up = OrientationRange("z", "z", (0.0, 15.0))
    sideways = OrientationRange("z", "-y", (0.0, 15.0))
    assert holds(MatchOrientation("a", [up]), placed) is upright
    assert holds(MatchOrientation("a", [sideways]), placed) is fallen
    assert holds(MatchOrientation("a", [up, sideways]), placed) is False
    assert holds(MatchOrientation("a", [up, sideways], "any"), placed) is (upright or fallen)


@pytest.mark.parametrize(("degrees", "expected"), [(29.9, False), (30.1, True), (59.9, True), (60.1, False)])
def test_a_hinge_is_judged_in_degrees(degrees: float, expected: bool) -> None:
    assert holds(JointAngle("closet", "door", (30.0, 60.0)), at(door_deg=degrees)) is expected


@pytest.mark.parametrize(("metres", "expected"), [(0.099, False), (0.1, True), (0.151, False)])
def test_a_slide_is_judged_in_metres(metres: float, expected: bool) -> None:
    assert holds(JointAngle("drawers", "drawer", (0.1, 0.15)), at(drawer=metres)) is expected


@pytest.mark.parametrize(("metres", "expected"), [(0.0, True), (0.05, False), (0.12, True)])
def test_any_status_will_do(metres: float, expected: bool) -> None:
    statuses = [{"drawer": (0.0, 0.01)}, {"drawer": (0.1, 0.15)}]
    assert holds(JointStatus("drawers", statuses), at(drawer=metres)) is expected


@pytest.mark.parametrize("count", range(4))
def test_counting_needs_enough_objects_in_their_place(count: int) -> None:
    poses = {
        name: Pose((0.0, 0.0, 1.04 + 0.04 * number)) for number, name in enumerate(("b", "c", "d")) if number < count
    }
    placed = at(a=Pose((0.0, 0.0, 1.0)), **poses)
    assert [holds(CountRelationship(["b", "c", "d"], "near", "a", at_least), placed) for at_least in (1, 2, 3)] == [
        count >= 1,
        count >= 2,
        count >= 3,
    ]


def test_a_relationship_asks_about_its_objects() -> None:
    placed = at(a=Pose((0.0, 0.0, 1.04)), b=Pose((0.0, 0.0, 1.0)), c=Pose((0.1, 0.0, 1.0)), d=Pose((-0.1, 0.0, 1.0)))
    assert holds(Relationship("a", "on", "b"), placed)
    assert not holds(Relationship("c", "on", "a"), placed)
    assert holds(Relationship("b", "between", "c", "d"), placed)
    assert holds(Relationship("b", "front", "c"), placed)


def test_a_tiny_error_in_a_quaternion_does_no_harm() -> None:
    almost: Quat = (1.0, 1e-12, 0.0, 0.0)
    assert holds(MatchOrientation("a", [OrientationRange("z", "z", (0.0, 1e-6))]), at(a=Pose((0, 0, 1), almost)))


TOUCHED = Handling(
    {"a": frozenset({"left"}), "b": frozenset({"left", "right"})}, frozenset({"c"}), {"d": 0.05, "a": 0.02}
)


def handled(handling: Handling) -> PlacedObjects:
    """All in their ranges, with these being done to them."""
    poses = {name: Pose((0.3 * number, 0.0, 1.1)) for number, name in enumerate(OBJECTS)}
    return PlacedObjects(OBJECTS, poses, {"drawers": {"drawer": 0.0}, "closet": {"door": 0.0}}, handling)


@pytest.mark.parametrize(("name", "expected"), [("a", False), ("b", False), ("c", False), ("d", True)])
def test_what_is_touched_or_moves_is_not_released(name: str, expected: bool) -> None:
    subgoal = PositionRange(object=name, z=(1.0, 1.2), released=True)
    assert holds(subgoal, handled(TOUCHED)) is expected
    assert holds(subgoal, handled(Handling()))
    assert holds(PositionRange(object=name, z=(1.0, 1.2)), handled(TOUCHED))


@pytest.mark.parametrize(
    ("name", "arms", "expected"),
    [
        ("a", ["left"], True),
        ("a", ["right"], False),
        ("a", ["left", "right"], False),
        ("b", ["right", "left"], True),
        ("b", ["left"], False),
        ("d", ["left"], False),
    ],
)
def test_what_is_held_is_touched_by_exactly_these_arms(name: str, arms: list[str], expected: bool) -> None:
    assert holds(PositionRange(object=name, z=(1.0, 1.2), held_by=arms), handled(TOUCHED)) is expected


def test_what_is_to_be_left_may_move_a_little() -> None:
    assert holds(PositionRange(object="c", z=(1.0, 1.2), leaving=["a"]), handled(TOUCHED))
    assert not holds(PositionRange(object="c", z=(1.0, 1.2), leaving=["a", "d"]), handled(TOUCHED))


def test_only_released_objects_are_counted() -> None:
    count = CountRelationship(objects=["a", "d"], relation="on", target="table", at_least=2)
    on_the_table = {name: Pose((0.2 * number, 0.0, 1.0)) for number, name in enumerate("abcd")}
    for handling, expected in ((Handling(), True), (TOUCHED, False)):
        placed = PlacedObjects(OBJECTS, on_the_table, {}, handling)
        assert holds(count, placed)
        assert holds(msgspec.structs.replace(count, released=True), placed) is expected

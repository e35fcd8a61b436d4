"""Relations: each threshold from both sides, in worlds of two or three boxes whose measures say what must come out."""

import math

import pytest

from urlab.evaluation.goals.relations import is_related
from urlab.evaluation.goals.solids import PlacedObjects, Solid, solid_shape
from urlab.evaluation.tasks.objects import ObjectSpec, PlacementRange
from urlab.evaluation.tasks.parts import Part, box
from urlab.evaluation.tasks.shapes import Bowl, DrawerCabinet, HandledBlock
from urlab.geometry import Pose, Vec3, wxyz_from_axis_angle

ALL = ("on", "in", "out of", "below", "near", "left", "right", "front", "back")


def solid(size: Vec3, pos: Vec3, yaw: float = 0.0) -> Solid:
    return Solid(solid_shape((box(size),), 10_000), Pose(pos, wxyz_from_axis_angle((0.0, 0.0, 1.0), yaw)))


def of_parts(parts: tuple[Part, ...], pos: Vec3) -> Solid:
    return Solid(solid_shape(parts, 10_000), Pose(pos))


def true_ones(a: Solid, b: Solid) -> set[str]:
    return {word for word in ALL if is_related(word, a, b)}


def cube(x: float, y: float, z: float) -> Solid:
    return solid((0.04, 0.04, 0.04), (x, y, z))


TABLE_BLOCK = solid((0.1, 0.1, 0.1), (0.0, 0.0, 1.05))


def test_a_cube_on_a_block_is_on_it_and_near_it_and_the_block_is_below() -> None:
    a = cube(0.0, 0.0, 1.12)
    assert true_ones(a, TABLE_BLOCK) == {"on", "near"}
    assert true_ones(TABLE_BLOCK, a) == {"below", "near"}
    assert is_related("top", a, TABLE_BLOCK)


@pytest.mark.parametrize(("shared", "expected"), [(0.41, True), (0.39, False)])
def test_on_needs_two_fifths_of_the_upper_area(shared: float, expected: bool) -> None:
    a = cube(0.05 + 0.02 - 0.04 * shared, 0.0, 1.12)
    assert is_related("on", a, TABLE_BLOCK) is expected
    assert is_related("below", TABLE_BLOCK, a) is expected


@pytest.mark.parametrize(("gap", "expected"), [(0.1009, True), (0.1011, False), (-0.09, True)])
def test_on_allows_a_tenth_of_a_metre_between_bottom_and_top(gap: float, expected: bool) -> None:
    beam = solid((0.3, 0.3, 0.3), (0.0, 0.0, 0.85))
    a = solid((0.1, 0.1, 0.3), (0.0, 0.0, 1.0 + gap + 0.15))
    assert is_related("on", a, beam) is expected


@pytest.mark.parametrize(("ratio", "expected"), [(1.79, True), (1.81, False)])
def test_on_needs_a_support_of_some_size(ratio: float, expected: bool) -> None:
    wide = 0.1 * math.sqrt(ratio)
    assert is_related("on", solid((wide, wide, 0.02), (0.0, 0.0, 1.11)), TABLE_BLOCK) is expected


def test_of_two_small_things_each_is_on_the_other() -> None:
    """Bottom to top is less than a tenth of a metre both ways, and "on" is asked first."""
    upper, lower = cube(0.0, 0.0, 1.06), cube(0.0, 0.0, 1.02)
    assert true_ones(upper, lower) == true_ones(lower, upper) == {"on", "near"}


def test_areas_are_those_of_the_boxes_around() -> None:
    """A square turned by 45 degrees has a box twice its size: 0.9 of the block's area counts as 1.8 of it and more."""
    side = math.sqrt(0.91) * 0.1
    level, turned = (solid((side, side, 0.02), (0.0, 0.0, 1.11), yaw) for yaw in (0.0, math.pi / 4))
    assert is_related("on", level, TABLE_BLOCK)
    assert not is_related("on", turned, TABLE_BLOCK)


@pytest.mark.parametrize(("share", "expected"), [(0.51, True), (0.49, False)])
def test_in_needs_half_of_the_points_in_the_hull(share: float, expected: bool) -> None:
    """A thin pole that goes into a block from above: the share of its length inside is the share of its points."""
    pole = solid((0.002, 0.002, 0.15), (0.01, 0.01, 1.1 - 0.15 * share + 0.075))
    assert is_related("in", pole, TABLE_BLOCK) is expected
    assert is_related("out of", TABLE_BLOCK, pole) is expected
    assert not is_related("out of", pole, TABLE_BLOCK)
    assert not (expected and is_related("below", TABLE_BLOCK, pole)), "what is in is not also on"


def test_in_a_bowl_is_in_its_hull_and_counts_as_on() -> None:
    bowl = of_parts(Bowl(0.09, 0.06).links()[0].parts, (0.0, 0.0, 1.03))
    a = cube(0.01, 0.0, 1.026)
    assert is_related("in", a, bowl)
    assert is_related("on", a, bowl)
    assert not is_related("in", cube(0.15, 0.0, 1.02), bowl)
    assert is_related("out of", bowl, a)


def test_on_a_low_part_of_something_tall_is_on_it() -> None:
    """The arch is 15 cm higher than the place where the peg stands, and more than 5 cm away from it."""
    block = HandledBlock((0.3, 0.1, 0.05), handle_height=0.15)
    case = of_parts(block.links()[0].parts, (0.0, 0.0, 1.0))
    standing = solid((0.03, 0.03, 0.14), (0.13, 0.0, 1.025 + 0.07))
    assert is_related("on", standing, case)
    assert not is_related("below", case, standing), "only goals of 'on' look at parts"
    beside_the_arch = solid((0.03, 0.03, 0.14), (0.03, 0.0, 1.025 + 0.07))
    assert not is_related("on", solid((0.03, 0.03, 0.14), (0.13, 0.2, 1.025 + 0.07)), case)
    assert is_related("in", beside_the_arch, case), "the hull reaches up to the arch"


@pytest.mark.parametrize(("gap", "expected"), [(0.1514, True), (0.1516, False)])
@pytest.mark.parametrize(
    ("word", "towards"), [("left", (0, -1)), ("right", (0, 1)), ("front", (-1, 0)), ("back", (1, 0))]
)
def test_beside_is_by_the_axes_of_the_world_and_not_too_far(
    word: str, towards: tuple[int, int], gap: float, expected: bool
) -> None:
    far = 0.05 + gap + 0.02
    a = cube(towards[0] * far + towards[1] * 0.03, towards[1] * far + towards[0] * 0.03, 1.02)
    assert (word in true_ones(a, TABLE_BLOCK)) is expected
    opposite = {"left": "right", "right": "left", "front": "back", "back": "front"}[word]
    assert (opposite in true_ones(TABLE_BLOCK, a)) is expected
    assert not is_related(opposite, a, TABLE_BLOCK)


def test_diagonally_apart_is_neither_left_nor_front() -> None:
    a = cube(-0.1, -0.1, 1.02)
    assert true_ones(a, TABLE_BLOCK) == {"near"}


def test_higher_up_is_still_left() -> None:
    assert "left" in true_ones(cube(0.0, -0.12, 1.5), TABLE_BLOCK)


@pytest.mark.parametrize(("gap", "expected"), [(0.1009, True), (0.1011, False)])
def test_near_is_within_a_tenth_of_a_metre(gap: float, expected: bool) -> None:
    assert is_related("near", cube(0.05 + gap + 0.02, 0.0, 1.02), TABLE_BLOCK) is expected


def test_near_is_also_what_overlaps_seen_from_above() -> None:
    assert true_ones(cube(0.0, 0.0, 1.5), TABLE_BLOCK) == {"near"}


def test_near_is_judged_by_the_things_not_by_the_boxes_around_them() -> None:
    turned = solid((0.2, 0.01, 0.1), (0.0, 0.0, 1.05), math.pi / 4)
    assert not is_related("near", cube(0.13, -0.13, 1.02), turned)
    assert is_related("near", cube(0.08, -0.08, 1.02), turned)


@pytest.mark.parametrize(("angle", "expected"), [(44, True), (46, False)])
def test_between_is_a_bend_of_less_than_45_degrees(angle: float, expected: bool) -> None:
    half = math.radians(angle / 2)
    b, c = cube(-0.1, 0.0, 1.02), cube(0.1, 0.0, 1.02)
    a = cube(0.0, 0.1 * math.tan(half), 1.02)
    assert is_related("between", a, b, c) is expected
    assert is_related("between", a, c, b) is expected


def test_nothing_is_between_itself() -> None:
    a, b = cube(0.0, 0.0, 1.02), cube(0.1, 0.0, 1.02)
    assert not is_related("between", a, a, b)
    assert not is_related("between", b, a, b)


def test_on_the_table() -> None:
    placed = PlacedObjects({}, {}, {})
    table = placed.solid("table")
    assert len(table.points) == 100_000
    assert is_related("on", cube(0.3, -0.5, 1.02), table)
    assert not is_related("on", cube(0.3, -0.9, 1.02), table)
    assert not is_related("on", table, cube(0.3, -0.5, 1.02)), "the table is far too large to rest on a cube"
    assert is_related("below", table, cube(0.3, -0.5, 1.02))


def test_a_drawer_and_its_cabinet_are_two_things() -> None:
    spec = ObjectSpec("cabinet", DrawerCabinet((0.2, 0.2, 0.1), 0.15), PlacementRange((0, 0), (0, 0)), fixed=True)
    inside = cube(-0.09, 0.0, 1.04)
    for opening, expected in ((0.15, True), (0.0, False)):
        placed = PlacedObjects({"cabinet": spec}, {"cabinet": Pose((0.1, 0.0, 1.05))}, {"cabinet": {"drawer": opening}})
        assert is_related("in", inside, placed.solid("cabinet/drawer")) is expected
        assert not is_related("in", inside, placed.solid("cabinet/base"))
        assert is_related("in", inside, placed.solid("cabinet")) is expected, "the whole has its drawer where it is"

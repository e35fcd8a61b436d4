"""Points on surfaces, hulls and distances, against geometry and brute force."""

import math

import numpy as np
import pytest
from scipy.spatial import Delaunay
from scipy.spatial.distance import cdist

from urlab.evaluation.goals.relations import cloud_distance, near_footprint
from urlab.evaluation.goals.solids import Solid, SolidShape, solid_shape, surface_points
from urlab.evaluation.tasks.parts import Part, PartKind, box
from urlab.evaluation.tasks.shapes import Bowl, HandledBlock
from urlab.geometry import Pose, multiply, wxyz_from_axis_angle

TILTED = multiply(wxyz_from_axis_angle((0.0, 0.0, 1.0), 0.7), wxyz_from_axis_angle((1.0, 0.0, 0.0), 0.4))
PARTS = {
    "box": Part(PartKind.BOX, (0.02, 0.03, 0.05)),
    "cylinder": Part(PartKind.CYLINDER, (0.03, 0.05)),
    "sphere": Part(PartKind.SPHERE, (0.04,)),
    "capsule": Part(PartKind.CAPSULE, (0.02, 0.05)),
}


def surface_error(part: Part, points: np.ndarray) -> np.ndarray:
    """The distance from points to the surface of a part at the origin, by the definitions of the shapes."""
    across = np.hypot(points[:, 0], points[:, 1])
    if part.kind is PartKind.BOX:
        out = np.abs(points) - part.size
        return np.abs(out.max(axis=1))
    if part.kind is PartKind.SPHERE:
        return np.abs(np.linalg.norm(points, axis=1) - part.size[0])
    radius, half = part.size
    if part.kind is PartKind.CYLINDER:
        return np.abs(np.maximum(across - radius, np.abs(points[:, 2]) - half))
    nearest = np.clip(points[:, 2], -half, half)
    return np.abs(np.hypot(across, points[:, 2] - nearest) - radius)


@pytest.mark.parametrize("name", PARTS)
def test_points_lie_on_the_surface_and_balance(name: str) -> None:
    points = surface_points([PARTS[name]], 10_000)
    assert points.shape == (10_000, 3)
    assert surface_error(PARTS[name], points).max() < 1e-12
    assert np.abs(points.mean(axis=0)).max() < 2e-4


def test_points_are_shared_out_by_area() -> None:
    big, small = box((0.1, 0.1, 0.1)), box((0.05, 0.05, 0.05), (1.0, 0.0, 0.0))
    points = surface_points([big, small], 10_000)
    assert (points[:, 0] > 0.5).sum() == pytest.approx(10_000 / 5, abs=5)
    on_top = (np.abs(points[:, 2] - 0.05) < 1e-9) & (points[:, 0] < 0.5)
    assert on_top.sum() == pytest.approx(10_000 * 4 / 5 / 6, abs=5)


def test_points_leave_no_patch_bare() -> None:
    points = surface_points([box((0.1, 0.1, 0.1))], 10_000)
    top = points[points[:, 2] > 0.05 - 1e-9]
    counts, _, _ = np.histogram2d(top[:, 0], top[:, 1], bins=10, range=[[-0.05, 0.05]] * 2)
    assert counts.min() > 0.6 * counts.mean()


def test_points_follow_their_part() -> None:
    part = Part(PartKind.CYLINDER, (0.03, 0.05), (0.1, -0.2, 0.3), TILTED)
    home = surface_points([PARTS["cylinder"]], 500)
    moved = surface_points([part], 500)
    expected = np.array([Pose(part.pos, part.quat_wxyz).apply(Pose(tuple(point))).pos for point in home])
    assert moved == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", PARTS)
def test_the_hull_of_a_convex_part_is_the_part(name: str) -> None:
    body = SolidShape((PARTS[name],), 100)
    surface = surface_points([PARTS[name]], 2000)
    assert body.contains(surface * 0.99) == 2000
    assert body.contains(surface * 1.001) < 20


@pytest.mark.parametrize("parts", [Bowl(0.09, 0.06).links()[0].parts, HandledBlock((0.06, 0.1, 0.05)).links()[0].parts])
def test_what_is_in_a_hull_agrees_with_a_triangulation(parts: tuple[Part, ...]) -> None:
    body = solid_shape(parts, 10_000)
    points = np.random.default_rng(3).uniform(-0.12, 0.12, (400, 3))
    inside = Delaunay(body.corners).find_simplex(points) >= 0
    assert body.contains(points) == pytest.approx(int(inside.sum()), abs=1)
    assert 10 < inside.sum() < 390


def test_a_solid_counts_in_world_coordinates() -> None:
    solid = Solid(solid_shape((PARTS["box"],), 1000), Pose((0.3, -0.1, 1.2), TILTED))
    middle = np.array([[0.3, -0.1, 1.2], [0.3, -0.1, 1.3]])
    assert solid.contains(middle) == 1
    assert solid.points.min(axis=0) == pytest.approx(solid.low, abs=2e-3)
    assert (solid.points.min(axis=0) >= solid.low - 1e-12).all()
    assert (solid.points.max(axis=0) <= solid.high + 1e-12).all()


@pytest.mark.parametrize("axes", [2, 3])
@pytest.mark.parametrize("seed", range(12))
def test_the_distance_of_clouds_is_on_the_same_side_of_the_gate_as_brute_force(axes: int, seed: int) -> None:
    chance = np.random.default_rng(seed)
    first = Solid(solid_shape((PARTS["box"],), 3000), Pose((0.0, 0.0, 1.0), TILTED))
    direction = chance.normal(size=3) * (1.0, 1.0, 0.3)
    pos = tuple(np.array([0.0, 0.0, 1.0]) + direction / np.linalg.norm(direction) * 0.3)
    turned = wxyz_from_axis_angle((0.0, 1.0, 0.0), float(seed))
    second = Solid(solid_shape((PARTS["capsule"],), 3000), Pose(pos, turned))
    clouds = [np.concatenate([one.points, one.probes])[:, :axes] for one in (first, second)]
    exact = float(cdist(*clouds).min())
    for gate in (exact * 0.98, exact * 1.02, exact * 0.5, exact * 3):
        assert (cloud_distance(first, second, gate, axes=axes) < gate) == (exact < gate)


def test_near_a_footprint_means_within_reach_of_it_seen_from_above() -> None:
    turned = wxyz_from_axis_angle((0.0, 0.0, 1.0), math.pi / 4)
    solid = Solid(solid_shape((box((0.1, 0.1, 0.1)),), 1000), Pose((0.5, 0.0, 1.0), turned))
    tip = 0.5 + 0.05 * math.sqrt(2)
    points = np.array([[0.5, 0, 7.0], [tip + 0.049, 0, 0], [tip + 0.051, 0, 0], [0.5 + 0.07, 0.07, 0], [0.6, 0.06, 0]])
    middle_of_edge = 0.05 / math.sqrt(2)
    step = 1 / math.sqrt(2)
    edge = [[0.5 + middle_of_edge + out * step, middle_of_edge + out * step, 0.0] for out in (0.049, 0.051)]
    near = near_footprint(solid, np.concatenate([points, edge]), 0.05)
    assert near.tolist() == [True, True, False, True, False, True, False]

from typing import Any

import numpy as np
import pytest
import trimesh

from urlab.compile.hulls import Triangles, read_triangles
from urlab.importing.formats import MeshResult, MeshTask
from urlab.importing.mesh_child import MAX_TRIANGLES, read_mesh

RED, BLUE = [255, 0, 0, 255], [51, 102, 204, 255]


def read(content: Any, file_type: str) -> MeshResult:
    return read_mesh(MeshTask(file_type, content.encode() if isinstance(content, str) else content, {}))


def triangles(result: MeshResult) -> Triangles:
    return read_triangles(result.obj, ".obj")


def painted(colour: list[int]) -> Any:
    mesh = trimesh.creation.box()
    mesh.visual = trimesh.visual.TextureVisuals(material=trimesh.visual.material.PBRMaterial(baseColorFactor=colour))
    return mesh


@pytest.mark.parametrize("file_type", ["ply", "off", "stl_ascii", "stl"])
def test_kinds_without_an_up_keep_their_shape(file_type: str) -> None:
    box = trimesh.creation.box((1, 2, 3), trimesh.transformations.translation_matrix((4, 5, 6)))
    shape = triangles(read(box.export(file_type=file_type), file_type.removesuffix("_ascii")))
    np.testing.assert_allclose(shape.vertices.min(axis=0), [3.5, 4, 4.5], atol=1e-5)
    np.testing.assert_allclose(shape.vertices.max(axis=0), [4.5, 6, 7.5], atol=1e-5)
    assert shape.is_solid
    assert len(shape.vertices) == 8


def test_y_of_a_gltf_becomes_z() -> None:
    corners = [(0, 0, 0), (1, 0, 0), (0, 2, 0), (0, 0, 3)]
    tetrahedron = trimesh.Trimesh(corners, [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)])
    shape = triangles(read(trimesh.Scene(tetrahedron).export(file_type="glb"), "glb"))
    wanted = {(0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 2.0), (0.0, -3.0, 0.0)}
    assert {tuple(np.round(vertex, 5) + 0.0) for vertex in shape.vertices} == wanted
    assert shape.volume == pytest.approx(1.0, rel=1e-5)


@pytest.mark.parametrize(
    ("colours", "shown"),
    [([RED], (1.0, 0.0, 0.0, 1.0)), ([BLUE, BLUE], (0.2, 0.4, 0.8, 1.0)), ([RED, BLUE], None)],
    ids=["one", "same", "different"],
)
def test_a_single_base_colour_is_kept(colours: list[list[int]], shown: Any) -> None:
    scene = trimesh.Scene([painted(colour) for colour in colours])
    assert read(scene.export(file_type="glb"), "glb").rgba == shown


def test_faces_that_are_painted_alike_give_the_colour() -> None:
    mesh = trimesh.creation.box()
    mesh.visual.face_colors = BLUE
    assert read(mesh.export(file_type="ply"), "ply").rgba == (0.2, 0.4, 0.8, 1.0)
    mesh.visual.face_colors[0] = RED
    assert read(mesh.export(file_type="ply"), "ply").rgba is None


def test_a_mesh_without_colours_has_none() -> None:
    box = trimesh.creation.box()
    assert read(trimesh.Scene(box).export(file_type="glb"), "glb").rgba is None
    assert read(box.export(file_type="off"), "off").rgba is None


def test_a_small_file_cannot_ask_for_endless_triangles() -> None:
    ball, scene = trimesh.creation.icosphere(subdivisions=5), trimesh.Scene()
    scene.add_geometry(ball, geom_name="ball")
    for number in range(MAX_TRIANGLES // len(ball.faces)):
        matrix = trimesh.transformations.translation_matrix((0, number, 0))
        scene.graph.update(frame_to=f"copy{number}", geometry="ball", matrix=matrix)
    with pytest.raises(ValueError, match="at most 2000000 can be used"):
        read(scene.export(file_type="glb"), "glb")


def test_points_and_vertices_that_are_not_finite_are_refused() -> None:
    with pytest.raises(ValueError, match="no triangles"):
        read(trimesh.PointCloud(np.eye(3)).export(file_type="ply"), "ply")
    with pytest.raises(ValueError, match="not finite"):
        read("OFF\n3 1 0\n0 0 0\n1 0 0\n0 nan 0\n3 0 1 2\n", "off")

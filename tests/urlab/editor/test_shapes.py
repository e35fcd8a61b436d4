import io

import mujoco
import numpy as np
import pytest
import trimesh

from urlab.editor.gizmo import snapped, snapped_quat
from urlab.editor.glb import Material, Surface, write_glb
from urlab.editor.shapes import GeomMesh, GeomMeshes, body_glb, body_mesh, sky_dome, unit_mesh
from urlab.editor.world_scene import grown, multiply_quats, rotate

MODEL = """
<mujoco>
  <asset>
    <texture name="grid" type="2d" builtin="checker" rgb1="1 0 0" rgb2="0 0 1" width="64" height="64"/>
    <texture name="sky" type="skybox" builtin="gradient" rgb1="0.2 0.4 0.6" rgb2="1 1 1" width="32" height="192"/>
    <material name="grid" texture="grid" texrepeat="4 4"/>
    <material name="glass" rgba="0 1 0 0.5"/>
    <mesh name="wedge" vertex="0 0 0  1 0 0  0 1 0  0 0 1"/>
    <hfield name="hill" nrow="4" ncol="5" size="2 1 0.5 0.1" elevation="0 0 0 0 0  0 1 1 1 0  0 1 2 1 0  0 0 0 0 0"/>
  </asset>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 0.1" material="grid"/>
    <body name="many" pos="1 2 3" quat="0.5 0.5 0.5 0.5">
      <freejoint/>
      <geom name="box" type="box" size="0.1 0.2 0.3" pos="0.4 0 0" euler="0 0 30"/>
      <geom name="ball" type="sphere" size="0.25" pos="0 0.6 0"/>
      <geom name="rod" type="capsule" size="0.05 0.3" pos="0 0 0.8" euler="40 0 0"/>
      <geom name="can" type="cylinder" size="0.2 0.1" pos="0 -0.7 0"/>
      <geom name="egg" type="ellipsoid" size="0.1 0.2 0.05" pos="-0.5 0 0"/>
      <geom name="wedge" type="mesh" mesh="wedge" pos="0 0 -1"/>
      <geom name="pane" type="box" size="0.3 0.01 0.3" material="glass"/>
    </body>
    <body name="hill" pos="5 0 0"><geom name="hill" type="hfield" hfield="hill"/></body>
  </worldbody>
</mujoco>
"""


@pytest.fixture(scope="module")
def model() -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(MODEL)


@pytest.mark.parametrize("name", ["box", "ball", "rod", "can", "egg", "wedge"])
def test_a_geom_fills_the_box_that_mujoco_says_it_has(model: mujoco.MjModel, name: str):
    geom = model.geom(name).id
    vertices = np.asarray(GeomMeshes(model).part(geom).vertices)
    center, half = model.geom_aabb[geom, :3], model.geom_aabb[geom, 3:]
    assert vertices.min(axis=0) == pytest.approx(center - half, abs=5e-3)
    assert vertices.max(axis=0) == pytest.approx(center + half, abs=5e-3)


def test_terrain_is_where_rays_hit_it(model: mujoco.MjModel):
    data, geom = mujoco.MjData(model), model.geom("hill").id
    mujoco.mj_forward(model, data)
    for x, y, z in np.asarray(GeomMeshes(model).part(geom).vertices):
        start = data.geom_xpos[geom] + [0.999 * x, 0.999 * y, 3.0]
        distance = mujoco.mj_rayHfield(model, data, geom, start, np.array([0.0, 0.0, -1.0]), np.empty(3))
        assert 3.0 - distance == pytest.approx(z, abs=2e-3)


def test_a_body_is_one_mesh_in_its_own_frame(model: mujoco.MjModel):
    geoms = [model.geom(name).id for name in ("box", "ball")]
    vertices, faces = body_mesh(GeomMeshes(model), geoms)
    ball = vertices[-len(GeomMeshes(model).part(geoms[1]).vertices) :]
    assert ball.mean(axis=0) == pytest.approx([0.0, 0.6, 0.0], abs=0.02)
    assert int(faces.max()) == len(vertices) - 1


def test_plain_geoms_of_one_opacity_are_a_single_mesh_and_textures_and_glass_are_others(model: mujoco.MjModel):
    meshes = GeomMeshes(model)
    paints = {name: meshes.paint(model.geom(name).id) for name in ("box", "ball", "wedge", "pane", "floor")}
    assert paints["box"] == paints["ball"] == paints["wedge"]
    assert len({paints["box"], paints["pane"], paints["floor"]}) == 3


@pytest.mark.parametrize("names", [("box", "ball", "wedge"), ("floor",), ("pane",)])
def test_a_file_for_the_browser_has_one_mesh_that_another_reader_finds_right(
    model: mujoco.MjModel, names: tuple[str, ...]
):
    meshes, geoms = GeomMeshes(model), [model.geom(name).id for name in names]
    glb = body_glb(meshes, geoms)
    scene = trimesh.load(io.BytesIO(glb), file_type="glb")
    (mesh,) = scene.geometry.values()
    vertices, faces = body_mesh(meshes, geoms)
    assert len(mesh.faces) == len(faces)
    assert mesh.bounds == pytest.approx(np.array([vertices.min(axis=0), vertices.max(axis=0)]), abs=1e-5)


@pytest.mark.parametrize(("word", "volume"), [("box", 8), ("sphere", 4.1888), ("cylinder", 6.2832), ("cone", 1.0472)])
def test_a_unit_shape_is_closed_and_looks_outward(word: str, volume: float):
    vertices, faces = unit_mesh(word)
    solid = trimesh.Trimesh(vertices, faces)
    assert solid.is_watertight
    assert solid.volume == pytest.approx(volume, rel=0.03)


def test_a_capsule_is_closed_and_as_large_as_it_should_be(model: mujoco.MjModel):
    rod = GeomMeshes(model).part(model.geom("rod").id)
    solid = trimesh.Trimesh(rod.vertices, rod.faces)
    assert solid.is_watertight
    assert solid.volume == pytest.approx(np.pi * 0.05**2 * 0.6 + 4 / 3 * np.pi * 0.05**3, rel=0.03)


def page_normals(part: GeomMesh) -> np.ndarray:
    """What the page lights a mesh by: at each corner of each triangle, the mean normal of all that share its vertex."""
    corners = np.asarray(part.vertices, float)[part.faces]
    facing = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    sums = np.zeros((len(part.vertices), 3))
    np.add.at(sums, np.asarray(part.faces), facing[:, None])
    return (sums / np.linalg.norm(sums, axis=1, keepdims=True))[part.faces]


@pytest.mark.parametrize("name", ["box", "ball", "rod", "can", "egg", "wedge", "hill", "floor"])
def test_triangles_of_a_geom_are_lit_from_where_they_face(model: mujoco.MjModel, name: str):
    part = GeomMeshes(model).part(model.geom(name).id)
    corners = np.asarray(part.vertices, float)[part.faces]
    facing = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    assert (np.einsum("ij,ikj->ik", facing, page_normals(part)) > -1e-6).all()


ROOF = """
v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nv .5 .5 1\nvn 0 0 -1\nvn 0 -1 .5\nvn 1 0 .5\nvn 0 1 .5\nvn -1 0 .5
vt 0 0\nvt 1 0\nvt 1 1\nvt 0 1\nvt .5 .5
f 1/1/1 3/3/1 2/2/1\nf 1/1/1 4/4/1 3/3/1\nf 1/1/2 2/2/2 5/5/2\nf 2/2/3 3/3/3 5/5/3\nf 3/3/4 4/4/4 5/5/4
f 4/4/5 1/1/5 5/5/5"""
ROOFED = """
<mujoco><asset><mesh name="roof" file="roof.obj"/><texture name="t" type="2d" builtin="flat" width="8" height="8"/>
<material name="plain"/><material name="tiled" texture="t"/></asset>
<worldbody><geom type="mesh" mesh="roof" material="MATERIAL"/></worldbody></mujoco>"""


@pytest.mark.parametrize("material", ["plain", "tiled"])
def test_edges_that_are_sharp_in_a_file_stay_so(material: str):
    model = mujoco.MjModel.from_xml_string(ROOFED.replace("MATERIAL", material), {"roof.obj": ROOF.encode()})
    part = GeomMeshes(model).part(0)
    assert len(part.vertices) == 16  # three at each corner of the floor, four at the top
    assert part.vertices[part.faces] == pytest.approx(model.mesh_vert[model.mesh_face])
    assert page_normals(part) == pytest.approx(model.mesh_normal[model.mesh_facenormal])


BALL = """
<mujoco><asset><texture name="t" type="KIND" builtin="gradient" rgb1="1 0 0" rgb2="0 0 1" width="8" height="48"/>
<material name="painted" texture="t"/></asset><worldbody><geom size="1" material="painted"/></worldbody></mujoco>"""


@pytest.mark.parametrize("kind", ["2d", "cube"])
def test_a_painted_ball_is_as_round_as_a_plain_one(kind: str):
    part = GeomMeshes(mujoco.MjModel.from_xml_string(BALL.replace("KIND", kind))).part(0)
    outward = part.vertices[part.faces]
    assert np.einsum("ijk,ijk->ij", page_normals(part), outward).mean() > 0.995  # of flat triangles: 0.987


@pytest.mark.parametrize("points", [65_535, 65_536])
def test_another_reader_finds_a_mesh_right_with_short_and_with_long_indices(points: int):
    vertices = np.random.default_rng(1).normal(size=(points, 3))
    faces = np.array([[0, 1, points - 1], [points - 1, points - 2, 0]])
    glb = write_glb(Surface(vertices, faces), Material())
    (mesh,) = trimesh.load(io.BytesIO(glb), file_type="glb", process=False).geometry.values()
    assert mesh.vertices[mesh.faces] == pytest.approx(vertices[faces], abs=1e-6)


def test_a_texture_lies_in_the_file_as_on_the_geom(model: mujoco.MjModel):
    meshes, floor = GeomMeshes(model), model.geom("floor").id
    (mesh,) = trimesh.load(io.BytesIO(body_glb(meshes, [floor])), file_type="glb").geometry.values()
    part = meshes.part(floor)
    assert part.image is not None
    assert mesh.visual.uv == pytest.approx(part.uv)
    assert (np.asarray(mesh.visual.material.baseColorTexture) == np.asarray(part.image)).all()


def test_colours_are_linear_in_the_file(model: mujoco.MjModel):
    (mesh,) = trimesh.load(
        io.BytesIO(body_glb(GeomMeshes(model), [model.geom("pane").id])), file_type="glb"
    ).geometry.values()
    assert (mesh.visual.vertex_attributes["color"][:, :3] == [0, 255, 0]).all()


def test_glass_is_seen_through_in_the_file(model: mujoco.MjModel):
    scene = trimesh.load(io.BytesIO(body_glb(GeomMeshes(model), [model.geom("pane").id])), file_type="glb")
    (mesh,) = scene.geometry.values()
    assert mesh.visual.material.alphaMode == "BLEND"
    assert mesh.visual.material.baseColorFactor[3] == pytest.approx(128, abs=1)


def test_equal_geoms_have_equal_content_and_others_do_not(model: mujoco.MjModel):
    meshes = GeomMeshes(model)
    box, ball = model.geom("box").id, model.geom("ball").id
    assert meshes.content(box) == GeomMeshes(mujoco.MjModel.from_xml_string(MODEL)).content(box)
    assert meshes.content(box) != meshes.content(ball)


def test_the_sky_is_blue_above_and_white_below(model: mujoco.MjModel):
    glb = sky_dome(model)
    assert glb is not None
    scene = trimesh.load(io.BytesIO(glb), file_type="glb")
    (mesh,) = scene.geometry.values()
    picture = np.asarray(mesh.visual.material.emissiveTexture.convert("RGB"), float) / 255
    assert picture[0].mean(axis=0) == pytest.approx([0.2, 0.4, 0.6], abs=0.1)
    assert picture[-1].mean(axis=0) == pytest.approx([1.0, 1.0, 1.0], abs=0.1)


def test_a_model_without_a_skybox_has_no_sky():
    assert sky_dome(mujoco.MjModel.from_xml_string("<mujoco/>")) is None


def test_an_outline_stands_out_by_what_is_asked(model: mujoco.MjModel):
    vertices, faces = body_mesh(GeomMeshes(model), [model.geom("ball").id])
    center = np.array([0.0, 0.6, 0.0])
    radii = np.linalg.norm(grown(vertices, faces, 0.1) - center, axis=1)
    assert radii == pytest.approx(np.full(len(radii), 0.35), abs=5e-3)


def test_products_of_quaternions_and_turned_vectors_are_mujocos():
    random = np.random.default_rng(3)
    first, second = random.normal(size=(2, 5, 4))
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    vectors = random.normal(size=(5, 3))
    for row in range(5):
        product, turned = np.empty(4), np.empty(3)
        mujoco.mju_mulQuat(product, first[row], second[row])
        mujoco.mju_rotVecQuat(turned, vectors[row], first[row])
        assert multiply_quats(first, second)[row] == pytest.approx(product)
        assert rotate(first, vectors)[row] == pytest.approx(turned)


def test_a_gizmo_snaps_to_a_grid_and_to_whole_turns():
    assert snapped(np.array([0.26, -0.11, 1.0]), 0.25).tolist() == [0.25, 0.0, 1.0]
    assert snapped(np.array([0.26, -0.11, 1.0]), 0.0).tolist() == [0.26, -0.11, 1.0]
    half = np.radians(50) / 2
    w, x, y, z = snapped_quat(np.array([np.cos(half), 0, 0, np.sin(half)]), 45.0)
    assert 2 * np.degrees(np.arctan2(z, w)) == pytest.approx(45.0)
    assert (x, y) == pytest.approx((0.0, 0.0))

"""Quick convert: meshes that stand, fall or are driven, in the real MuJoCo with the real CoACD."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from urlab.compile.blueprint import load_blueprint
from urlab.compile.static_mesh import convert_spec, mesh_file
from urlab.errors import EditError, ImportFailed
from urlab.importing.formats import mesh_bundle
from urlab.importing.hulls import Decomposer
from urlab.importing.sources import SourceFiles
from urlab.paths import FileRoots
from urlab.scene.blueprint_record import BlueprintKind, BlueprintRecord
from urlab.scene.level import QuickConvert

BOX_FACES = ["013", "032", "467", "475", "045", "051", "237", "276", "026", "064", "157", "173"]
BOX = np.array([[x, y, z] for x in (-0.1, 0.1) for y in (-0.1, 0.1) for z in (-0.1, 0.1)])
U_OUTLINE = np.array([(0, 0), (3, 0), (3, 2), (2, 2), (2, 1), (1, 1), (1, 2), (0, 2)]) * 0.1
"""In x and z; the U is 0.1 m deep along y, and its notch is 0.1 m wide and 0.1 m deep."""

U_VOLUME = 5 * 0.1**3


@pytest.fixture(scope="module")
def decomposer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Decomposer]:
    """One for all tests, so that every shape is cut once."""
    made = Decomposer(tmp_path_factory.mktemp("hulls"))
    yield made
    made.close()


@pytest.fixture
def box(tmp_path: Path) -> BlueprintRecord:
    """A cube of 0.2 m around its origin."""
    return imported(tmp_path, "box", BOX, faces(*BOX_FACES))


@pytest.fixture
def u_shape(tmp_path: Path) -> BlueprintRecord:
    near, far = (np.insert(U_OUTLINE, 1, y, axis=1) for y in (0.0, 0.1))
    cap = faces("014", "045", "123", "134", "056", "067")
    walls = [[(i, i + 8, (i + 1) % 8 + 8), (i, (i + 1) % 8 + 8, (i + 1) % 8)] for i in range(8)]
    return imported(tmp_path, "u", np.vstack([near, far]), np.vstack([cap, cap[:, ::-1] + 8, *walls]))


def faces(*corners: str) -> np.ndarray:
    return np.array([[int(one) for one in face] for face in corners])


def imported(folder: Path, name: str, vertices: np.ndarray, corners: np.ndarray) -> BlueprintRecord:
    """An OBJ file, imported as the server does it."""
    lines = [f"v {x!r} {y!r} {z!r}" for x, y, z in vertices.tolist()] + [f"f {a} {b} {c}" for a, b, c in corners + 1]
    (folder / f"{name}.obj").write_text("\n".join(lines))
    bundle = mesh_bundle(folder / f"{name}.obj", SourceFiles(FileRoots(read=(folder.resolve(),))))
    for file, content in bundle.files.items():
        (folder / name / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / name / file).write_bytes(content)
    return BlueprintRecord(name, name, "/Game/MuJoCoImports/", folder / name / bundle.main, bundle.kind)


def converted(
    record: BlueprintRecord,
    convert: QuickConvert,
    decomposer: Decomposer | None = None,
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0),
) -> Any:
    """The spec of the record, scaled and converted."""
    spec = load_blueprint(record).spec.copy()
    for mesh in spec.meshes:
        mesh.scale = scale
    convert_spec(spec, record, convert, scale, decomposer)
    return spec


class World:
    """A plane at z = 0, a converted mesh at ``height``, and balls of 4 cm radius."""

    def __init__(self, spec: Any, height: float, *balls: tuple[float, float, float]) -> None:
        root = mujoco.MjSpec()
        root.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=(5.0, 5.0, 0.1))
        root.attach(spec, prefix="it_", frame=root.worldbody.add_frame(pos=(0.0, 0.0, height)))
        for number, at in enumerate(balls):
            ball = root.worldbody.add_body(name=f"ball{number}", pos=at)
            ball.add_freejoint()
            ball.add_geom(size=(0.04, 0.0, 0.0), condim=6, friction=(1.0, 0.01, 0.01))
        self.model = root.compile()
        self.data = mujoco.MjData(self.model)

    def run(self, duration_s: float) -> "World":
        """Let physics go on."""
        end = self.data.time + duration_s
        while self.data.time < end:
            mujoco.mj_step(self.model, self.data)
        return self

    def pos(self, body: str) -> np.ndarray:
        """Where a body is."""
        return np.array(self.data.body(body).xpos)


def test_a_free_cube_falls_and_rests_on_the_plane(box: BlueprintRecord) -> None:
    world = World(converted(box, QuickConvert()), 0.3)
    assert world.model.joint("it_free").type[0] == int(mujoco.mjtJoint.mjJNT_FREE)
    assert world.model.body("it_box").mass[0] == pytest.approx(8.0, rel=1e-5)
    np.testing.assert_allclose(world.model.body("it_box").inertia, 8.0 * 0.2**2 / 6, rtol=1e-5)
    np.testing.assert_allclose(world.run(1.5).pos("it_box"), [0, 0, 0.1], atol=2e-3)


def test_a_static_mesh_stands_in_the_air_and_holds_a_ball(box: BlueprintRecord) -> None:
    world = World(converted(box, QuickConvert(static=True)), 0.5, (0.0, 0.0, 0.7)).run(1.5)
    np.testing.assert_allclose(world.pos("it_box"), [0, 0, 0.5])
    np.testing.assert_allclose(world.pos("ball0"), [0, 0, 0.64], atol=3e-3)
    assert world.model.njnt == 1


@pytest.mark.parametrize("static", [False, True])
def test_a_driven_mesh_follows_its_mocap_pose_and_carries_a_ball(box: BlueprintRecord, static: bool) -> None:
    world = World(converted(box, QuickConvert(driven=True, static=static)), 0.5, (0.0, 0.0, 0.65)).run(0.5)
    for height in np.linspace(0.5, 0.8, 200):
        world.data.mocap_pos[0] = (0.0, 0.0, height)
        world.run(0.005)
    np.testing.assert_allclose(world.run(0.5).pos("it_box"), [0, 0, 0.8])
    np.testing.assert_allclose(world.pos("ball0"), [0, 0, 0.94], atol=5e-3)


def test_without_convert_nothing_is_hit(box: BlueprintRecord) -> None:
    world = World(load_blueprint(box).spec.copy(), 0.5, (0.0, 0.0, 0.7)).run(1.0)
    assert world.pos("ball0")[2] == pytest.approx(0.04, abs=3e-3)


def test_a_ball_sits_in_the_notch_only_of_a_complex_mesh(u_shape: BlueprintRecord, decomposer: Decomposer) -> None:
    above_the_notch = (0.15, 0.05, 0.5)
    simple, cut = QuickConvert(static=True), QuickConvert(static=True, complex_mesh=True)
    on_the_hull = World(converted(u_shape, simple), 0.1, above_the_notch).run(1.5)
    in_the_notch = World(converted(u_shape, cut, decomposer), 0.1, above_the_notch).run(1.5)
    assert on_the_hull.pos("ball0")[2] == pytest.approx(0.1 + 0.2 + 0.04, abs=5e-3)
    assert in_the_notch.pos("ball0")[2] == pytest.approx(0.1 + 0.1 + 0.04, abs=5e-3)


def test_names_groups_and_contact_numbers_are_the_documented_ones(
    u_shape: BlueprintRecord, decomposer: Decomposer
) -> None:
    friction = (0.7, 0.02, 0.003)
    for complex_mesh in (False, True):
        convert = QuickConvert(complex_mesh=complex_mesh, friction=friction)
        model = converted(u_shape, convert, decomposer).compile()
        names = [model.geom(index).name for index in range(model.ngeom)]
        assert names[0] == "visual"
        assert names[1:] == ([f"hull_{index}" for index in range(len(names) - 1)] if complex_mesh else ["collision"])
        np.testing.assert_array_equal(model.geom_group, [2] + [3] * (len(names) - 1))
        np.testing.assert_array_equal(model.geom_contype, [0] + [1] * (len(names) - 1))
        for index in range(1, len(names)):
            np.testing.assert_allclose(model.geom_friction[index], friction)
            np.testing.assert_allclose(model.geom_solref[index], [0.02, 1])
            np.testing.assert_allclose(model.geom_solimp[index][:3], [0.9, 0.95, 0.001])


def test_a_closed_mesh_weighs_what_it_holds_and_not_what_its_hull_holds(
    u_shape: BlueprintRecord, decomposer: Decomposer
) -> None:
    simple = converted(u_shape, QuickConvert()).compile()
    cut = converted(u_shape, QuickConvert(complex_mesh=True), decomposer).compile()
    assert simple.body_mass[1] == pytest.approx(1000 * U_VOLUME, rel=1e-4)
    assert cut.body_mass[1] == pytest.approx(1000 * U_VOLUME, rel=0.02)
    np.testing.assert_allclose(cut.body_ipos[1], simple.body_ipos[1], atol=2e-3)
    np.testing.assert_allclose(cut.body_inertia[1], simple.body_inertia[1], rtol=0.03)


@pytest.mark.parametrize("scale", [(2.0, 1.0, 0.5), (-1.0, 1.0, 1.0), (3.0, 3.0, 3.0)])
def test_hulls_are_scaled_like_the_mesh(
    u_shape: BlueprintRecord, decomposer: Decomposer, scale: tuple[float, float, float]
) -> None:
    model = converted(u_shape, QuickConvert(complex_mesh=True), decomposer, scale).compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    wanted = np.sort([np.zeros(3), np.multiply(scale, (0.3, 0.1, 0.2))], axis=0)
    hulls = np.vstack([vertices(model, data, index) for index in range(1, model.ngeom)])
    for corners in (vertices(model, data, 0), hulls):
        np.testing.assert_allclose([corners.min(axis=0), corners.max(axis=0)], wanted, atol=0.01 * max(scale))
    assert model.body_mass[1] == pytest.approx(1000 * U_VOLUME * abs(np.prod(scale)), rel=0.02)


def vertices(model: Any, data: Any, geom: int) -> np.ndarray:
    """A mesh geom's vertices in the world."""
    mesh = model.geom_dataid[geom]
    start, count = model.mesh_vertadr[mesh], model.mesh_vertnum[mesh]
    return model.mesh_vert[start : start + count] @ data.geom_xmat[geom].reshape(3, 3).T + data.geom_xpos[geom]


def test_a_scaled_cube_rests_at_its_new_height(box: BlueprintRecord) -> None:
    world = World(converted(box, QuickConvert(), scale=(2.0, 1.0, 0.5)), 0.2)
    assert world.model.body("it_box").mass[0] == pytest.approx(8.0, rel=1e-5)
    np.testing.assert_allclose(world.run(1.5).pos("it_box"), [0, 0, 0.05], atol=2e-3)


def test_open_and_inverted_meshes_weigh_as_much_as_their_hull(tmp_path: Path) -> None:
    closed = faces(*BOX_FACES)
    for name, corners in (("open", closed[:-2]), ("inverted", closed[:, ::-1])):
        model = converted(imported(tmp_path, name, BOX, corners), QuickConvert()).compile()
        assert model.body_mass[1] == pytest.approx(8.0, rel=1e-5)
        np.testing.assert_allclose(model.body_ipos[1], 0.0, atol=1e-6)


@pytest.mark.parametrize("complex_mesh", [False, True])
def test_a_flat_sheet_falls_and_rests_too(tmp_path: Path, decomposer: Decomposer, complex_mesh: bool) -> None:
    sheet = np.array([(-0.5, -0.5, 0.0), (0.5, -0.5, 0.0), (-0.5, 0.5, 0.0), (0.5, 0.5, 0.0)])
    record = imported(tmp_path, "sheet", sheet, faces("012", "132"))
    world = World(converted(record, QuickConvert(complex_mesh=complex_mesh), decomposer), 0.1)
    assert 1.0 < world.model.body("it_sheet").mass[0] < 30.0
    assert world.model.body("it_sheet").inertia.min() > 0.1
    np.testing.assert_allclose(world.run(1.0).pos("it_sheet"), [0, 0, 0], atol=0.015)


def test_a_converted_mesh_can_be_written_as_xml_and_read_again(
    u_shape: BlueprintRecord, decomposer: Decomposer
) -> None:
    spec = converted(u_shape, QuickConvert(complex_mesh=True), decomposer)
    model = spec.compile()
    again = mujoco.MjModel.from_xml_string(spec.to_xml(), {"assets/u.obj": mesh_file(u_shape).read_bytes()})
    assert (again.nmesh, again.ngeom) == (model.nmesh, model.ngeom)
    assert again.body_mass[1] == pytest.approx(model.body_mass[1], rel=1e-4)


def test_the_mesh_of_an_import_is_found_by_its_model(u_shape: BlueprintRecord) -> None:
    path = mesh_file(u_shape)
    assert path == u_shape.file.parent / "assets" / "u.obj"
    path.unlink()
    with pytest.raises(ImportFailed, match=r"the mesh of 'u' is gone: .*u\.obj"):
        mesh_file(u_shape)
    u_shape.file.unlink()
    with pytest.raises(ImportFailed, match=r"u\.xml cannot be read"):
        mesh_file(u_shape)


def test_only_static_meshes_are_converted(tmp_path: Path, box: BlueprintRecord) -> None:
    (tmp_path / "robot.xml").write_text("<mujoco><worldbody><body><geom size='.1'/></body></worldbody></mujoco>")
    robot = BlueprintRecord("robot", "robot", "/Files/", tmp_path / "robot.xml", BlueprintKind.MODEL)
    with pytest.raises(EditError, match="'robot' has physics of its own"):
        converted(robot, QuickConvert())
    with pytest.raises(EditError, match="'robot' is not a static mesh"):
        mesh_file(robot)
    with pytest.raises(ImportFailed, match="'box' with complex_mesh"):
        converted(box, QuickConvert(complex_mesh=True))

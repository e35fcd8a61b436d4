from pathlib import Path

import pytest

from urlab.compile.blueprint import compile_spec, load_blueprint
from urlab.compile.importing import import_file
from urlab.compile.importing.limits import DEFAULT_LIMITS
from urlab.compile.importing.model_bundle import model_bundle
from urlab.compile.importing.sources import Sources
from urlab.config import FileRoots
from urlab.errors import ImportFailed
from urlab.scene.blueprint_record import file_record

INERTIA = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'


def robot(*files: str, extension: str = "") -> str:
    links = [
        f'<link name="l{number}">{INERTIA}<visual><geometry><mesh filename="{file}"/></geometry></visual></link>'
        for number, file in enumerate(files)
    ]
    joints = [
        f'<joint name="j{number}" type="revolute"><parent link="l{number - 1}"/><child link="l{number}"/></joint>'
        for number in range(1, len(files))
    ]
    return f'<robot name="u">{extension}{"".join(links)}{"".join(joints)}</robot>'


def compiled_blueprint(path: Path):
    return compile_spec(load_blueprint(file_record(str(path))).spec.copy())[0]


EXTENSIONS = {
    "paths as they are": ("", "x/a.stl"),
    "in meshdir": ('<mujoco><compiler meshdir="m"/></mujoco>', "m/x/a.stl"),
    "in meshdir, path stripped": ('<mujoco><compiler meshdir="m" strippath="true"/></mujoco>', "m/a.stl"),
    "visuals not wanted": ('<mujoco><compiler discardvisual="true"/></mujoco>', "x/a.stl"),
}


@pytest.mark.parametrize(("extension", "place"), EXTENSIONS.values(), ids=EXTENSIONS)
def test_the_meshes_of_a_urdf_are_found_where_mujoco_finds_them(
    tree, rewrite, unpack, differ, stl, tmp_path: Path, extension: str, place: str
) -> None:
    folder = tree({"r.urdf": robot("x/a.stl", "x/a.stl", extension=extension), place: stl(2)})
    original, bundle = compiled_blueprint(folder / "r.urdf"), rewrite(folder / "r.urdf")
    imported = compiled_blueprint(unpack(bundle, tmp_path / "elsewhere"))
    assert bundle.main == "r.urdf"
    assert differ(original, imported, paths=True) == []
    assert original.names == imported.names


def test_meshes_of_one_name_keep_the_names_that_mujoco_gives_them(tree, rewrite, unpack, differ, stl, tmp_path) -> None:
    folder = tree({"r.urdf": robot("p/a.stl", "q/a.stl", "q/./a.stl"), "p/a.stl": stl(), "q/a.stl": stl(2)})
    original = compiled_blueprint(folder / "r.urdf")
    imported = compiled_blueprint(unpack(rewrite(folder / "r.urdf"), tmp_path / "elsewhere"))
    assert original.nmesh == 3
    assert original.names == imported.names
    assert differ(original, imported, paths=True) == []


PACKAGES = {
    "in a folder of that name above the file": ("arm_description/urdf/r.urdf", "arm_description/meshes/a.stl"),
    "in a package beside the file's own": ("robot/urdf/r.urdf", "arm_description/meshes/a.stl"),
    "beside the file": ("robot/urdf/r.urdf", "robot/urdf/meshes/a.stl"),
}


@pytest.mark.parametrize(("urdf", "mesh"), PACKAGES.values(), ids=PACKAGES)
def test_a_package_is_found(tree, roots: FileRoots, stl, urdf: str, mesh: str) -> None:
    folder = tree({urdf: robot("package://arm_description/meshes/a.stl"), mesh: stl(2)})
    bundle, original = model_bundle(folder / urdf, Sources(roots, DEFAULT_LIMITS))
    assert bundle.files["assets/a.stl"] == stl(2)
    assert original.files == {"package://arm_description/meshes/a.stl": str(folder / mesh)}


def test_a_package_that_is_nowhere_is_named(tree, rewrite, tmp_path: Path, stl) -> None:
    folder = tree({"r.urdf": robot("package://arms/a.stl")})
    (tmp_path / "arms").mkdir()
    (tmp_path / "arms" / "a.stl").write_bytes(stl())
    with pytest.raises(ImportFailed, match=r"line 1 of .*r\.urdf refers to 'package://arms/a\.stl'.*folder 'arms'"):
        rewrite(folder / "r.urdf")


def test_a_file_uri_is_followed_inside_the_roots_only(tree, rewrite, stl) -> None:
    folder = tree({"r.urdf": robot("file://@/q/a.stl"), "s.urdf": robot("file:///etc/passwd"), "q/a.stl": stl(3)})
    assert rewrite(folder / "r.urdf").files["assets/a.stl"] == stl(3)
    with pytest.raises(ImportFailed, match="outside the folders"):
        rewrite(folder / "s.urdf")


def test_a_urdf_with_packages_and_a_sidecar_is_imported_and_lives_without_its_source(
    tree, roots: FileRoots, project, stl
) -> None:
    sidecar = '[[actuators]]\nname = "drive"\njoint = "j1"\n'
    folder = tree(
        {
            "arm/urdf/r.urdf": robot("package://arm/a.stl", "b.stl", extension="<!-- ours -->"),
            "arm/urdf/r.urlab.toml": sidecar,
            "arm/a.stl": stl(2),
            "arm/urdf/b.stl": stl(3),
        }
    )
    record, _ = import_file(folder / "arm/urdf/r.urdf", project, roots)
    (folder / "arm").rename(folder / "gone")
    blueprint = load_blueprint(record)
    model = compile_spec(blueprint.spec.copy())[0]
    assert (blueprint.model_name, model.nu, model.nmesh, model.nbody) == ("u", 1, 2, 3)
    assert b"<!-- ours -->" in record.file.read_bytes()

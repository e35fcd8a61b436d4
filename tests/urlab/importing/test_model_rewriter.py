import re
import struct
from pathlib import Path

import numpy as np
import pytest

from urlab.compile.blueprint import compile_spec, load_blueprint
from urlab.errors import ImportFailed
from urlab.importing import import_file
from urlab.importing.check_child import first_difference
from urlab.importing.formats import model_bundle
from urlab.importing.mjcf_document import NotXml
from urlab.importing.sources import DEFAULT_LIMITS, SourceFiles
from urlab.paths import FileRoots
from urlab.robots import model_names, model_path
from urlab.scene.blueprint_record import file_record

WORLD = '<worldbody><geom type="mesh" mesh="a"/></worldbody>'
BALL = '<worldbody><body name="b"><geom size="1"/></body></worldbody>'
MESH = '<asset><mesh file="x/a.stl"/></asset>'


def model(*parts: str) -> str:
    return f"<mujoco>{''.join(parts)}</mujoco>"


MESH_LAYOUTS = {
    "beside the model": ("", MESH, "x/a.stl"),
    "in meshdir": ('<compiler meshdir="m"/>', MESH, "m/x/a.stl"),
    "in assetdir": ('<compiler assetdir="m"/>', MESH, "m/x/a.stl"),
    "in meshdir, which wins over assetdir": ('<compiler assetdir="t" meshdir="m"/>', MESH, "m/x/a.stl"),
    "in the assetdir of a later compiler": ('<compiler meshdir="t"/><compiler assetdir="m"/>', MESH, "m/x/a.stl"),
    "in a meshdir that is absolute": ('<compiler meshdir="@/m"/>', MESH, "m/x/a.stl"),
    "in a meshdir with dots": ('<compiler meshdir="./t/../m/"/>', MESH, "m/x/a.stl"),
    "behind backslashes": ('<compiler meshdir="m\\k"/>', '<asset><mesh file="x\\a.stl"/></asset>', "m/k/x/a.stl"),
    "in meshdir, path stripped": ('<compiler meshdir="m" strippath="true"/>', MESH, "m/a.stl"),
    "with a package that is stripped": (
        '<compiler strippath="true"/>',
        '<asset><mesh file="package://p/a.stl"/></asset>',
        "a.stl",
    ),
    "at an absolute path": ('<compiler meshdir="m"/>', '<asset><mesh file="@/q/a.stl"/></asset>', "q/a.stl"),
    "above meshdir": ('<compiler meshdir="m"/>', '<asset><mesh file="../q/a.stl"/></asset>', "q/a.stl"),
    "under a name with an entity": ("", '<asset><mesh name="a" file="p&amp;q.stl"/></asset>', "p&q.stl"),
    "under an odd name": ("", '<asset><mesh name="a" file="p:q.stl"/></asset>', "p:q.stl"),
}


@pytest.mark.parametrize(("compiler", "asset", "place"), MESH_LAYOUTS.values(), ids=MESH_LAYOUTS)
def test_a_mesh_is_found_where_mujoco_finds_it(tree, faithful, stl, compiler: str, asset: str, place: str) -> None:
    decoys = {name: stl(7) for name in ("t/x/a.stl", "decoy/a.stl")}
    folder = tree({**decoys, "r.xml": model(compiler, asset, WORLD), place: stl()})
    assert faithful(folder / "r.xml").nmesh == 1


INCLUDES = {
    "beside the included file": ('<include file="sub/i.xml"/>', model(MESH), ["sub/x/a.stl"]),
    "beside the model, which is looked at first": (
        '<include file="sub/i.xml"/>',
        model(MESH),
        ["x/a.stl", "sub/x/a.stl"],
    ),
    "in the meshdir that the included file names": (
        '<include file="sub/i.xml"/>',
        model('<compiler meshdir="m"/>', MESH),
        ["m/x/a.stl", "sub/x/a.stl", "sub/m/x/a.stl"],
    ),
    "beside the included file, outside the meshdir of the model": (
        '<compiler meshdir="m"/><include file="sub/i.xml"/>',
        model(MESH),
        ["sub/x/a.stl", "sub/m/x/a.stl"],
    ),
    "in the meshdir of the model, path stripped": (
        '<compiler meshdir="m" strippath="true"/><include file="sub/i.xml"/>',
        model(MESH),
        ["m/a.stl", "sub/x/a.stl"],
    ),
    "beside a file that is included by its absolute path": (
        '<include file="@/sub/i.xml"/>',
        model(MESH),
        ["sub/x/a.stl"],
    ),
    "in a file that is included with an end tag": (
        '<include file="sub/i.xml"> </include>',
        model(MESH),
        ["x/a.stl"],
    ),
}


@pytest.mark.parametrize(("including", "included", "places"), INCLUDES.values(), ids=INCLUDES)
def test_the_mesh_of_an_included_file_is_found_where_mujoco_finds_it(
    tree, faithful, stl, including: str, included: str, places: list[str]
) -> None:
    meshes = {place: stl(number + 1) for number, place in enumerate(places)}
    folder = tree({"r.xml": model(including, WORLD), "sub/i.xml": included, **meshes})
    faithful(folder / "r.xml")


def test_includes_nest_and_may_stand_in_any_section(tree, faithful, stl) -> None:
    folder = tree(
        {
            "r.xml": model(
                '<default><include file="d.xml"/></default><asset><include file="sub/i.xml"/></asset>',
                '<worldbody><body><include file="b.xml"/></body></worldbody>',
            ),
            "d.xml": '<x><default class="q"><geom size="0.3"/></default></x>',
            "b.xml": '<x><!-- a -- comment --><geom class="q"/><geom type="mesh" mesh="a"/></x>',
            "sub/i.xml": '<x><include file="deep/j.xml"/></x>',
            "sub/deep/j.xml": '<?xml version="1.0"?><!-- j --><x><mesh file="a.stl"/></x>',
            "sub/deep/a.stl": stl(),
        }
    )
    faithful(folder / "r.xml")


def test_textures_cube_faces_heightfields_and_skins_come_along(tree, faithful, stl, png) -> None:
    grid = struct.pack("<2i", 2, 2) + np.arange(4, dtype="f4").tobytes()
    faces = 'fileright="r.png" fileleft="z/r.png" fileup="u.png" filedown="u.png" filefront="u.png" fileback="u.png"'
    folder = tree(
        {
            "r.xml": model(
                '<compiler meshdir="m" texturedir="t"/>',
                f'<asset><texture type="2d" file="x/p.png"/><texture type="cube" name="c" {faces}/>',
                '<texture type="skybox" file="p.png" name="sky"/><hfield size="1 1 1 1" file="g.png"/>',
                '<hfield size="1 1 1 1" file="h/grid.bin"/></asset>',
                f'<deformable><skin file="x/s.skn"/></deformable>{BALL}',
            ),
            **{f"t/{name}.png": png(10 * number) for number, name in enumerate(("x/p", "p", "r", "z/r", "u"))},
            "m/g.png": png(7),
            "m/h/grid.bin": grid,
            "m/x/s.skn": skin_file(),
        }
    )
    imported = faithful(folder / "r.xml")
    assert (imported.ntex, imported.nhfield, imported.nskin) == (3, 2, 1)


def skin_file() -> bytes:
    vertices, faces = np.eye(3, dtype="f4"), np.arange(3, dtype="i4")
    bone = b"b".ljust(40, b"\0") + struct.pack("<7fi", 0, 0, 0, 1, 0, 0, 0, 3)
    weights = np.arange(3, dtype="i4").tobytes() + np.ones(3, "f4").tobytes()
    return struct.pack("<4i", 3, 0, 1, 1) + vertices.tobytes() + faces.tobytes() + bone + weights


def test_the_file_of_a_flexcomp_comes_along(tree, faithful, stl) -> None:
    flex = '<flexcomp name="f" type="mesh" file="x/a.stl" mass="1" dim="2"><contact selfcollide="none"/></flexcomp>'
    folder = tree(
        {
            "r.xml": model('<compiler meshdir="m"/>', f"<worldbody>{flex}</worldbody>"),
            "m/x/a.stl": stl(),
            "x/a.stl": stl(2),
        }
    )
    assert faithful(folder / "r.xml").nflex == 1


def test_two_files_with_one_name_stay_two(tree, faithful, stl) -> None:
    asset = (
        '<asset><mesh name="a" file="p/a.stl"/><mesh name="b" file="q/a.stl"/><mesh name="c" file="q/A.stl"/></asset>'
    )
    folder = tree({"r.xml": model(asset, WORLD), "p/a.stl": stl(), "q/a.stl": stl(2), "q/A.stl": stl(3)})
    assert faithful(folder / "r.xml").nmesh == 3


@pytest.mark.parametrize("name", ["arm.v2.stl", "con.stl", "a:b.stl", ".arm.stl", "höhe.stl"])
def test_a_mesh_without_a_name_is_still_called_after_its_file(tree, faithful, stl, name: str) -> None:
    folder = tree({"r.xml": model(f'<asset><mesh file="{name}"/></asset>', BALL), name: stl()})
    assert faithful(folder / "r.xml").mesh(0).name == name.removesuffix(".stl")


def test_a_texture_that_mujoco_makes_itself_may_name_a_file_that_is_not_there(tree, faithful) -> None:
    texture = '<texture name="c" type="2d" builtin="checker" width="4" height="4" file="nope.png"/>'
    faithful(tree({"r.xml": model(f"<asset>{texture}</asset>", BALL)}) / "r.xml")


SUB = model(
    '<compiler meshdir="sm"/><asset><mesh file="a.stl"/><texture type="2d" file="p.png"/></asset>',
    '<worldbody><body name="arm"><geom type="mesh" mesh="a"/></body></worldbody>',
)
ATTACH = '<worldbody><attach model="s" body="arm" prefix="p_"/></worldbody>'


def test_a_model_within_a_model_comes_along_with_its_files(tree, faithful, stl, png) -> None:
    folder = tree(
        {
            "r.xml": model('<asset><mesh file="a.stl"/><model name="s" file="q/s.xml"/></asset>', ATTACH),
            "a.stl": stl(5),
            "q/s.xml": SUB,
            "q/sm/a.stl": stl(2),
            "q/p.png": png(3),
        }
    )
    assert faithful(folder / "r.xml").nmesh == 2


def test_models_nest_and_the_outermost_decides_whether_paths_are_stripped(tree, faithful, stl, png) -> None:
    middle = '<worldbody><body name="arm"><attach model="t" body="arm" prefix="t_"/></body></worldbody>'
    folder = tree(
        {
            "r.xml": model('<compiler strippath="true"/><asset><model name="s" file="q/s.xml"/></asset>', ATTACH),
            "q/s.xml": model('<asset><model name="t" file="k/s.xml"/></asset>', middle),
            "q/k/s.xml": SUB.replace("a.stl", "z/a.stl"),
            "q/k/sm/a.stl": stl(2),
            "q/k/sm/z/a.stl": stl(3),
            "q/k/p.png": png(3),
        }
    )
    faithful(folder / "r.xml")


def test_a_model_that_needs_itself_is_refused(tree, rewrite) -> None:
    folder = tree(
        {
            "r.xml": model('<asset><model name="s" file="s.xml"/></asset>', ATTACH),
            "s.xml": model('<asset><model name="s" file="r.xml"/></asset>', ATTACH),
        }
    )
    with pytest.raises(ImportFailed, match=r"s\.xml needs the model .*r\.xml, which needs"):
        rewrite(folder / "r.xml")


def test_an_include_that_includes_itself_is_left_for_mujoco_to_refuse(tree, rewrite, compiled) -> None:
    folder = tree({"r.xml": model('<include file="i.xml"/>'), "i.xml": model('<include file="i.xml"/>')})
    assert b"include" in rewrite(folder / "r.xml").files["r.xml"]
    with pytest.raises(ValueError, match="already included"):
        compiled(folder / "r.xml")


def test_a_flood_of_includes_is_refused(tree, rewrite) -> None:
    twice = [model(*[f'<include file="{number + 1}.xml"/>'] * 2) for number in range(12)]
    folder = tree({f"{number}.xml": text for number, text in enumerate([*twice, model("<option/>")])})
    with pytest.raises(ImportFailed, match="includes more than 200 files"):
        rewrite(folder / "0.xml")


def test_everything_but_the_references_stays_as_it_was_written(tree, rewrite, stl) -> None:
    text = """<?xml version="1.0"?>
<!-- a robot -- of ours -->
<mujoco   model='r' >
  <compiler angle="radian"  meshdir="m" autolimits='true'/>
  <option timestep="0.00200000000000000001"/>
  <asset> <mesh name='a'  scale="1e0 1. 1"   file='x/a.stl' /> </asset>
  <include file="i.xml"/> <!-- included -->
</mujoco>
"""
    folder = tree({"r.xml": text, "i.xml": f"<x>\n  <!-- i -->{WORLD}\n</x>", "m/x/a.stl": stl()})
    expected = (
        text.replace('  meshdir="m"', "")
        .replace("x/a.stl", "assets/a.stl")
        .replace('<include file="i.xml"/>', f"\n  <!-- i -->{WORLD}\n")
    )
    bundle = rewrite(folder / "r.xml")
    assert bundle.files["r.xml"].decode() == expected
    assert bundle.files["assets/a.stl"] == stl()


@pytest.mark.parametrize("name", model_names())
def test_a_shipped_model_is_taken_over_as_it_is(tmp_path: Path, faithful, rewrite, name: str) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for file in model_path(name).parent.iterdir():
        (source / file.name).write_bytes(file.read_bytes())
    assert {one for one in rewrite(source / f"{name}.xml").files if "/" not in one} == {
        one.name for one in source.iterdir()
    }
    faithful(source / f"{name}.xml")


ESCAPES = {
    "a mesh above the roots": '<asset><mesh name="a" file="../secret.stl"/></asset>',
    "an absolute mesh": '<asset><mesh name="a" file="/etc/passwd"/></asset>',
    "a mesh through an entity": '<asset><mesh name="a" file="..&#47;secret.stl"/></asset>',
    "a mesh through meshdir": '<compiler meshdir=".."/><asset><mesh name="a" file="secret.stl"/></asset>',
    "a mesh through a later meshdir": '<asset><mesh file="secret.stl"/></asset><compiler assetdir="/etc"/>',
    "a face of a cube": '<asset><texture name="c" type="cube" fileup="../secret.png"/></asset>',
    "a heightfield": '<asset><hfield name="h" size="1 1 1 1" file="../secret.png"/></asset>',
    "a skin": '<deformable><skin name="h" file="../secret.skn"/></deformable>',
    "a flexcomp": '<worldbody><flexcomp name="f" type="mesh" file="../secret.stl"/></worldbody>',
    "an include": '<include file="../secret.xml"/>',
    "a model": '<asset><model name="m" file="../secret.xml"/></asset>',
    "a link": '<asset><mesh name="a" file="link/secret.stl"/></asset>',
    "an include of an include": '<include file="sub/i.xml"/>',
}


@pytest.mark.parametrize("parts", ESCAPES.values(), ids=ESCAPES)
def test_nothing_outside_the_roots_is_read(tree, rewrite, tmp_path: Path, parts: str) -> None:
    folder = tree({"r.xml": model(parts, BALL), "sub/i.xml": model('<include file="../../secret.xml"/>')})
    (folder / "link").symlink_to(tmp_path)
    for suffix in ("stl", "png", "skn"):
        (tmp_path / f"secret.{suffix}").write_bytes(b"secret")
    (tmp_path / "secret.xml").write_text(model("<option/>"))
    with pytest.raises(ImportFailed, match=r"outside the folders that may be read.*--model-root"):
        rewrite(folder / "r.xml")


@pytest.mark.parametrize("file", ["C:/a.stl", "package://p/a.stl", "\\\\host\\a.stl"])
def test_a_path_of_another_kind_is_refused(tree, rewrite, file: str) -> None:
    folder = tree({"r.xml": model(f'<asset><mesh name="a" file="{file}"/></asset>')})
    with pytest.raises(ImportFailed, match=re.escape(f"refers to {file!r}, which is not a path")):
        rewrite(folder / "r.xml")


def test_a_nul_is_refused_wherever_it_stands(tree, rewrite) -> None:
    folder = tree({"r.xml": model('<asset><mesh name="a" file="a&#0;.stl"/></asset>'), "n.xml": "<mujoco/>\0<"})
    with pytest.raises(ImportFailed, match="NUL"):
        rewrite(folder / "r.xml")
    with pytest.raises(NotXml, match="line 1"):
        rewrite(folder / "n.xml")


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
    tree, rewrite, unpack, stl, tmp_path: Path, extension: str, place: str
) -> None:
    folder = tree({"r.urdf": robot("x/a.stl", "x/a.stl", extension=extension), place: stl(2)})
    original, bundle = compiled_blueprint(folder / "r.urdf"), rewrite(folder / "r.urdf")
    imported = compiled_blueprint(unpack(bundle, tmp_path / "elsewhere"))
    assert bundle.main == "r.urdf"
    assert first_difference(original, imported) is None
    assert original.names == imported.names


def test_meshes_of_one_name_keep_the_names_that_mujoco_gives_them(tree, rewrite, unpack, stl, tmp_path) -> None:
    folder = tree({"r.urdf": robot("p/a.stl", "q/a.stl", "q/./a.stl"), "p/a.stl": stl(), "q/a.stl": stl(2)})
    original = compiled_blueprint(folder / "r.urdf")
    imported = compiled_blueprint(unpack(rewrite(folder / "r.urdf"), tmp_path / "elsewhere"))
    assert original.nmesh == 3
    assert original.names == imported.names
    assert first_difference(original, imported) is None


PACKAGES = {
    "in a folder of that name above the file": ("arm_description/urdf/r.urdf", "arm_description/meshes/a.stl"),
    "in a package beside the file's own": ("robot/urdf/r.urdf", "arm_description/meshes/a.stl"),
    "beside the file": ("robot/urdf/r.urdf", "robot/urdf/meshes/a.stl"),
}


@pytest.mark.parametrize(("urdf", "mesh"), PACKAGES.values(), ids=PACKAGES)
def test_a_package_is_found(tree, roots: FileRoots, stl, urdf: str, mesh: str) -> None:
    folder = tree({urdf: robot("package://arm_description/meshes/a.stl"), mesh: stl(2)})
    bundle, original = model_bundle(folder / urdf, SourceFiles(roots, DEFAULT_LIMITS))
    assert bundle.files["assets/a.stl"] == stl(2)
    assert original.files == {"package://arm_description/meshes/a.stl": str(folder / mesh)}


def test_a_package_that_is_nowhere_is_named(tree, rewrite, tmp_path: Path, stl) -> None:
    needed = robot("package://arms/a.stl").replace("visual>", "collision>")
    folder = tree({"r.urdf": needed})
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

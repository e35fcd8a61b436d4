import os
import shutil
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import mujoco
import pytest

from urlab import importing
from urlab.compile.blueprint import compile_spec, load_blueprint
from urlab.errors import ImportFailed
from urlab.importing import add_import, import_file
from urlab.importing.bundle import Bundle
from urlab.importing.check_child import first_difference
from urlab.importing.sources import ImportLimits
from urlab.paths import FileRoots
from urlab.robots import model_path
from urlab.scene.blueprint_record import BlueprintKind
from urlab.scene.project import Project

BALL = '<mujoco><worldbody><geom size="1"/></worldbody></mujoco>'
ARM = """<mujoco model="arm"><compiler meshdir="m"/><include file="sub/i.xml"/>
<worldbody><body><joint name="j"/><geom type="mesh" mesh="a"/></body></worldbody></mujoco>"""
ARM_FILES = {"arm.xml": ARM, "sub/i.xml": '<x><asset><mesh file="a.stl"/></asset></x>'}


def test_a_model_is_imported_and_lives_without_its_source(
    tree, project: Project, roots: FileRoots, stl, compiled
) -> None:
    sidecar = '[[actuators]]\nname = "drive"\njoint = "j"\n'
    folder = tree({**ARM_FILES, "m/a.stl": stl(2), "arm.urlab.toml": sidecar})
    original = compiled(folder / "arm.xml")
    record, is_new = import_file(folder / "arm.xml", project, roots)
    shutil.rmtree(folder)
    imported = compiled(record.file)
    assert is_new
    assert (record.class_path, record.source) == ("/Game/MuJoCoImports/arm.arm_C", str(folder / "arm.xml"))
    assert first_difference(original, imported) is None
    assert compile_spec(load_blueprint(record).spec.copy())[0].nu == 1
    assert sorted(one.name for one in record.file.parent.iterdir()) == [
        "arm.urlab.toml",
        "arm.xml",
        "assets",
        "import.toml",
    ]


def test_a_model_is_imported_again_when_any_of_its_files_has_changed(
    tree, project: Project, roots: FileRoots, stl
) -> None:
    path = tree({**ARM_FILES, "m/a.stl": stl(2)}) / "arm.xml"
    first, _ = import_file(path, project, roots)
    assert import_file(path, project, roots) == (first, False)
    assert import_file(path.parent / "sub" / ".." / "arm.xml", project, roots) == (first, False)
    (path.parent / "m" / "a.stl").write_bytes(stl(3))
    second, is_new = import_file(path, project, roots)
    assert is_new
    assert second.file == first.file
    assert second.content != first.content
    assert (second.file.parent / "assets" / "a.stl").read_bytes() == stl(3)
    assert import_file(path, project, roots, force=True) == (second, True)


def test_a_broken_model_leaves_the_import_that_was_there(tree, project: Project, roots: FileRoots) -> None:
    path = tree({"ball.xml": BALL}) / "ball.xml"
    record, _ = import_file(path, project, roots)
    path.write_text("<mujoco><nonsense/></mujoco>")
    with pytest.raises(ImportFailed, match="nonsense"):
        import_file(path, project, roots)
    assert project.imported("ball") == record
    assert record.file.read_text() == BALL


@pytest.mark.parametrize("name", ["arm.mjcf", "arm.XML"])
def test_mjcf_may_have_a_suffix_that_mujoco_does_not_know(tree, project, roots, stl, name: str) -> None:
    folder = tree({**ARM_FILES, name: ARM, "m/a.stl": stl(2)})
    record, _ = import_file(folder / name, project, roots)
    assert (record.file.name, load_blueprint(record).model_name) == ("arm.xml", "arm")


def test_a_shipped_robot_may_always_be_read(tmp_path: Path, compiled) -> None:
    project = Project(tmp_path, shipped_models={"quadruped": model_path("quadruped")})
    record, _ = import_file(model_path("quadruped"), project, FileRoots())
    original, imported = compiled(model_path("quadruped")), compiled(record.file)
    assert first_difference(original, imported) is None
    assert load_blueprint(record).sidecar == load_blueprint(project.record("quadruped")).sidecar


def test_a_mesh_file_is_imported_as_well(tree, project: Project, roots: FileRoots, stl) -> None:
    record, is_new = import_file(tree({"cup.stl": stl()}) / "cup.stl", project, roots)
    assert is_new
    assert (record.kind, compile_spec(load_blueprint(record).spec.copy())[0].nmesh) == ("static_mesh", 1)


def test_what_cannot_be_imported_is_told_with_what_can(tree, project: Project, roots: FileRoots) -> None:
    folder = tree({"notes.txt": "x"})
    with pytest.raises(ImportFailed, match=r"notes\.txt is no file.*\.glb .*\.urdf \.xml$"):
        import_file(folder / "notes.txt", project, roots)
    with pytest.raises(ImportFailed, match=f"there is no file {folder}/nothing.xml"):
        import_file(folder / "nothing.xml", project, roots)


BROKEN = {
    "no XML": (
        {"r.xml": "<mujoco>\n<worldbody>\n<geom size=1/></worldbody></mujoco>"},
        r"r\.xml: XML parse error 7:\nError=XML_ERROR_PARSING_ATTRIBUTE.*Line number=3",
    ),
    "no XML in an include": (
        {"r.xml": '<mujoco><include file="i.xml"/></mujoco>', "i.xml": "<a>\n<b c=1/></a>"},
        r"i\.xml: XML parse error 7:\nError=XML_ERROR_PARSING_ATTRIBUTE.*Line number=2",
    ),
    "tags that do not match": ({"r.xml": "<mujoco>\n<a>\n</mujoco>"}, r"r\.xml: XML parse error 14:.*\n.*number=2"),
    "an unknown attribute": (
        {"r.xml": '<mujoco>\n<worldbody>\n<geom sizes="1"/></worldbody></mujoco>'},
        r"r\.xml: XML Error: Schema violation: unrecognized attribute: 'sizes'\nElement 'geom', line 3",
    ),
    "a missing mesh": (
        {"r.xml": '<mujoco><asset>\n<mesh file="m/nope.stl"/></asset></mujoco>'},
        r"r\.xml: Error: Error opening file 'm/nope\.stl'\n\(line 2 of .*r\.xml\)",
    ),
    "a missing include": (
        {"r.xml": '<mujoco>\n<include file="nope.xml"/></mujoco>'},
        r"r\.xml: XML Error: .*nope\.xml'\nElement 'include', line 2",
    ),
    "another kind of XML": ({"r.xml": "<html/>"}, r"r\.xml: XML Error: Unrecognized XML model type: 'html'"),
    "nothing": ({"r.xml": ""}, r"empty file '.*r\.xml'"),
    "a sidecar that is wrong": (
        {"r.xml": BALL, "r.urlab.toml": "twist = 3\n"},
        r"source/r\.urlab\.toml:1: twist: is 3",
    ),
    "a sidecar that names what is not there": (
        {"r.xml": BALL, "r.urlab.toml": "[cameras.eye]\n"},
        r"sidecar of .*source/r\.xml names the camera 'eye'",
    ),
}


@pytest.mark.parametrize(("files", "words"), BROKEN.values(), ids=BROKEN)
def test_a_broken_model_is_refused_in_mujocos_own_words(
    tree, project: Project, roots: FileRoots, files: dict[str, str], words: str
) -> None:
    with pytest.raises(ImportFailed, match=words):
        import_file(tree(files) / "r.xml", project, roots)
    assert project.records() == []


def test_a_model_that_takes_too_long_is_refused(tree, project: Project, roots: FileRoots) -> None:
    text = '<mujoco><worldbody><replicate count="100000000"><geom size="1"/></replicate></worldbody></mujoco>'
    with pytest.raises(ImportFailed, match=r"r\.xml: compiling it failed: it took longer than the 0\.8 s"):
        import_file(tree({"r.xml": text}) / "r.xml", project, roots, limits=ImportLimits(timeout_s=0.8))
    assert [one.name for one in project.imports_dir.iterdir()] == [".lock"]


def test_paths_that_lead_out_touch_nothing(tree, project: Project, roots: FileRoots, tmp_path: Path) -> None:
    folder = tree({"x": ""})
    (tmp_path / "secret.xml").write_text(BALL)
    (folder / "link.xml").symlink_to(tmp_path / "secret.xml")
    (folder / "side.xml").write_text(BALL)
    (folder / "side.urlab.toml").symlink_to(tmp_path / "secret.xml")
    escapes = [tmp_path / "secret.xml", folder / ".." / "secret.xml", folder / "link.xml", folder / "side.xml"]
    for path in escapes:
        with pytest.raises(ImportFailed, match="--model-root"):
            import_file(path, project, roots)
    with pytest.raises(ImportFailed, match="NUL"):
        import_file(folder / "a\0.xml", project, roots)
    assert not project.folder.exists()


def test_pipes_and_folders_are_refused_at_once(tree, project: Project, roots: FileRoots) -> None:
    folder = tree({"r.xml": '<mujoco><asset><mesh file="pipe.stl"/></asset></mujoco>', "dir.xml/x": ""})
    for name in ("pipe.xml", "pipe.stl"):
        os.mkfifo(folder / name)
    for name, words in (("pipe.xml", "a pipe"), ("pipe.stl", "a pipe"), ("r.xml", "a pipe"), ("dir.xml", "a folder")):
        with pytest.raises(ImportFailed, match=words):
            import_file(folder / name, project, roots)
    assert not project.folder.exists()


def test_a_source_that_is_not_utf8_is_refused(tree, project: Project, roots: FileRoots) -> None:
    folder = tree({"x": ""})
    path = folder / os.fsdecode(b"\xe9.xml")
    path.write_text(BALL)
    with pytest.raises(ImportFailed, match="not a path in UTF-8"):
        import_file(path, project, roots)


def bundle(radius: int = 1, stem: str = "ball", **files: bytes) -> Bundle:
    text = f'<mujoco><worldbody><geom size="{radius}"/></worldbody></mujoco>'
    return Bundle(stem, "ball.xml", {"ball.xml": text.encode(), **files}, BlueprintKind.MODEL)


def test_a_model_that_mujoco_refuses_leaves_nothing(project: Project) -> None:
    broken = Bundle("ball", "ball.xml", {"ball.xml": b"<mujoco><nonsense/></mujoco>"}, BlueprintKind.HEIGHTFIELD)
    with pytest.raises(ImportFailed, match="unrecognized element"):
        add_import(broken, "an array", project)
    assert project.records() == []


def test_threads_that_import_the_same_thing_both_succeed(project: Project) -> None:
    barrier = threading.Barrier(3)

    def run(_: int) -> tuple[object, bool]:
        barrier.wait()
        return add_import(bundle(), "/there", project)

    with ThreadPoolExecutor() as pool:
        kept = list(pool.map(run, range(3)))
    assert [record for record, _ in kept] == [project.imported("ball")] * 3
    assert sorted(is_new for _, is_new in kept) == [False, False, True]


def test_the_front_door_is_what_it_says() -> None:
    names = "StopSwitch Upload add_import import_file store_upload sweep_stored"
    assert set(importing.__all__) == set(names.split())
    assert all(hasattr(importing, name) for name in importing.__all__)


def test_xml_that_is_nothing_but_tags_costs_little_memory_here(tree, project: Project, roots: FileRoots) -> None:
    text = b"<mujoco>" + b"<a/>" * 200_000 + b"</mujoco>"
    folder = tree({"r.xml": text})
    tracemalloc.start()
    try:
        with pytest.raises(ImportFailed, match="unrecognized element"):
            import_file(folder / "r.xml", project, roots)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < (64 << 20) + 10 * len(text)


def test_a_model_with_much_xml_becomes_the_same_import_as_one_with_little(
    tree, project: Project, roots: FileRoots, stl
) -> None:
    text = """<mujoco><compiler meshdir="meshes"/><include file="part.xml"/><asset><mesh name="m" file="m.stl"/></asset>
      <worldbody><body><joint/><geom type="mesh" mesh="m"/>%s</body></worldbody></mujoco>"""
    part = '<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1"/></worldbody></mujoco>'
    folder = tree({"r.xml": text % (" " * 600_000), "part.xml": part, "meshes/m.stl": stl(), "s.xml": text % ""})
    (large, _), (small, _) = (import_file(folder / name, project, roots) for name in ("r.xml", "s.xml"))
    models = [mujoco.MjModel.from_xml_path(str(record.file)) for record in (large, small)]
    assert first_difference(*models) in (None, "names")
    assert sorted(one.name for one in large.file.parent.rglob("*.stl")) == ["m.stl"]


def test_what_is_wrong_with_much_xml_is_told(tree, project: Project, roots: FileRoots, tmp_path: Path) -> None:
    (tmp_path / "secret.stl").write_text("secret")
    space = " " * 600_000
    folder = tree({
        "not.xml": f"<mujoco>{space}<a b=1/></mujoco>",
        "out.xml": f'<mujoco>{space}<asset><mesh file="{tmp_path}/secret.stl"/></asset></mujoco>',
    })  # fmt: skip
    with pytest.raises(ImportFailed, match="XML_ERROR_PARSING_ATTRIBUTE"):
        import_file(folder / "not.xml", project, roots)
    with pytest.raises(ImportFailed, match=r"outside the folders that may be read.*--model-root"):
        import_file(folder / "out.xml", project, roots)


def test_more_xml_than_any_model_has_is_refused(tree, project: Project, roots: FileRoots) -> None:
    with (tree({"x": ""}) / "r.xml").open("wb") as file:
        file.write(b"<mujoco>")
        file.truncate(65 << 20)
    with pytest.raises(ImportFailed, match="more than 64 MiB of XML"):
        import_file(Path(file.name), project, roots)


_WITH_MESH = '<robot name="r"><link name="l"><visual><geometry><mesh filename="package://FILE"/></geometry></visual></link></robot>'


@pytest.mark.parametrize("place", ["../out", "link"])
def test_no_import_tells_whether_there_is_a_file_outside(
    tree, stl, project: Project, roots: FileRoots, tmp_path: Path, place: str
) -> None:
    """MuJoCo itself goes by what stands after :// to wherever that leads."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "there.stl").write_bytes(stl())
    folder = tree({f"{name}/r.urdf": _WITH_MESH.replace("FILE", f"{place}/{name}.stl") for name in ("there", "none")})
    said = []
    for name in ("there", "none"):
        (folder / name / "link").symlink_to(tmp_path / "out")
        (folder / "out").symlink_to(tmp_path / "out") if not (folder / "out").is_symlink() else None
        try:
            said.append(sorted(import_file(folder / name / "r.urdf", project, roots)[0].file.parent.rglob("*.stl")))
        except ImportFailed as failed:
            said.append(failed.message.replace(name, "NAME"))
    assert said[0] == said[1]

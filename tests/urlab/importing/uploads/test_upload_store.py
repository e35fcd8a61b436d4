"""Uploads in the folder of the project: whole or not at all, the newest only."""

import io
import os
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import mujoco
import pytest

from urlab.errors import ImportFailed, UploadFailed
from urlab.importing import import_file, store_upload, sweep_stored
from urlab.importing.uploads import upload_store
from urlab.paths import FileRoots
from urlab.scene.project import Project
from urlab_wire.ops.scene import MAX_UPLOAD_BYTES

ARM = b'<mujoco model="arm"><worldbody><body><joint name="j"/><geom size=".1"/></body></worldbody></mujoco>'
CUBE = (
    b"\n".join(b"v %d %d %d" % (i & 1, i >> 1 & 1, i >> 2) for i in range(8))
    + b"""
f 1 3 4 2
f 5 6 8 7
f 1 2 6 5
f 3 7 8 4
f 1 5 7 3
f 2 4 8 6
"""
)
MESHED = """<mujoco model="m"><compiler meshdir="{}"/><asset><mesh name="c" file="{}"/></asset>
<worldbody><body><geom type="mesh" mesh="c"/></body></worldbody></mujoco>"""


def packed(files: Mapping[str, bytes | str]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return data.getvalue()


def everything(project: Project) -> dict[str, bytes]:
    """All files of the uploads but the lock and whose they are, by their paths."""
    folder = project.uploads_dir
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".lock" and path.suffix != ".owner"
    }


def models(project: Project, name: str, data: bytes) -> list[str]:
    """The models of an upload, relative to its folder; the first is the one to import."""
    upload = store_upload(project, name, data)
    assert upload.path == upload.models[0]
    folder = project.uploads_dir / name.replace(".", "-")
    return [model.relative_to(folder).as_posix() for model in upload.models]


def test_a_model_file_is_kept_under_its_name(project: Project) -> None:
    upload = store_upload(project, "arm.xml", ARM)
    assert upload.path == project.uploads_dir / "arm-xml" / "arm.xml"
    assert upload.models == (upload.path,)
    assert everything(project) == {"arm-xml/arm.xml": ARM}


def test_the_files_of_a_zip_file_are_kept_as_it_has_them(project: Project) -> None:
    files = {"robot/arm.xml": ARM, "robot/assets/cube.obj": CUBE, "README.md": b"hello"}
    assert models(project, "robot.zip", packed(files)) == ["robot/arm.xml"]
    assert everything(project) == {f"robot-zip/{name}": content for name, content in files.items()}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"b.xml": ARM, "a.xml": ARM, "deep/robot.xml": ARM}, ["a.xml", "b.xml", "deep/robot.xml"]),
        ({"z/robot.xml": ARM, "z/a.xml": ARM}, ["z/robot.xml", "z/a.xml"]),
        ({"a.xml": ARM, "robot.urdf": b'<?xml version="1.0"?><robot name="r"/>'}, ["robot.urdf", "a.xml"]),
        ({"package.xml": b"<package/>", "part.xml": b"<mujocoinclude/>", "x/arm.XML": ARM}, ["x/arm.XML"]),
        ({"broken.xml": b"<<<", "empty.xml": b"", "arm.mjcf": b"<!-- " + b"x" * 9000 + b" -->" + ARM}, ["arm.mjcf"]),
        ({"arm.xml": ARM, "cube.obj": CUBE}, ["arm.xml"]),
        ({"b/cube.obj": CUBE, "ball.stl": b"x"}, ["ball.stl", "b/cube.obj"]),
    ],
)
def test_the_model_at_the_top_comes_first(project: Project, files: dict[str, bytes], expected: list[str]) -> None:
    assert models(project, "robot.zip", packed(files)) == expected


def test_a_zip_file_without_a_model_says_what_it_has(project: Project) -> None:
    files = {"notes.txt": b"x", "package.xml": b"<package/>"}
    with pytest.raises(UploadFailed, match=r"robot.zip holds no model \(.*\.glb .*\); it has: notes.txt, package.xml"):
        store_upload(project, "robot.zip", packed(files))
    assert everything(project) == {}


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../arm.xml", "a/arm.xml", "/arm.xml", "a\\arm.xml", ".arm.xml", "arm.xml\0", "nul.xml", "\n"],
)
def test_a_name_that_is_no_plain_file_name_is_refused(project: Project, name: str) -> None:
    with pytest.raises(UploadFailed, match="is no name for a file"):
        store_upload(project, name, ARM)
    assert not project.folder.exists()


@pytest.mark.parametrize("name", ["arm", "arm.exe", "arm.toml", "zip", "arm.xml.gz"])
def test_a_file_that_could_not_be_imported_is_refused(project: Project, name: str) -> None:
    with pytest.raises(UploadFailed, match=r"is no file that can be uploaded; those end in .*\.glb .*\.mjz .*\.zip"):
        store_upload(project, name, ARM)
    assert not project.folder.exists()


def test_sizes_have_limits(project: Project) -> None:
    with pytest.raises(UploadFailed, match=r"arm\.xml has no bytes"):
        store_upload(project, "arm.xml", b"")
    with pytest.raises(UploadFailed, match=r"arm\.xml has 63 MiB; an upload has at most 63 MiB"):
        store_upload(project, "arm.xml", bytes(MAX_UPLOAD_BYTES + 1))
    assert not project.folder.exists()


def test_an_upload_of_the_same_name_replaces_the_earlier_one(project: Project) -> None:
    store_upload(project, "robot.zip", packed({"old.xml": ARM, "old.png": b"x"}))
    store_upload(project, "other.zip", packed({"arm.xml": ARM}))
    store_upload(project, "robot.zip", packed({"new.xml": ARM}))
    assert everything(project) == {"robot-zip/new.xml": ARM, "other-zip/arm.xml": ARM}


def test_an_upload_that_fails_leaves_the_earlier_one(project: Project) -> None:
    store_upload(project, "robot.zip", packed({"old.xml": ARM}))
    good = packed({"new.xml": ARM, "new.png": bytes(1000)})
    damaged = bytearray(packed({"new.xml": ARM, "new.png": b"abcdefgh" * 100}))
    damaged[damaged.index(b"new.png") + 10] ^= 0xFF
    for bad in (packed({"new.txt": b"x"}), good[:-30], packed({"../new.xml": ARM}), bytes(damaged)):
        with pytest.raises(UploadFailed):
            store_upload(project, "robot.zip", bad)
    assert everything(project) == {"robot-zip/old.xml": ARM}


@pytest.mark.parametrize("target", ["there.xml", "missing.xml"])
def test_a_link_in_its_place_is_not_followed(project: Project, tmp_path: Path, target: str) -> None:
    (tmp_path / "there.xml").write_bytes(b"precious")
    project.uploads_dir.mkdir(parents=True)
    (project.uploads_dir / "arm-xml").symlink_to(tmp_path / target)
    with pytest.raises(UploadFailed, match="it is a link or a file"):
        store_upload(project, "arm.xml", ARM)
    assert (tmp_path / "there.xml").read_bytes() == b"precious"
    assert not (tmp_path / "missing.xml").exists()


def test_a_folder_that_cannot_be_written_is_told(project: Project) -> None:
    project.folder.mkdir()
    project.uploads_dir.write_text("in the way")
    with pytest.raises(UploadFailed, match=r"cannot keep arm\.xml in .*Uploads: "):
        store_upload(project, "arm.xml", ARM)


def test_the_oldest_uploads_go(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upload_store, "MOST_UPLOADS", 3)
    for number, name in enumerate("abcd"):
        path = store_upload(project, f"{name}.xml", ARM).path
        os.utime(path.parent, (number, number))
    assert set(everything(project)) == {"b-xml/b.xml", "c-xml/c.xml", "d-xml/d.xml"}
    monkeypatch.setattr(upload_store, "MOST_BYTES", 3 * len(ARM))
    store_upload(project, "e.xml", ARM * 2)
    assert set(everything(project)) == {"d-xml/d.xml", "e-xml/e.xml"}
    store_upload(project, "f.xml", ARM * 10)
    assert set(everything(project)) == {"f-xml/f.xml"}, "the newest one stays, however large"


def test_a_key_that_uploads_without_end_loses_its_own_and_not_those_of_others(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upload_store, "MOST_UPLOADS", 4)
    for number, (owner, name) in enumerate([("ada", "first"), *(("eve", f"e{number}") for number in range(6))]):
        path = store_upload(project, f"{name}.xml", ARM, owner).path
        os.utime(path.parent, (number, number))
    assert set(everything(project)) == {"first-xml/first.xml", "e3-xml/e3.xml", "e4-xml/e4.xml", "e5-xml/e5.xml"}
    monkeypatch.setattr(upload_store, "MOST_BYTES", 5 * len(ARM))
    store_upload(project, "large.xml", ARM * 4, "eve")
    assert set(everything(project)) == {"first-xml/first.xml", "large-xml/large.xml"}
    assert not list(project.uploads_dir.glob(".e?-xml*")), "nothing is left of those that are gone"


def test_threads_that_upload_the_same_name_leave_one_whole_upload(project: Project) -> None:
    zips = [
        packed({"arm.xml": ARM, **{f"{n}.png": bytes([n]) * 10_000 for n in range(20)}, f"of{i}": b""})
        for i in range(4)
    ]
    threads = [threading.Thread(target=store_upload, args=(project, "robot.zip", data)) for data in zips]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = everything(project)
    assert len(found) == 22
    assert sum(name.startswith("robot-zip/of") for name in found) == 1


_KILLED = """
import os, signal, sys
from pathlib import Path
from urlab.importing import store_upload
from urlab.importing.uploads import upload_store
from urlab.scene.project import Project
upload_store.replace_folder = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
store_upload(Project(Path(sys.argv[1])), "arm.xml", b"<mujoco/>")
"""


def test_what_a_killed_process_left_is_swept(project: Project) -> None:
    subprocess.run([sys.executable, "-c", _KILLED, str(project.folder)], check=False)
    assert [one.name for one in project.uploads_dir.glob(".urlab-*.part")] != []
    sweep_stored(project.uploads_dir)
    assert [one.name for one in project.uploads_dir.iterdir()] == [".lock"]


# -- imported afterwards ------------------------------------------------------------------------------------------


@pytest.fixture
def imported(project: Project) -> Callable[[str, bytes], Any]:
    """Uploads, imports, and compiles what came of it."""

    def take(name: str, data: bytes) -> Any:
        upload = store_upload(project, name, data)
        roots = FileRoots(read=(project.folder.resolve(),))
        record, _ = import_file(upload.path, project, roots)
        return mujoco.MjModel.from_xml_path(str(record.file))

    return take


def test_a_zip_file_with_a_model_and_its_files_is_imported(imported: Callable[[str, bytes], Any]) -> None:
    files = {"robot/m.xml": MESHED.format("assets", "cube.obj"), "robot/assets/cube.obj": CUBE}
    assert imported("robot.zip", packed(files)).nmesh == 1


@pytest.mark.parametrize(
    ("folder", "file", "key"),
    [
        ("", "cube.obj", "cube.obj"),
        ("assets", "cube.obj", "assets/cube.obj"),
        ("assets", "cube.obj", "cube.obj"),
        ("assets", "deep/cube.obj", "elsewhere/cube.obj"),
        ("../assets", "cube.obj", "cube.obj"),
        ("/somewhere", "cube.obj", "Cube.OBJ"),
    ],
)
@pytest.mark.parametrize("suffix", [".zip", ".mjz"])
def test_what_mujoco_itself_packs_is_imported(
    imported: Callable[[str, bytes], Any], folder: str, file: str, key: str, suffix: str
) -> None:
    """It finds the assets of a spec by their bare names, whatever folders its XML names."""
    spec = mujoco.MjSpec.from_string(MESHED.format(folder, file), assets={key: CUBE})
    spec.compile()
    data = io.BytesIO()
    spec.to_zip(data)
    model = imported(f"packed{suffix}", data.getvalue())
    assert (model.nmesh, model.mesh(0).name) == (1, "c")


def test_a_mesh_that_has_its_name_from_its_file_keeps_it(imported: Callable[[str, bytes], Any]) -> None:
    text = '<mujoco><compiler meshdir="a"/><asset><mesh file="Cube.OBJ"/></asset>{}</mujoco>'
    body = '<worldbody><body><geom type="mesh" mesh="Cube"/></body></worldbody>'
    assert imported("m.zip", packed({"m.xml": text.format(body), "cube.obj": CUBE})).mesh(0).name == "Cube"


def test_a_model_that_finds_its_files_stays_as_it_is(project: Project) -> None:
    text = MESHED.format("assets", "cube.obj").encode()
    store_upload(project, "m.zip", packed({"m.xml": text, "assets/cube.obj": CUBE, "cube.obj": b"another"}))
    assert everything(project)["m-zip/m.xml"] == text


@pytest.mark.parametrize("part", ["part.xml", "part.inc"])
def test_a_model_in_several_files_stays_as_it_is(imported: Callable[[str, bytes], Any], part: str) -> None:
    """A part that is included finds its files by the folders of the model that includes it."""
    text = MESHED.format("", "cube.obj").replace('<compiler meshdir=""/>', "")
    main = f'<mujoco><compiler meshdir="assets"/><include file="{part}"/></mujoco>'
    files = {"lab.xml": main, part: text, "assets/cube.obj": CUBE}
    assert imported("lab.zip", packed(files)).nmesh == 1


def test_a_model_of_an_upload_reads_nothing_outside_the_allowed_folders(
    imported: Callable[[str, bytes], Any], tmp_path: Path
) -> None:
    (tmp_path / "secret.obj").write_bytes(CUBE)
    for folder, file in ((str(tmp_path), "secret.obj"), ("", "../../../secret.obj")):
        with pytest.raises(ImportFailed, match="outside the folders that may be read"):
            imported("m.zip", packed({"m.xml": MESHED.format(folder, file)}))


def test_a_file_that_a_model_needs_and_that_was_not_sent_is_named(imported: Callable[[str, bytes], Any]) -> None:
    with pytest.raises(ImportFailed, match=r"cube\.obj"):
        imported("m.zip", packed({"m.xml": MESHED.format("assets", "cube.obj"), "other.obj": CUBE}))

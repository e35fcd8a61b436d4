"""Zip files of clients: what is unpacked, and what is refused before anything is written."""

import contextlib
import io
import random
import stat
import struct
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from urlab.errors import UploadFailed
from urlab.importing.uploads.archive import Archive, ArchiveLimits

ROBOT = b"<mujoco/>"


def packed(files: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return data.getvalue()


def entry(name: str, *, mode: int = 0, content: bytes = b"x", method: int = zipfile.ZIP_STORED) -> bytes:
    """A zip file with one file that no tool would write."""
    data, info = io.BytesIO(), zipfile.ZipInfo("placeholder")
    info.filename, info.external_attr, info.compress_type = name, mode << 16, method
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr(info, content)
    return data.getvalue()


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_all_files_are_unpacked_into_their_folders(tmp_path: Path, method: int) -> None:
    files = {"robot.xml": ROBOT, "assets/arm.stl": bytes(100_000), "assets/deep/é.png": b"", "empty/": b""}
    archive = Archive("robot.zip", packed(files, method))
    assert archive.paths == ["assets/arm.stl", "assets/deep/é.png", "robot.xml"]
    archive.unpack(tmp_path)
    assert files_in(tmp_path) == {name: content for name, content in files.items() if not name.endswith("/")}


def test_what_systems_hide_is_left_out() -> None:
    files = {"robot.xml": ROBOT, ".git/config": b"x", "assets/.DS_Store": b"x", "__MACOSX/._robot.xml": b"x"}
    assert Archive("robot.zip", packed(files)).paths == ["robot.xml"]


def test_a_name_may_begin_with_the_current_folder(tmp_path: Path) -> None:
    Archive("robot.zip", packed({"./a/./robot.xml": ROBOT})).unpack(tmp_path)
    assert files_in(tmp_path) == {"a/robot.xml": ROBOT}


BAD_NAMES = {
    "../robot.xml": "leads out of the upload",
    "a/../../robot.xml": "leads out of the upload",
    "a/..": "leads out of the upload",
    "/etc/robot.xml": "leads out of the upload",
    "//robot.xml": "leads out of the upload",
    "/": "leads out of the upload",
    "./": "leads out of the upload",
    "a//robot.xml": "it is empty",
    "..\\robot.xml": None,
    "a\\..\\robot.xml": "not every file system",
    "C:/robot.xml": "not every file system",
    "nul.xml": "Windows keeps it",
    "robot.xml ": "a space",
    "a\nb.xml": "not every file system",
    f"{'x' * 200}.xml": "more than 120 bytes",
    "d/" * 40 + "robot.xml": "deeper than 32 folders",
}


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_name_that_leads_elsewhere_is_refused_with_the_whole_file(tmp_path: Path, name: str) -> None:
    data, reason = packed({"good.xml": ROBOT, name: ROBOT}), BAD_NAMES[name]
    if reason is None:  # hidden, so it is left out
        Archive("robot.zip", data).unpack(tmp_path)
        assert files_in(tmp_path) == {"good.xml": ROBOT}
        return
    with pytest.raises(UploadFailed, match=reason) as refused:
        Archive("robot.zip", data)
    assert refused.value.message.startswith("robot.zip: ")
    assert refused.value.message.endswith("nothing of it was kept")
    assert files_in(tmp_path) == {}


def test_a_name_with_a_nul_is_refused() -> None:
    data = entry("robot.xm1").replace(b"robot.xm1", b"robot\0xm1")
    with pytest.raises(UploadFailed, match=r"robot\.zip"):
        Archive("robot.zip", data)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [(stat.S_IFLNK, "is a link"), (stat.S_IFIFO, "is no regular file"), (stat.S_IFCHR, "is no regular file")],
)
def test_links_and_devices_are_refused(kind: int, reason: str) -> None:
    with pytest.raises(UploadFailed, match=f"'robot.xml' {reason}"):
        Archive("robot.zip", entry("robot.xml", mode=kind | 0o777, content=b"/etc/passwd"))


@pytest.mark.parametrize("mode", [0, 0o600, stat.S_IFREG | 0o755])
def test_usual_files_are_taken(mode: int) -> None:
    assert Archive("robot.zip", entry("robot.xml", mode=mode)).paths == ["robot.xml"]


def test_what_is_there_twice_is_refused() -> None:
    data = packed({"robot.xml": ROBOT, "robot.xm1": b"other"}).replace(b"robot.xm1", b"robot.xml")
    with pytest.raises(UploadFailed, match="is there twice"):
        Archive("robot.zip", data)


def test_a_file_that_is_a_folder_as_well_is_refused() -> None:
    with pytest.raises(UploadFailed, match="'a/b' is in a folder that is a file as well"):
        Archive("robot.zip", packed({"a": b"x", "a/b": b"y"}))


def test_methods_that_are_not_known_are_refused() -> None:
    with pytest.raises(UploadFailed, match="packed in a way that is not known here"):
        Archive("robot.zip", packed({"robot.xml": ROBOT}, zipfile.ZIP_LZMA))


def test_an_encrypted_file_is_refused() -> None:
    data = bytearray(packed({"robot.xml": ROBOT}))
    data[data.index(b"PK\1\2") + 8] |= 1
    with pytest.raises(UploadFailed, match="is encrypted"):
        Archive("robot.zip", bytes(data))


# -- how much -----------------------------------------------------------------------------------------------------

LIMITS = ArchiveLimits(files=3, file_bytes=3000, total_bytes=5000, ratio=10, small_bytes=1000)


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({str(number): b"" for number in range(4)}, "holds 4 files; an upload has at most 3"),
        ({"a": random.Random(1).randbytes(3001)}, "'a' has 0.002862 MiB; a file has at most 0.002861 MiB"),
        (
            {name: random.Random(1).randbytes(2000) for name in "abc"},
            "holds 0.005722 MiB; unpacked, an upload has at most 0.004768 MiB",
        ),
        ({"a": bytes(2500)}, "would become 0.002384 MiB, more than 10 times its own size"),
    ],
)
def test_too_much_is_refused_with_its_limit(files: dict[str, bytes], reason: str) -> None:
    with pytest.raises(UploadFailed, match=reason):
        Archive("robot.zip", packed(files), LIMITS)


def test_what_is_within_the_limits_is_taken() -> None:
    assert Archive("robot.zip", packed({"a": bytes(900), "b": b"", "c": b""}), LIMITS).paths == ["a", "b", "c"]


def test_a_bomb_is_refused_before_it_goes_off(tmp_path: Path) -> None:
    data = packed({"a": bytes(200 << 20)})
    assert len(data) < 1 << 20
    with pytest.raises(UploadFailed, match="would become 200 MiB, more than 200 times its own size"):
        Archive("robot.zip", data)
    assert files_in(tmp_path) == {}


def test_a_file_that_lies_about_its_size_is_damaged(tmp_path: Path) -> None:
    """The size in the list of files is what counts, and no more than that is ever unpacked."""
    data = bytearray(packed({"a": bytes(100_000)}))
    at = data.index(b"PK\1\2")
    data[at + 24 : at + 28] = struct.pack("<L", 10)
    archive = Archive("robot.zip", bytes(data))
    with pytest.raises(UploadFailed, match="'a' is damaged"):
        archive.unpack(tmp_path)
    assert all(len(content) <= 10 for content in files_in(tmp_path).values())


def test_a_list_of_files_that_would_fill_the_memory_is_not_read() -> None:
    data = packed({str(number): b"" for number in range(50_000)}, zipfile.ZIP_STORED)
    with pytest.raises(UploadFailed, match="more than 4096 files"):
        Archive("robot.zip", data)


def test_a_second_end_for_larger_files_is_not_believed() -> None:
    data = packed({str(number): b"" for number in range(70_000)}, zipfile.ZIP_STORED)
    assert b"PK\6\7" in data
    with pytest.raises(UploadFailed, match="of several GiB"):
        Archive("robot.zip", data, ArchiveLimits(directory_bytes=1 << 40))


# -- damage -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"", b"x", b"PK\5\6", b"<mujoco/>" * 100, bytes(22), b"PK\5\6" + b"x" * 18])
def test_what_is_no_zip_file_is_refused(data: bytes) -> None:
    with pytest.raises(UploadFailed, match=r"robot\.zip is (no|a) zip file"):
        Archive("robot.zip", data)


Spoil = Callable[[random.Random, bytearray], None]


def cut(chance: random.Random, data: bytearray) -> None:
    del data[chance.randrange(len(data)) :]


def change(chance: random.Random, data: bytearray) -> None:
    for _ in range(chance.randrange(1, 5)):
        data[chance.randrange(len(data))] = chance.randrange(256)


def grow(chance: random.Random, data: bytearray) -> None:
    place = chance.randrange(len(data))
    data[place:place] = data[place : place + chance.randrange(1, 60)]


@pytest.mark.parametrize("spoil", [cut, change, grow])
def test_a_damaged_file_is_refused_or_unpacked_inside(tmp_path: Path, spoil: Spoil) -> None:
    good = packed({"robot.xml": ROBOT * 20, "assets/arm.stl": bytes(1000), "b/c/d.png": b"y"})
    for seed in range(400):
        chance, data, folder = random.Random(seed), bytearray(good), tmp_path / "top" / str(seed)
        spoil(chance, data)
        folder.mkdir(parents=True)
        with contextlib.suppress(UploadFailed, OSError):  # the latter of a name that this file system does not take
            Archive("robot.zip", bytes(data)).unpack(folder)
    assert [path.name for path in tmp_path.iterdir()] == ["top"]
    assert all(one.name.isdigit() for one in (tmp_path / "top").iterdir())

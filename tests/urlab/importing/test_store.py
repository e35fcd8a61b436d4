import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from urlab.errors import ImportFailed
from urlab.importing.bundle import Bundle
from urlab.importing.store import replace_folder, store, swap_atomically, swap_in_steps
from urlab.scene.blueprint_record import BlueprintKind, BlueprintRecord
from urlab.scene.project import Project


def bundle(radius: int = 1, stem: str = "ball", **files: bytes) -> Bundle:
    text = f'<mujoco><worldbody><geom size="{radius}"/></worldbody></mujoco>'
    return Bundle(stem, "ball.xml", {"ball.xml": text.encode(), **files}, BlueprintKind.MODEL)


def put(made: Bundle, source: str, project: Project, *, force: bool = False) -> tuple[BlueprintRecord, bool]:
    """Store a model that is known to be sound."""
    return store(made, source, project, lambda _: None, force=force)


def names(project: Project) -> list[str]:
    """Every folder and file, hidden ones too."""
    return sorted(one.name for one in project.imports_dir.iterdir() if one.name != ".lock")


def test_an_import_is_kept_once_and_found_again(project: Project) -> None:
    record, is_new = put(bundle(extra=b"x"), "/there/ball.xml", project)
    assert is_new
    assert (record.word, record.source, record.content) == (
        "Imports/ball",
        "/there/ball.xml",
        bundle(extra=b"x").content,
    )
    assert project.record("/Game/MuJoCoImports/ball.ball_C") == record
    assert record.file.read_bytes() == bundle().files["ball.xml"]
    assert (record.file.parent / "extra").read_bytes() == b"x"
    assert put(bundle(extra=b"x"), "/there/ball.xml", project) == (record, False)
    assert names(project) == ["ball"]


def test_a_model_that_will_not_do_leaves_nothing_and_is_called_by_its_future_name(project: Project) -> None:
    seen = []

    def check(main: Path) -> None:
        seen.append((main.parent.name[0], main.read_bytes(), sorted(one.name for one in main.parent.iterdir())))
        raise ImportFailed(f"{main} will not do")

    with pytest.raises(ImportFailed, match=f"{project.imports_dir}/ball/ball.xml will not do"):
        store(bundle(extra=b"x"), "/there", project, check)
    assert seen == [(".", bundle().files["ball.xml"], ["ball.xml", "extra"])]
    assert names(project) == []


def test_changed_content_replaces_the_import(project: Project) -> None:
    put(bundle(1, only_old=b"x"), "/there/ball.xml", project)
    record, is_new = put(bundle(2), "/there/ball.xml", project)
    assert is_new
    assert record.file.read_bytes() == bundle(2).files["ball.xml"]
    assert names(project) == ["ball"]
    assert not (record.file.parent / "only_old").exists()


def test_force_and_lost_files_import_again(project: Project) -> None:
    record, _ = put(bundle(extra=b"x"), "/there/ball.xml", project)
    assert put(bundle(extra=b"x"), "/there/ball.xml", project, force=True)[1]
    (record.file.parent / "extra").unlink()
    assert put(bundle(extra=b"x"), "/there/ball.xml", project)[1]
    assert (record.file.parent / "extra").exists()


def test_another_source_of_the_same_name_gets_a_number_whatever_its_capitals(project: Project) -> None:
    wanted = ["ball", "ball", "Ball", "BALL_2"]
    kept = [put(bundle(stem=stem), f"/{number}", project)[0].short_name for number, stem in enumerate(wanted)]
    assert kept == ["ball", "ball_2", "Ball_3", "BALL_2_2"]
    assert put(bundle(9), "/1", project)[0].short_name == "ball_2"


def test_a_folder_that_is_no_import_is_left_alone(project: Project) -> None:
    (project.imports_dir / "ball").mkdir(parents=True)
    assert put(bundle(), "/there", project)[0].short_name == "ball_2"
    assert not any((project.imports_dir / "ball").iterdir())


@pytest.mark.parametrize(("stem", "name"), [("a:b", "a_b"), (".x", "x"), ("nul", "file_nul"), ("n" * 300, "n" * 60)])
def test_a_stem_that_is_no_plain_name_becomes_one(project: Project, stem: str, name: str) -> None:
    assert put(bundle(stem=stem), "/there", project)[0].short_name == name
    assert put(bundle(stem=stem), "/elsewhere", project)[0].short_name == f"{name}_2"


def test_what_a_crash_left_behind_is_tidied_up(project: Project) -> None:
    put(bundle(1), "/there", project)
    for leftover in (".0123.part", ".4567.gone", ".ball.old"):
        (project.imports_dir / leftover / "deep").mkdir(parents=True)
    assert project.imported("ball") is not None
    put(bundle(2), "/there", project)
    assert names(project) == ["ball"]


def test_an_import_that_was_being_replaced_when_all_stopped_comes_back(project: Project) -> None:
    record, _ = put(bundle(1), "/there", project)
    record.file.parent.rename(project.imports_dir / ".ball.old")
    assert put(bundle(1), "/there", project) == (record, False)


def test_readers_never_find_it_missing_while_it_is_replaced(project: Project) -> None:
    put(bundle(1), "/there", project)
    is_done, missed = threading.Event(), []

    def watch() -> None:
        while not is_done.is_set():
            if not (project.imports_dir / "ball" / "ball.xml").exists():
                missed.append(1)

    with ThreadPoolExecutor() as pool:
        pool.submit(watch)
        for radius in range(2, 30):
            put(bundle(radius), "/there", project)
        is_done.set()
    assert missed == []


def test_a_folder_that_cannot_be_written_is_an_error(project: Project) -> None:
    project.folder.write_text("in the way")
    with pytest.raises(ImportFailed, match=f"cannot keep /there in {project.imports_dir}: Not a directory"):
        put(bundle(), "/there", project)


DISK_FULL = """
import resource, sys
from pathlib import Path
from urlab.importing import add_import
from urlab.importing.bundle import Bundle
from urlab.errors import ImportFailed
from urlab.scene.blueprint_record import BlueprintKind
from urlab.scene.project import Project
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))
files = {"ball.xml": b"<mujoco/>", "assets/large": bytes(1 << 17)}
try:
    add_import(Bundle("ball", "ball.xml", files, BlueprintKind.MODEL), "/there", Project(Path(sys.argv[1])))
except ImportFailed as failed:
    print(failed.message)
"""


def test_a_disk_that_is_full_costs_nothing_that_was_there(project: Project) -> None:
    record, _ = put(bundle(), "/there", project)
    done = subprocess.run([sys.executable, "-c", DISK_FULL, str(project.folder)], capture_output=True, text=True)
    assert f"cannot keep /there in {project.imports_dir}: File too large" in done.stdout
    assert names(project) == ["ball"]
    assert project.imported("ball") == record
    assert record.file.read_bytes() == bundle().files["ball.xml"]


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    made = tmp_path / "new", tmp_path / "old"
    for folder in made:
        folder.mkdir()
        (folder / folder.name).touch()
    return made


def is_swapped(new: Path, old: Path) -> bool:
    return (old / "new").exists() and (new / "old").exists() and len(list(old.parent.iterdir())) == 2


def test_a_folder_takes_a_free_place(folders: tuple[Path, Path], tmp_path: Path) -> None:
    replace_folder(folders[0], tmp_path / "free")
    assert (tmp_path / "free" / "new").exists()
    assert not folders[0].exists()


@pytest.mark.parametrize("exchange", [replace_folder, swap_in_steps])
def test_two_folders_swap_names(folders: tuple[Path, Path], exchange) -> None:
    exchange(*folders)
    assert is_swapped(*folders)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can")
def test_linux_swaps_at_once(folders: tuple[Path, Path]) -> None:
    if not swap_atomically(*folders):
        pytest.skip("this file system cannot")
    assert is_swapped(*folders)


def test_what_cannot_be_replaced_stays(folders: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(OSError, match="missing"):
        swap_in_steps(tmp_path / "missing", folders[1])
    assert (folders[1] / "old").exists()

"""The project folder: finding levels and models by name."""

import contextlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from urlab.errors import ImportFailed, LoadLevelFailed, PathNotWritable
from urlab.geometry import Pose
from urlab.scene.blueprint_record import BlueprintKind, import_text
from urlab.scene.level import Actor, Level
from urlab.scene.names import level_name
from urlab.scene.project import Project

LEVEL = 'version = 1\nname = "x"\n[options]\nmark = "{name}"\n'


@pytest.fixture
def project(tmp_path: Path) -> Project:
    shipped = {name: tmp_path / "shipped" / f"{name}.toml" for name in ("demo", "hall")}
    (tmp_path / "shipped").mkdir()
    for name, path in shipped.items():
        path.write_text(LEVEL.format(name=f"shipped {name}"))
    model = tmp_path / "shipped" / "panda.xml"
    model.write_text("<mujoco/>")
    return Project(tmp_path / "project", {"panda": model}, shipped)


def save(project: Project, name: str) -> None:
    project.levels_dir.mkdir(parents=True, exist_ok=True)
    (project.levels_dir / f"{name}.toml").write_text(LEVEL.format(name=f"own {name}"))


@pytest.mark.parametrize("asked", ["lab", "/Game/Levels/lab", "/Game/Levels/lab.lab", "lab.lab"])
def test_a_level_can_be_named_in_three_ways(asked: str, project: Project) -> None:
    save(project, "lab")
    assert level_name(asked) == "lab"
    assert project.open_level(asked).options["mark"] == "own lab"


@pytest.mark.parametrize("name", ["v1.2", "lab.2", "my lab", "lab-2"])
def test_dots_and_spaces_are_part_of_a_name(name: str, project: Project) -> None:
    save(project, name)
    assert project.open_level(f"/Game/Levels/{name}").options["mark"] == f"own {name}"


@pytest.mark.parametrize(
    "asked",
    [
        "", "/Game/Levels/", "../shipped/demo", "/Game/Levels/../../shipped/demo", "a/b", "a\\b", "/etc/passwd",
        ".hidden", "..", "/Game/Maps/demo", "demo\0", "nul", "COM1.lab", "lab ", "a:b", "a\nb",
    ],
)  # fmt: skip
def test_what_is_no_plain_name_is_refused(asked: str, project: Project) -> None:
    with pytest.raises(LoadLevelFailed, match=r"is not the name of a level: .*\. Use X or /Game/Levels/X"):
        project.open_level(asked)


def test_a_shipped_level_can_be_opened(project: Project) -> None:
    assert project.open_level("demo").options["mark"] == "shipped demo"


def test_the_users_own_level_wins(project: Project) -> None:
    save(project, "demo")
    assert project.open_level("demo").options["mark"] == "own demo"
    assert project.open_level("hall").options["mark"] == "shipped hall"


def test_every_level_is_listed_once_the_users_own_first(project: Project) -> None:
    for name in ("zoo", "demo"):
        save(project, name)
    assert project.level_names() == ["demo", "zoo", "hall"]


def test_a_project_that_was_never_written_to_lists_what_is_shipped(project: Project) -> None:
    assert not project.folder.exists()
    assert project.level_names() == ["demo", "hall"]


def test_a_level_that_is_not_there_says_which_are(project: Project) -> None:
    save(project, "lab")
    with pytest.raises(LoadLevelFailed, match="there is no level 'bal'; there are: demo, hall, lab"):
        project.open_level("bal")


def test_a_name_that_no_file_can_have_is_just_not_there(project: Project) -> None:
    save(project, "lab")
    with pytest.raises(LoadLevelFailed, match="it has more than 120 bytes"):
        project.open_level("x" * 300)
    with pytest.raises(ImportFailed, match="there is no model"):
        project.record("x" * 300)


def test_a_broken_level_of_the_users_own_is_reported_not_passed_over(project: Project) -> None:
    save(project, "demo")
    (project.levels_dir / "demo.toml").write_text("version = 1")
    with pytest.raises(LoadLevelFailed, match=r"demo\.toml: name: is missing"):
        project.open_level("demo")


def test_a_model_is_a_shipped_name_or_a_file(project: Project, tmp_path: Path) -> None:
    own = tmp_path / "own.xml"
    own.write_text("<mujoco/>")
    assert project.record("panda").file == tmp_path / "shipped" / "panda.xml"
    assert project.record(str(own)).file == own


def test_a_model_that_is_not_there_says_which_are(project: Project, tmp_path: Path) -> None:
    with pytest.raises(ImportFailed, match="there is no model 'pandda'; there are: panda"):
        project.record("pandda")
    with pytest.raises(ImportFailed, match=r"model file .*gone\.xml does not exist"):
        project.record(str(tmp_path / "gone.xml"))
    with pytest.raises(ImportFailed, match="there is no model"):
        project.record(str(tmp_path))


def test_folders_mirror_the_protocols_paths(project: Project) -> None:
    assert project.levels_dir == project.folder / "Levels"
    assert project.replays_dir == project.folder / "Saved" / "URLab" / "Replays"


def test_a_level_is_saved_and_read_back(project: Project) -> None:
    level = Level("lab", (Actor("arm", "panda", "left", Pose((1.0, 0.0, 0.0))),), {"timestep": 0.001})
    path = project.save_level(level)
    assert path == project.levels_dir / "lab.toml"
    assert project.open_level("lab") == level
    assert [one.name for one in project.levels_dir.iterdir()] == ["lab.toml"]


def test_a_level_that_cannot_be_saved_leaves_the_old_one(project: Project) -> None:
    save(project, "lab")
    before = (project.levels_dir / "lab.toml").read_bytes()
    code = (
        "import resource, signal, sys\n"
        "from pathlib import Path\n"
        "from urlab.errors import PathNotWritable\n"
        "from urlab.scene.level import Level\n"
        "from urlab.scene.project import Project\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))\n"
        "try:\n"
        "    Project(Path(sys.argv[1])).save_level(Level('lab'))\n"
        "except PathNotWritable as refused:\n"
        "    print(refused.message)\n"
    )
    run = subprocess.run([sys.executable, "-c", code, str(project.folder)], capture_output=True, text=True, check=True)
    assert "cannot write" in run.stdout
    assert "File too large" in run.stdout
    assert (project.levels_dir / "lab.toml").read_bytes() == before
    assert [one.name for one in project.levels_dir.iterdir()] == ["lab.toml"]


def test_a_level_that_is_a_link_out_of_the_project_is_refused_and_its_target_untouched(
    project: Project, tmp_path: Path
) -> None:
    target = tmp_path / "secret.toml"
    target.write_text(LEVEL.format(name="secret"))
    project.levels_dir.mkdir(parents=True)
    (project.levels_dir / "lab.toml").symlink_to(target)
    for attempt in (
        lambda: project.open_level("lab"),
        lambda: project.save_level(Level("lab")),
        lambda: project.delete_level("lab"),
    ):
        with pytest.raises(LoadLevelFailed, match="a link that leads out of"):
            attempt()
    assert target.read_text() == LEVEL.format(name="secret")


def test_levels_are_deleted(project: Project) -> None:
    save(project, "lab")
    assert project.delete_level("lab")
    assert not project.delete_level("lab")
    assert "lab" not in project.level_names()


@pytest.mark.parametrize(
    "asked", ["Imports/crate", "crate", "/Game/MuJoCoImports/crate", "/Game/MuJoCoImports/crate.crate_C"]
)
def test_an_import_can_be_named_in_several_ways(asked: str, project: Project) -> None:
    add_import(project, "crate")
    record = project.record(asked)
    assert record.word == "Imports/crate"
    assert record.class_path == "/Game/MuJoCoImports/crate.crate_C"
    assert record.file == project.imports_dir / "crate" / "crate.xml"


def test_names_with_dots_are_found_by_every_path(project: Project) -> None:
    add_import(project, "arm.v2")
    assert project.record("/Game/MuJoCoImports/arm.v2.arm.v2_C") == project.record("Imports/arm.v2")
    save(project, "lab.2")
    assert project.open_level("/Game/Levels/lab.2.lab.2") == project.open_level("lab.2")


def test_a_shipped_model_and_an_import_of_one_name_are_both_there(project: Project) -> None:
    add_import(project, "panda")
    assert project.record("panda").file == project.shipped_models["panda"]
    assert project.record("Imports/panda").file == project.imports_dir / "panda" / "panda.xml"
    assert project.record("/Game/URLab/panda.panda_C") == project.record("panda")
    assert [one.word for one in project.records()] == ["Imports/panda", "panda"]


def test_an_import_that_is_not_whole_is_not_there(project: Project) -> None:
    add_import(project, "crate")
    (project.imports_dir / "crate" / "crate.xml").unlink()
    assert project.imported("crate") is None
    assert project.imported("../crate") is None
    (project.imports_dir / "half").mkdir()
    assert project.imported("half") is None


def test_imports_are_deleted(project: Project) -> None:
    add_import(project, "crate")
    assert project.delete_import("crate")
    assert not project.delete_import("crate")
    assert not list(project.imports_dir.iterdir())


def add_import(project: Project, name: str) -> None:
    folder = project.imports_dir / name
    folder.mkdir(parents=True)
    (folder / f"{name}.xml").write_text("<mujoco/>")
    text = import_text(source="there", content="c0ffee", kind=BlueprintKind.MODEL, file=f"{name}.xml")
    (folder / "import.toml").write_text(text)


def test_a_level_that_is_swapped_for_a_link_all_the_time_is_never_read_outside(
    project: Project, tmp_path: Path, swapping: Callable[..., None]
) -> None:
    project.levels_dir.mkdir(parents=True, exist_ok=True)
    for path, actor in ((project.levels_dir / "own.toml", "inside"), (tmp_path / "secret.toml", "outside")):
        path.write_text(f'version = 1\nname = "x"\n[[lights]]\nname = "{actor}"\n')
    swapping(project.levels_dir / "spot.toml", project.levels_dir / "own.toml", tmp_path / "secret.toml")
    found = set()
    for _ in range(2000):
        with contextlib.suppress(LoadLevelFailed):
            found.add(project.open_level("spot").lights[0].name)
    assert found == {"inside"}


@pytest.mark.parametrize("text", ["[tool.ruff]\n", 'name = "pkg"\n[x]\nversion = 1\n', "", "version = 1\n"])
def test_a_file_that_is_no_level_is_never_replaced(project: Project, text: str) -> None:
    project.levels_dir.mkdir(parents=True, exist_ok=True)
    (project.levels_dir / "lab.toml").write_text(text)
    with pytest.raises(PathNotWritable, match="it exists and is not a level, so it is kept"):
        project.save_level(Level("lab"))
    assert (project.levels_dir / "lab.toml").read_text() == text


def test_a_level_that_was_written_by_hand_is_replaced(project: Project) -> None:
    project.levels_dir.mkdir(parents=True, exist_ok=True)
    (project.levels_dir / "lab.toml").write_text('# mine\n\nname = "lab"\n  version=1\n[options]\ntimestep = 0.1\n')
    project.save_level(Level("lab"))
    assert project.open_level("lab").options == {}


def test_a_level_is_not_saved_through_a_link(project: Project, tmp_path: Path) -> None:
    project.levels_dir.mkdir(parents=True, exist_ok=True)
    (project.levels_dir / "own.toml").write_text('version = 1\nname = "own"\n')
    (project.levels_dir / "lab.toml").symlink_to(project.levels_dir / "own.toml")
    with pytest.raises(PathNotWritable, match="link"):
        project.save_level(Level("lab"))
    assert project.open_level("own").name == "own"

"""The project folder: finding levels and models by name."""

from pathlib import Path

import pytest

from urlab.errors import ImportFailed, LoadLevelFailed
from urlab.scene.project import Project, level_name

LEVEL = 'version = 1\nname = "{name}"\n'


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
    assert project.open_level(asked).name == "own lab"


@pytest.mark.parametrize("name", ["v1.2", "lab.2", "my lab", "lab-2"])
def test_dots_and_spaces_are_part_of_a_name(name: str, project: Project) -> None:
    save(project, name)
    assert project.open_level(f"/Game/Levels/{name}").name == f"own {name}"


@pytest.mark.parametrize(
    "asked",
    [
        "", "/Game/Levels/", "../shipped/demo", "/Game/Levels/../../shipped/demo", "a/b", "a\\b", "/etc/passwd",
        ".hidden", "..", "/Game/Maps/demo", "demo\0",
    ],
)  # fmt: skip
def test_what_is_no_plain_name_is_refused(asked: str, project: Project) -> None:
    with pytest.raises(LoadLevelFailed, match=r"is not the name of a level: use X or /Game/Levels/X"):
        project.open_level(asked)


def test_a_shipped_level_can_be_opened(project: Project) -> None:
    assert project.open_level("demo").name == "shipped demo"


def test_the_users_own_level_wins(project: Project) -> None:
    save(project, "demo")
    assert project.open_level("demo").name == "own demo"
    assert project.open_level("hall").name == "shipped hall"


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
    with pytest.raises(LoadLevelFailed, match="there is no level"):
        project.open_level("x" * 300)
    with pytest.raises(ImportFailed, match="there is no model"):
        project.model_file("x" * 300)


def test_a_broken_level_of_the_users_own_is_reported_not_passed_over(project: Project) -> None:
    save(project, "demo")
    (project.levels_dir / "demo.toml").write_text("version = 1")
    with pytest.raises(LoadLevelFailed, match=r"demo\.toml: .*missing required field `name`"):
        project.open_level("demo")


def test_a_model_is_a_shipped_name_or_a_file(project: Project, tmp_path: Path) -> None:
    own = tmp_path / "own.xml"
    own.write_text("<mujoco/>")
    assert project.model_file("panda") == tmp_path / "shipped" / "panda.xml"
    assert project.model_file(str(own)) == own


def test_a_model_that_is_not_there_says_which_are(project: Project, tmp_path: Path) -> None:
    with pytest.raises(ImportFailed, match="there is no model 'pandda'; there are: panda"):
        project.model_file("pandda")
    with pytest.raises(ImportFailed, match=r"model file .*gone\.xml does not exist"):
        project.model_file(str(tmp_path / "gone.xml"))
    with pytest.raises(ImportFailed, match="there is no model"):
        project.model_file(str(tmp_path))


def test_folders_mirror_the_protocols_paths(project: Project) -> None:
    assert project.levels_dir == project.folder / "Levels"
    assert project.replays_dir == project.folder / "Saved" / "URLab" / "Replays"

"""``urlab levels``, as a person uses it."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def levels(cli_here: Any, tmp_path: Path) -> Any:
    def call(*arguments: str) -> Any:
        return cli_here("levels", *arguments, "--project", str(tmp_path))

    return call


def test_shipped_levels_are_listed_and_copied_and_deleted(levels: Any, tmp_path: Path) -> None:
    rows = {row["name"]: row for row in json.loads(levels("--json").stdout)["levels"]}
    assert rows["demo"]["shipped"] is True
    assert rows["demo"]["actors"] > 3
    done = levels("copy", "demo", "mine")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "Levels" / "mine.toml").is_file()
    rows = {row["name"]: row for row in json.loads(levels("--json").stdout)["levels"]}
    assert rows["mine"] == {
        **rows["demo"],
        "name": "mine",
        "shipped": False,
        "file": str(tmp_path / "Levels/mine.toml"),
    }
    assert levels("delete", "mine", "--yes").returncode == 0
    assert not (tmp_path / "Levels" / "mine.toml").exists()


def test_a_level_is_shown_as_the_file_that_it_is(levels: Any, tmp_path: Path) -> None:
    levels("copy", "demo", "mine")
    shown = levels("show", "mine").stdout
    assert shown.splitlines()[0] == f"# {tmp_path / 'Levels' / 'mine.toml'}"
    assert shown.split("\n", 1)[1] == (tmp_path / "Levels" / "mine.toml").read_text()
    report = json.loads(levels("show", "/Game/Levels/mine", "--json").stdout)
    assert {"panda", "table"} <= {actor["blueprint"] for actor in report["actors"]}


def test_people_get_a_table_and_a_broken_level_is_told(levels: Any, tmp_path: Path) -> None:
    (tmp_path / "Levels").mkdir()
    (tmp_path / "Levels" / "broken.toml").write_text("version = 1")
    said = levels().stdout
    assert "demo" in said
    assert "shipped" in said
    assert "is missing" in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("show", "nothing"), "there is no level 'nothing'"),
        (("copy", "nothing", "mine"), "there is no level 'nothing'"),
        (("copy", "demo", "../mine"), "is not the name of a level"),
        (("copy", "demo", "taken"), "level 'taken' exists; use --force"),
        (("delete", "demo", "--yes"), "there is no level 'demo' in"),
        (("delete", "nothing", "--yes"), "yours are: taken"),
    ],
)
def test_what_cannot_be_done_is_told_in_a_line(levels: Any, arguments: tuple[str, ...], words: str) -> None:
    levels("copy", "demo", "taken")
    done = levels(*arguments)
    assert done.returncode == 2
    assert words in " ".join(done.stderr.split())


@pytest.mark.usefixtures("cold_start")
def test_nothing_is_deleted_without_a_yes(levels: Any, cli: Any, tmp_path: Path) -> None:
    levels("copy", "demo", "mine")
    done = cli("levels", "delete", "mine", "--project", str(tmp_path), stdin=subprocess.DEVNULL)
    assert done.returncode == 1
    assert (tmp_path / "Levels" / "mine.toml").is_file()


def test_the_project_may_be_named_before_the_word(
    cli_here: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = str(tmp_path / "p")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    for home in (["--project", project], []):
        assert cli_here("levels", *home, "copy", "demo", "precious").returncode == 0
    assert cli_here("levels", "--project", project, "delete", "precious", "--yes").returncode == 0
    assert not (tmp_path / "p" / "Levels" / "precious.toml").exists()
    assert (tmp_path / "home" / "urlab" / "Levels" / "precious.toml").is_file()


def test_odd_things_in_the_folder_spoil_nothing(levels: Any, tmp_path: Path) -> None:
    (tmp_path / "Levels" / "folder.toml").mkdir(parents=True)
    (tmp_path / "Levels" / "link.toml").symlink_to("/etc/hostname")
    done = levels("--json")
    assert done.returncode == 0, done.stderr
    rows = {row["name"]: row for row in json.loads(done.stdout)["levels"]}
    assert "leads out of" in rows["link"]["error"]
    assert "folder" not in rows

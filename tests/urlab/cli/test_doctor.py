"""`urlab doctor`."""

import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from urlab.cli import doctor as doctor_module
from urlab.cli.doctor import (
    Status,
    check_extras,
    check_graphics,
    check_mujoco,
    check_ports,
    check_project,
    try_in_child,
)
from urlab.config import Ports


def distribution(folder: Path, name: str, version: str, record: str = "") -> None:
    """Lay out the metadata of an installed package."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "RECORD").write_text(record)


@pytest.mark.usefixtures("cold_start")
def test_a_good_machine_is_exit_code_0_and_pure_json(cli: Any, tmp_path: Path) -> None:
    done = cli("doctor", "--json", "--project", str(tmp_path / "project"))
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    found = {one["name"]: one["status"] for one in report["checks"]}
    assert report["ok"] is True
    needed = ("python", "mujoco", "numpy", "pyzmq", "msgspec", "project folder")
    assert {found[name] for name in needed} == {"ok"}
    assert {"graphics egl", "graphics osmesa", "shared memory", "cores", "timer", "extra eval"} <= set(found)


def test_it_works_where_mujoco_does_not(cli: Any, broken_mujoco: dict[str, str]) -> None:
    done = cli("doctor", env={**os.environ, **broken_mujoco})
    assert done.returncode == 1
    assert "does not import: ImportError: half of it is missing" in done.stdout
    assert "pip uninstall -y mujoco mujoco-core" in done.stdout
    assert "The server cannot run here." in done.stdout


@pytest.mark.parametrize(
    ("installed", "detail"),
    [
        ({"mujoco": "3.8.0"}, "3.8.0 is installed, but 3.8.1 or newer, and below 5, is needed"),
        ({"mujoco": "5.0.0"}, "5.0.0 is installed, but 3.8.1 or newer, and below 5, is needed"),
        ({"mujoco": "4.0.0", "mujoco-core": "4.1.0"}, "mujoco is 4.0.0, but mujoco-core is 4.1.0"),
    ],
)
def test_a_mixture_of_mujoco_versions_is_a_problem(
    installed: dict[str, str], detail: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, version in installed.items():
        distribution(tmp_path, name, version)
    monkeypatch.syspath_prepend(str(tmp_path))
    (finding,) = check_mujoco()
    assert (finding.status, finding.detail) == (Status.PROBLEM, detail)
    assert "pip uninstall -y mujoco" in finding.advice


def test_files_that_an_upgrade_took_away_are_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    distribution(tmp_path, "mujoco", "4.0.0")
    distribution(tmp_path, "mujoco-core", "4.0.0", "mujoco/libmujoco.so.4.0.0,,\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    (finding,) = check_mujoco()
    assert finding.detail == "1 of its files are missing, for example mujoco/libmujoco.so.4.0.0"


def test_a_missing_package_is_a_problem_and_a_missing_extra_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distribution(tmp_path, "urlab-headless", "9.9")
    metadata = tmp_path / "urlab_headless-9.9.dist-info" / "METADATA"
    metadata.write_text(metadata.read_text() + "Requires-Dist: no-such-thing>=1 ; extra == 'wings'\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    (finding,) = check_extras()
    assert (finding.name, finding.status, finding.detail) == (
        "extra wings",
        Status.NOTE,
        "not installed: no-such-thing",
    )
    assert "pip install 'urlab-headless[wings]'" in finding.advice


def test_graphics_that_fail_are_a_warning_with_the_line_that_installs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYOPENGL_PLATFORM", "nonsense")
    monkeypatch.setenv("MUJOCO_GL", "egl")
    findings = check_graphics()
    assert {one.status for one in findings} == {Status.WARNING}
    assert all("apt-get install" in one.advice for one in findings)


def test_a_taken_port_is_a_warning_that_names_the_option() -> None:
    with socket.socket() as holder:
        try:
            holder.bind(("127.0.0.1", Ports().info))
            holder.listen()
        except OSError:
            pass  # another process has it, which is as good
        (finding,) = (one for one in check_ports() if one.name == f"port {Ports().info}")
    assert finding.status is Status.WARNING
    assert "--info-port 0" in finding.advice


def test_a_project_that_cannot_be_written_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (finding,) = check_project(str(tmp_path / "file" / "project"))
    assert finding.status is Status.PROBLEM
    assert "--project" in finding.advice


def test_a_project_that_is_not_there_yet_is_fine(tmp_path: Path) -> None:
    (finding,) = check_project(str(tmp_path / "new" / "project"))
    assert finding.status is Status.OK
    assert not (tmp_path / "new").exists()


def test_a_child_that_crashes_or_hangs_is_described() -> None:
    assert try_in_child("import os; os.abort()").text == "was ended by SIGABRT"
    assert try_in_child("while True: pass", timeout_s=0.3).text == "no result within 0.3 s"


def test_a_server_that_every_machine_reaches_is_told() -> None:
    with socket.create_server(("0.0.0.0", 0)) as listener:
        port = listener.getsockname()[1]
        assert doctor_module._listening_at(port) == ["0.0.0.0"]
        finding = doctor_module._openness("step", port, "0.0.0.0")
        assert (finding.status, "EVERY MACHINE" in finding.detail) == (Status.WARNING, True)
        assert doctor_module._openness("step", port, "127.0.0.1").status is Status.OK

"""How a server may be started, and which files it may touch."""

import tempfile
from pathlib import Path
from typing import Any

import pytest

from urlab.config import Ports, ServerConfig, default_project, is_local
from urlab.errors import ConfigError
from urlab.paths import FileRoots

LOCAL = ["127.0.0.1", "127.8.9.1", "::1", "[::1]", "localhost", "ipc:///run/urlab"]
OPEN = ["0.0.0.0", "192.168.1.4", "::", "*", "", "example.org", "localhost.example.org"]


@pytest.fixture
def config(tmp_path: Path) -> ServerConfig:
    return ServerConfig(project=tmp_path / "project")


def with_host(host: str, **options: Any) -> ServerConfig:
    return ServerConfig(host=host, project=Path("/nowhere/project"), **options)


@pytest.mark.parametrize("host", LOCAL)
def test_a_local_address_needs_no_consent(host: str) -> None:
    assert is_local(host)
    assert with_host(host).checked().host == host


@pytest.mark.parametrize("host", OPEN)
def test_any_other_address_needs_consent(host: str) -> None:
    assert not is_local(host)
    with pytest.raises(ConfigError, match=r"--host .*--keys DIR\), use --host 127\.0\.0\.1, or add --insecure"):
        with_host(host).checked()
    assert with_host(host, insecure=True).checked().host == host
    assert with_host(host, keys=Path("keys")).checked().host == host
    with pytest.raises(ConfigError, match="use one of them"):
        with_host(host, keys=Path("keys"), insecure=True).checked()


def test_a_keys_folder_in_the_project_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is in the project"):
        ServerConfig(project=tmp_path, keys=tmp_path / "keys").checked()


@pytest.mark.parametrize(("name", "port"), [("step", -1), ("state", 65536), ("camera", 10**9)])
def test_a_number_that_is_no_port_names_its_option(name: str, port: int, config: ServerConfig) -> None:
    wrong = ServerConfig(project=config.project, ports=Ports(**{name: port}))
    with pytest.raises(ConfigError, match=f"--{name}-port {port} is not a port: use 1 to 65535, or 0 for any free one"):
        wrong.checked()


@pytest.mark.parametrize("port", [0, 1, 65535])
def test_every_port_can_be_asked_for(port: int, config: ServerConfig) -> None:
    asked = Ports(port, port, port, port, port)
    assert ServerConfig(project=config.project, ports=asked).checked().ports == asked


def test_default_ports_are_the_protocols() -> None:
    assert Ports() == Ports(step=5559, state=5555, control=5556, info=5557, camera=5558)


def test_ports_are_appended_to_the_endpoint() -> None:
    assert with_host("127.0.0.1").endpoint_base == "tcp://127.0.0.1"
    assert with_host("ipc:///run/urlab").endpoint_base == "ipc:///run/urlab"


def test_the_project_is_an_absolute_path_once_checked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    assert ServerConfig(project=Path("here")).checked().project == tmp_path / "here"
    assert ServerConfig(project=Path("~/there")).checked().project == tmp_path / "me" / "there"


def test_the_default_project_is_in_the_users_data_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_project() == tmp_path / "urlab"
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_project() == tmp_path / ".local" / "share" / "urlab"


@pytest.fixture
def at_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A home folder, with the current folder in it."""
    home = tmp_path / "me"
    (home / "work").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home / "work")
    return home


TEMPORARY = Path(tempfile.gettempdir()).resolve()


def test_on_loopback_home_is_read_and_only_current_and_temporary_folder_are_written(
    config: ServerConfig, at_home: Path
) -> None:
    here = at_home / "work"
    assert config.roots() == FileRoots(
        read=(at_home, here, TEMPORARY, config.project), write=(here, TEMPORARY, config.project)
    )


@pytest.mark.parametrize("here", [".", ".."])
def test_a_current_folder_that_is_the_home_folder_or_above_it_is_not_written(
    config: ServerConfig, at_home: Path, monkeypatch: pytest.MonkeyPatch, here: str
) -> None:
    monkeypatch.chdir(at_home / here)
    assert config.roots().write == (TEMPORARY, config.project)


def test_the_whole_file_system_is_never_open_by_default(
    config: ServerConfig, at_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    assert config.roots() == FileRoots(read=(at_home, TEMPORARY, config.project), write=(TEMPORARY, config.project))


def test_on_any_other_address_only_the_project_is_open(tmp_path: Path) -> None:
    config = ServerConfig(host="0.0.0.0", insecure=True, project=tmp_path)
    assert config.roots() == FileRoots(read=(tmp_path,), write=(tmp_path,))


def test_named_roots_replace_the_usual_ones_but_never_the_project(config: ServerConfig, tmp_path: Path) -> None:
    named = ServerConfig(project=config.project, model_roots=(tmp_path / "m",), write_roots=())
    expected = FileRoots(read=(tmp_path / "m", config.project), write=(config.project,))
    assert named.roots() == named.roots(in_process=True) == expected


def test_in_process_the_rights_are_the_callers_own(config: ServerConfig) -> None:
    assert config.roots(in_process=True) == FileRoots(own_rights=True)

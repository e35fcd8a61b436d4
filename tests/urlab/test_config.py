"""How a server may be started, and which files it may touch."""

import tempfile
from pathlib import Path

import pytest

from urlab.config import FileRoots, Ports, ServerConfig, default_project, is_local
from urlab.errors import ConfigError

LOCAL = ["127.0.0.1", "127.8.9.1", "::1", "[::1]", "localhost", "ipc:///run/urlab"]
OPEN = ["0.0.0.0", "192.168.1.4", "::", "*", "", "example.org", "localhost.example.org"]


@pytest.fixture
def config(tmp_path: Path) -> ServerConfig:
    return ServerConfig(project=tmp_path / "project")


def with_host(host: str, insecure: bool = False) -> ServerConfig:
    return ServerConfig(host=host, insecure=insecure, project=Path("/nowhere/project"))


@pytest.mark.parametrize("host", LOCAL)
def test_a_local_address_needs_no_consent(host: str) -> None:
    assert is_local(host)
    assert with_host(host).checked().host == host


@pytest.mark.parametrize("host", OPEN)
def test_any_other_address_needs_consent(host: str) -> None:
    assert not is_local(host)
    with pytest.raises(ConfigError, match=r"--host .* no authentication. Use --host 127\.0\.0\.1, or add --insecure"):
        with_host(host).checked()
    assert with_host(host, insecure=True).checked().host == host


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


def test_on_loopback_the_usual_folders_are_open(
    config: ServerConfig, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    monkeypatch.chdir(tmp_path)
    usual = (tmp_path / "me", tmp_path, Path(tempfile.gettempdir()).resolve(), tmp_path / "project")
    assert config.roots() == FileRoots(read=usual, write=usual)


def test_on_any_other_address_only_the_project_is_open(tmp_path: Path) -> None:
    config = ServerConfig(host="0.0.0.0", insecure=True, project=tmp_path)
    assert config.roots() == FileRoots(read=(tmp_path,), write=(tmp_path,))


def test_named_roots_replace_the_usual_ones_but_never_the_project(config: ServerConfig, tmp_path: Path) -> None:
    named = ServerConfig(project=config.project, model_roots=(tmp_path / "m",), write_roots=())
    assert named.roots() == FileRoots(read=(tmp_path / "m", config.project), write=(config.project,))


@pytest.fixture
def jail(tmp_path: Path) -> FileRoots:
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "secret").write_text("s")
    (tmp_path / "in" / "way_out").symlink_to(tmp_path / "out")
    (tmp_path / "in" / "secret").symlink_to(tmp_path / "out" / "secret")
    (tmp_path / "out" / "way_in").symlink_to(tmp_path / "in" / "deep")
    (tmp_path / "in" / "loop").symlink_to(tmp_path / "in" / "loop")
    return FileRoots(read=(tmp_path / "in",), write=(tmp_path / "in" / "deep",))


@pytest.mark.parametrize(
    "inside", ["in", "in/a.xml", "in/deep/b", "in/deep/../c", "in/./deep", "out/way_in/x", "out/../in/x"]
)
def test_what_is_in_a_root_may_be_read(inside: str, jail: FileRoots, tmp_path: Path) -> None:
    assert jail.may_read(tmp_path / inside)


@pytest.mark.parametrize(
    "outside",
    [
        "", "out/secret", "in/../out/secret", "in/way_out/secret", "in/way_out/../in_not", "in/secret",
        "in/deep/../../out", "inside", "in/loop", "in/a\0b",
    ],
)  # fmt: skip
def test_what_leads_out_of_a_root_may_not(outside: str, jail: FileRoots, tmp_path: Path) -> None:
    assert not jail.may_read(tmp_path / outside)
    assert not jail.may_write(tmp_path / outside)


def test_reading_and_writing_have_their_own_roots(jail: FileRoots, tmp_path: Path) -> None:
    assert jail.may_read(tmp_path / "in" / "x")
    assert not jail.may_write(tmp_path / "in" / "x")
    assert jail.may_write(tmp_path / "in" / "deep" / "x")


def test_relative_paths_count_from_the_current_folder(
    jail: FileRoots, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path / "in")
    assert jail.may_read(Path("deep/x"))
    assert not jail.may_read(Path("../out/secret"))


def test_no_roots_open_nothing(tmp_path: Path) -> None:
    assert not FileRoots().may_read(tmp_path)
    assert not FileRoots().may_write(tmp_path)

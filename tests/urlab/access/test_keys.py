"""The keys folder."""

import os
import stat
from pathlib import Path

import pytest

from urlab.access import KeyPair, KeysFolder, KnownKey, Role
from urlab.access.keys import client_file, write_client_file
from urlab.errors import ConfigError
from urlab_client.transports import ClientKey, find_key

SERVER, CLIENT = KeyPair("S" * 40, "s" * 40), KeyPair("C" * 40, "c" * 40)


@pytest.fixture
def folder(tmp_path: Path) -> KeysFolder:
    return KeysFolder(tmp_path / "keys")


def test_the_server_s_key_is_made_once_and_readable_by_its_owner_alone(folder: KeysFolder) -> None:
    assert folder.server_pair(lambda: SERVER) == SERVER
    assert folder.server_pair(lambda: CLIENT) == SERVER
    assert stat.S_IMODE((folder.path / "server.key").stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700


def test_a_client_is_found_by_its_key_until_it_is_revoked(folder: KeysFolder) -> None:
    assert folder.find(CLIENT.public) is None
    folder.add("ada", Role.OPERATOR, CLIENT.public)
    known = KnownKey("ada", Role.OPERATOR, CLIENT.public)
    assert folder.find(CLIENT.public) == folder.by_name("ada") == known
    assert folder.clients() == [known]
    with pytest.raises(ConfigError, match="there is a key 'ada' already"):
        folder.add("ada", Role.ADMIN, SERVER.public)
    folder.revoke("ada")
    assert folder.find(CLIENT.public) is None
    with pytest.raises(ConfigError, match="there is no key 'ada'"):
        folder.revoke("ada")


@pytest.mark.parametrize("name", ["", "../ada", ".ada", "a/b", "x" * 65, "a\nb", "a b"])
def test_a_name_is_a_plain_word(folder: KeysFolder, name: str) -> None:
    with pytest.raises(ConfigError, match="no name for a key"):
        folder.add(name, Role.ADMIN, CLIENT.public)


def test_a_file_that_cannot_be_used_lets_no_client_in(folder: KeysFolder, caplog: pytest.LogCaptureFixture) -> None:
    folder.add("ada", Role.ADMIN, CLIENT.public)
    clients = folder.path / "clients"
    (clients / "role.toml").write_text(f'role = "king"\npublic = "{SERVER.public}"\n')
    (clients / "key.toml").write_text('role = "admin"\npublic = "short"\n')
    (clients / "toml.toml").write_text("not toml")
    assert folder.find(SERVER.public) is None
    assert [one.name for one in folder.clients()] == ["ada"]
    assert all(name in caplog.text for name in ("role.toml", "key.toml", "toml.toml"))


@pytest.mark.parametrize(("path", "mode"), [(".", 0o770), ("clients", 0o707)])
def test_a_folder_that_others_may_write_is_refused(folder: KeysFolder, path: str, mode: int) -> None:
    folder.add("ada", Role.ADMIN, CLIENT.public)
    (folder.path / path).chmod(mode)
    with pytest.raises(ConfigError, match="chmod go-w"):
        KeysFolder(folder.path)


def test_a_server_key_that_others_may_read_is_refused(folder: KeysFolder) -> None:
    folder.server_pair(lambda: SERVER)
    (folder.path / "server.key").chmod(0o640)
    with pytest.raises(ConfigError, match="chmod go-rwx"):
        folder.server_pair(lambda: SERVER)


def test_a_client_reads_the_file_that_was_written_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "ada.key"
    write_client_file(file, client_file("ada", CLIENT, SERVER.public))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    key = ClientKey.load(file)
    assert key == ClientKey(CLIENT.public, CLIENT.secret, SERVER.public, "ada")
    assert CLIENT.secret not in repr(key)
    assert find_key(str(file)) == find_key(key) == key
    monkeypatch.delenv("URLAB_KEY", raising=False)
    assert find_key(None) is None
    monkeypatch.setenv("URLAB_KEY", os.fspath(file))
    assert find_key(None) == key
    with pytest.raises(ConfigError, match="cannot be written"):
        write_client_file(file, "again")


@pytest.mark.parametrize("text", ["", 'public = "x"', "[", f'public = "{"C" * 40}"\nsecret = "{"c" * 40}"\n'])
def test_a_file_that_is_no_key_is_told_as_such(tmp_path: Path, text: str) -> None:
    (tmp_path / "no.key").write_text(text)
    with pytest.raises(ValueError, match=r"the key .*no\.key"):
        ClientKey.load(tmp_path / "no.key")

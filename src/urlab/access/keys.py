"""The keys folder of a server: its own key, and which client keys it lets in, with the role of each.

::

    DIR/server.key         the server's key pair; made when it is first needed, readable by its owner alone
    DIR/clients/NAME.toml  a client's public key and role; taking the file away takes the access away

The secret half of a client's key is in a file of its own, which goes to the client and is kept nowhere else. Keys are
those of CURVE, ZeroMQ's encryption, written in its 40 characters.
"""

import logging
import os
import re
import stat
import threading
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from urlab.access.callers import Role
from urlab.errors import ConfigError

log = logging.getLogger("urlab.access")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_KEY = re.compile(r"[0-9a-zA-Z.\-:+=^!/*?&<>()\[\]{}@%$#]{40}")
_SERVER_FILE = "server.key"
_CLIENTS_FOLDER = "clients"


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A public key and its secret."""

    public: str
    secret: str


MakePair = Callable[[], KeyPair]


@dataclass(frozen=True, slots=True)
class KnownKey:
    """A client that is let in."""

    name: str
    role: Role
    public: str


class KeysFolder:
    """A keys folder. `find` may be called from any thread, and sees what the command line changed meanwhile."""

    def __init__(self, path: Path) -> None:
        """ConfigError when other users of this machine may change what is there."""
        self.path = path.expanduser()
        self.version = 0
        """How often the folder was found changed."""

        self._lock = threading.Lock()
        self._stamp: tuple[Any, ...] = ()
        self._by_public: dict[str, KnownKey] = {}
        self._by_name: dict[str, KnownKey] = {}
        for folder in (self.path, self.path / _CLIENTS_FOLDER):
            if folder.exists():
                _refuse_open(folder, writable_only=True)

    def server_pair(self, make: MakePair) -> KeyPair:
        """The server's own key, made with ``make`` if there is none."""
        file = self.path / _SERVER_FILE
        if not file.exists():
            pair = make()
            _create(file, f'public = "{pair.public}"\nsecret = "{pair.secret}"\n')
            return pair
        _refuse_open(file, writable_only=False)
        fields = _read(file)
        return KeyPair(_key_of(fields, "public", file), _key_of(fields, "secret", file))

    def add(self, name: str, role: Role, public: str) -> None:
        """Let a client in; ConfigError when there is one of that name."""
        if not _NAME.fullmatch(name):
            raise ConfigError(f"{name!r} is no name for a key: use up to 64 letters, digits and . _ @ -")
        file = self.path / _CLIENTS_FOLDER / f"{name}.toml"
        if file.exists():
            raise ConfigError(f"there is a key {name!r} already: `urlab keys revoke {name}` first, or use another name")
        _create(file, f'role = "{role}"\npublic = "{public}"\n')

    def revoke(self, name: str) -> None:
        """Let a client in no longer; ConfigError when there is none of that name."""
        if name not in {one.name for one in self.clients()}:
            names = ", ".join(sorted(one.name for one in self.clients())) or "none"
            raise ConfigError(f"there is no key {name!r} in {self.path}; there are: {names}")
        (self.path / _CLIENTS_FOLDER / f"{name}.toml").unlink()

    def clients(self) -> list[KnownKey]:
        """All that are let in; a file that cannot be used is logged and left out."""
        known = []
        for file in sorted((self.path / _CLIENTS_FOLDER).glob("*.toml")):
            try:
                fields = _read(file)
                known.append(KnownKey(file.stem, Role(str(fields.get("role"))), _key_of(fields, "public", file)))
            except (ConfigError, ValueError) as wrong:
                log.warning("the key %s is not used: %s", file, wrong)
        return known

    def find(self, public: str) -> KnownKey | None:
        """The client with that public key, as the folder is now."""
        self.refresh()
        return self._by_public.get(public)

    def by_name(self, name: str) -> KnownKey | None:
        """The client of that name, as the folder was at the last `refresh`."""
        return self._by_name.get(name)

    def refresh(self) -> None:
        """Read the folder if it has changed."""
        with self._lock:
            stamp = self._stamp_now()
            if stamp == self._stamp:
                return
            clients = self.clients()
            self._by_public = {one.public: one for one in clients}
            self._by_name = {one.name: one for one in clients}
            self._stamp = stamp
            self.version += 1

    def _stamp_now(self) -> tuple[Any, ...]:
        try:
            with os.scandir(self.path / _CLIENTS_FOLDER) as files:
                return tuple(sorted((one.name, one.stat().st_mtime_ns) for one in files))
        except OSError:
            return ("none",)


def client_file(name: str, pair: KeyPair, server_public: str) -> str:
    """The text of the file that a client gets."""
    return (
        f"# The key of {name!r} for a URLab server. It lets in every program that can read it: keep it to yourself.\n"
        f'name = "{name}"\npublic = "{pair.public}"\nsecret = "{pair.secret}"\nserver = "{server_public}"\n'
    )


def write_client_file(path: Path, text: str) -> None:
    """Write a client's key, readable by its owner alone; ConfigError when there is a file already."""
    _create(path, text)


def _create(file: Path, text: str) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as failed:
        raise ConfigError(f"{file} cannot be written: {failed.strerror}") from failed
    with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
        opened.write(text)


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as wrong:
        raise ConfigError(f"{file} cannot be read: {wrong}") from wrong


def _key_of(fields: dict[str, Any], field: str, file: Path) -> str:
    value = fields.get(field)
    if not isinstance(value, str) or not _KEY.fullmatch(value):
        raise ConfigError(f"{file}: {field} is not a key of 40 characters")
    return value


def _refuse_open(path: Path, *, writable_only: bool) -> None:
    """ConfigError when other users may write (or read) what only the owner should."""
    mode = path.stat().st_mode
    if mode & (stat.S_IWGRP | stat.S_IWOTH if writable_only else stat.S_IRWXG | stat.S_IRWXO):
        advice = f"chmod go-{'w' if writable_only else 'rwx'} {path}"
        raise ConfigError(f"{path} is open to other users of this machine, who could let themselves in: {advice}")

"""How a server was started. Frozen: nothing here changes while it runs."""

import importlib.metadata
import importlib.util
import os
import sys
import tempfile
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from ipaddress import ip_address
from pathlib import Path
from typing import TypeVar

from urlab.errors import ConfigError
from urlab.paths import FileRoots
from urlab_wire.enums import RowLayout, StepMode

_DISTRIBUTION = "urlab-headless"
VERSION = importlib.metadata.version(_DISTRIBUTION)

STEP_TIME_LIMIT_S = 4.5
"""A step that runs longer stops at the next sub-step: before the original's clients give up, which is after 5 s."""

_LAST_PORT = 65535

MAX_REQUEST_BYTES = 64 * 1024 * 1024
"""A larger request is refused."""


class RenderProfile(StrEnum):
    """How much a picture may cost."""

    AUTO = "auto"
    FAST = "fast"
    QUALITY = "quality"


@dataclass(frozen=True, slots=True)
class Ports:
    """One port per socket; 0 means any free one."""

    step: int = 5559
    state: int = 5555
    control: int = 5556
    info: int = 5557
    camera: int = 5558

    @classmethod
    def any(cls) -> "Ports":
        """Free ports, whichever they are."""
        return cls(step=0, state=0, control=0, info=0, camera=0)


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """Everything that the options of `urlab serve` say."""

    host: str = "127.0.0.1"
    ports: Ports = field(default_factory=Ports)
    step_mode: StepMode = StepMode.AUTO
    play: bool = True
    project: Path = field(default_factory=lambda: default_project())
    model_roots: tuple[Path, ...] | None = None
    write_roots: tuple[Path, ...] | None = None
    insecure: bool = False
    share: bool = False
    """Whether other users of this machine may connect."""

    keys: Path | None = None
    """A keys folder: then only clients with a key of it may connect, encrypted, from wherever."""

    shm: bool = sys.platform == "linux"
    render_profile: RenderProfile = RenderProfile.AUTO
    camera_streams: bool = True
    rows: RowLayout = RowLayout.V1
    save_debug_xml: bool = False
    ready_file: Path | None = None
    metrics_port: int | None = None
    """The port of the health checks and figures; None = there is none, 0 = any free one."""

    web: bool | None = False
    """Whether there is a browser editor; None = if it is installed."""

    web_port: int | None = None
    """The editor's port; None = 8080, or any free one where that is taken; 0 = any free one."""

    web_token: str | None = None
    """What the editor's page asks for; None = one that is made at the start."""

    tls: tuple[Path, Path] | None = None
    """Certificate and key of the editor's page, in PEM."""

    plugins: tuple[str, ...] = ()
    """Modules that are imported before anything else; see `urlab.plugins`."""

    @property
    def endpoint_base(self) -> str:
        """What a port is appended to."""
        if self.host.startswith("ipc://"):
            return self.host
        return f"tcp://[{self.host}]" if ":" in self.host.strip("[]") and "[" not in self.host else f"tcp://{self.host}"

    def checked(self) -> "ServerConfig":
        """This config, or ConfigError when it exposes the server without consent."""
        if not self.insecure and not is_local(self.host) and self.keys is None:
            raise ConfigError(
                f"--host {self.host} would let every machine on the network drive this server. Let clients in by their "
                f"keys (urlab keys new NAME, then --keys DIR), use --host 127.0.0.1, or add --insecure if you mean it."
            )
        if self.insecure and self.keys is not None:
            raise ConfigError("--keys lets in clients with a key only, --insecure every client: use one of them")
        if self.keys is not None and self.keys.expanduser().resolve().is_relative_to(Path(self.project).resolve()):
            raise ConfigError(f"--keys {self.keys} is in the project, which clients may write to: keep it elsewhere")
        optional = {"metrics": self.metrics_port, "web": self.web_port}
        named = asdict(self.ports) | {name: port for name, port in optional.items() if port is not None}
        for name, port in named.items():
            if not 0 <= port <= _LAST_PORT:
                raise ConfigError(f"--{name}-port {port} is not a port: use 1 to {_LAST_PORT}, or 0 for any free one")
        return replace(
            self,
            project=Path(self.project).expanduser().resolve(),
            step_mode=_word(StepMode, "step_mode", self.step_mode),
            render_profile=_word(RenderProfile, "render_profile", self.render_profile),
            rows=_word(RowLayout, "rows", self.rows),
        )

    def roots(self, *, in_process: bool = False) -> FileRoots:
        """The folders in force: those that the options name, or the usual ones; and the project, always.

        Usually home, current and temporary folder are read, and the latter two written, on loopback. A current folder
        that is the home folder, or holds it, is not one that is meant to be written; the whole file system is neither.
        Requests from this very process have the rights of its user, unless the options name folders.
        """
        if in_process and self.model_roots is None and self.write_roots is None:
            return FileRoots(own_rights=True)
        home, here, temporary = (one.resolve() for one in (Path.home(), Path.cwd(), Path(tempfile.gettempdir())))
        usual = (home, here, temporary) if is_local(self.host) and self.keys is None else ()
        read = self.model_roots if self.model_roots is not None else _narrow(usual)
        write = self.write_roots
        if write is None:
            write = _narrow(usual[1 if not home.is_relative_to(here) else 2 :])
        return FileRoots(read=_resolved((*read, self.project)), write=_resolved((*write, self.project)))


def shadowing_client() -> str:
    """What to say when ``import urlab_client`` does not find ours but another distribution's; empty when it does."""
    ours = Path(__file__).parents[1] / "urlab_client" / "__init__.py"
    spec = importlib.util.find_spec("urlab_client")
    found = Path(spec.origin) if spec is not None and spec.origin is not None else None
    if found is None or not ours.exists() or found.samefile(ours):
        return ""
    owners = importlib.metadata.packages_distributions().get("urlab_client", [])
    others = [f"{name} {importlib.metadata.version(name)}" for name in owners if name != _DISTRIBUTION]
    whose = f" (of {', '.join(others)})" if others else ""
    return (
        f"another urlab_client stands before ours: Python finds {found.parent}{whose}, and {_DISTRIBUTION} {VERSION} "
        f"needs its own, {ours.parent}. Run the other one in an environment of its own, or take it out of PYTHONPATH"
    )


Word = TypeVar("Word", bound=StrEnum)


def _word(words: type[Word], option: str, value: str) -> Word:
    """Callers in Python may give a plain string."""
    try:
        return words(value)
    except ValueError:
        raise ConfigError(f"{option} is one of {', '.join(words)}, not {value!r}") from None


def is_local(host: str) -> bool:
    """Whether only this machine can reach that address."""
    if host.startswith("ipc://") or host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def default_project() -> Path:
    """The per-user data folder: ``$XDG_DATA_HOME/urlab`` or what the platform uses instead."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "urlab"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "urlab"
    return Path(os.environ.get("XDG_DATA_HOME", Path.home() / ".local" / "share")) / "urlab"


def _resolved(folders: tuple[Path, ...]) -> tuple[Path, ...]:
    return tuple(dict.fromkeys(folder.expanduser().resolve() for folder in folders))


def _narrow(folders: tuple[Path, ...]) -> tuple[Path, ...]:
    """Those that are not the whole file system, where a service may have its current folder or its home."""
    return tuple(one for one in folders if one != Path(one.anchor))

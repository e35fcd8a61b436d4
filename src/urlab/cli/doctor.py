"""``urlab doctor``: whether this machine can run the server, and what to do where it cannot."""

import contextlib
import ipaddress
import os
import platform
import re
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from enum import StrEnum
from importlib import metadata, util
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from urlab.access import KeysFolder
from urlab.cameras import GL_BACKENDS, GL_INSTALL_LINE
from urlab.child_process import how_it_ended, last_line
from urlab.cli import options as opt
from urlab.cli.console import LogLevel, print_json, set_up_logging, stdout
from urlab.cli.keys import default_folder
from urlab.config import Ports, default_project
from urlab.errors import ConfigError

ProjectDir = Annotated[
    str | None, typer.Option("--project", metavar="DIR", help="Check this project folder.", show_default=False)
]
DISTRIBUTION = "urlab-headless"
_LISTEN = "0A"
_NEEDED = ("numpy", "pyzmq", "msgspec", "rich", "typer", "pillow")
_OLDEST_PYTHON = (3, 11)
_REQUIREMENT = re.compile(r"""^([A-Za-z0-9._-]+).*\bextra\s*==\s*['"]([A-Za-z0-9._-]+)['"]""")
PARTS = ("mujoco", "mujoco-core")
_LIBRARY_VERSION = re.compile(r"libmujoco\D*(\d+\.\d+\.\d+)")
_MEND = (
    "pip uninstall -y mujoco mujoco-core mujoco-studio && pip install --no-cache-dir 'mujoco>=4.0,<5' "
    "(an upgrade in place from an older MuJoCo leaves a mixture behind)"
)
_OLDEST_MUJOCO, _MADE_FOR_MUJOCO, _NEXT_MUJOCO = (3, 8, 1), (4,), (5,)
_OLDER_MUJOCO = "for actuators with several controls and XML with every digit: pip install 'mujoco>=4.0,<5'"
_SOFTWARE = ("llvmpipe", "softpipe", "swrast")
_PROBE = """
import mujoco
from OpenGL import GL
model = mujoco.MjModel.from_xml_string(
    "<mujoco><worldbody><light pos='0 0 3'/><geom size='1' rgba='1 1 1 1'/></worldbody></mujoco>"
)
data = mujoco.MjData(model)
mujoco.mj_forward(model, data)
renderer = mujoco.Renderer(model, 16, 16)
renderer.update_scene(data)
assert renderer.render().max() > 0, "the picture is black"
print(GL.glGetString(GL.GL_RENDERER).decode())
renderer.close()
"""
SHM_DIR = Path("/dev/shm")
_SMALL_SHM_BYTES = 128 * 1024 * 1024
_MANY_CORES = 2
_NAP_S = 0.001
_NAPS = 30
_SLOPPY_S = 0.001


class Status(StrEnum):
    """``NOTE`` is worth knowing, ``WARNING`` costs something, with a ``PROBLEM`` the server cannot run."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at, what was found, and, unless all is well, one line of what to do."""

    name: str
    status: Status
    detail: str
    advice: str = ""


Check = Callable[[], list[Finding]]

_STYLES = {Status.OK: "green", Status.NOTE: "cyan", Status.WARNING: "yellow", Status.PROBLEM: "bold red"}


def doctor(project: ProjectDir = None, as_json: opt.AsJson = False, log_level: opt.Log = LogLevel.WARNING) -> None:
    """Check this machine: packages, graphics, ports, folders, timing.

    Exit code 0: the server can run; 1: it cannot.

    Example: [bold]urlab doctor[/bold]; in a script: [bold]urlab doctor --json | jq -r '.checks[].advice'[/bold]
    """
    set_up_logging(log_level)
    findings = examine(project or str(default_project()))
    healthy = all(one.status is not Status.PROBLEM for one in findings)
    if as_json:
        print_json({"ok": healthy, "checks": [asdict(one) for one in findings]})
    else:
        _show(findings, healthy)
    if not healthy:
        raise typer.Exit(1)


def examine(project: str) -> list[Finding]:
    """Every finding. The checks that wait for child processes run side by side."""
    checks: list[Check] = [
        check_python,
        check_mujoco,
        check_versions,
        check_graphics,
        check_ports,
        check_access,
        check_keys,
        check_shared_memory,
        lambda: check_project(project),
        check_cores,
        check_extras,
    ]
    with ThreadPoolExecutor(len(checks)) as pool:
        findings = list(chain.from_iterable(pool.map(lambda check: check(), checks)))
    return [*findings, *check_timer()]


def _show(findings: list[Finding], healthy: bool) -> None:
    table = Table.grid(padding=(0, 2))
    for one in findings:
        table.add_row(Text(one.status.value, _STYLES[one.status]), one.name, Text(one.detail))
        if one.advice:
            table.add_row("", "", Text(f"-> {one.advice}", "italic"))
    console = stdout()
    console.print(table)
    verdict = ("The server can run here.", "bold green") if healthy else ("The server cannot run here.", "bold red")
    console.print(Text(*verdict))


@dataclass(frozen=True, slots=True)
class Attempt:
    """``text`` is what the child printed when it went well, else why it did not."""

    ok: bool
    text: str


def try_in_child(script: str, *, environment: Mapping[str, str] | None = None, timeout_s: float = 20.0) -> Attempt:
    """Run a Python script with this interpreter."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, **(environment or {})},
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Attempt(False, f"no result within {timeout_s:g} s")
    if done.returncode == 0:
        return Attempt(True, done.stdout.decode().strip())
    crashed = done.returncode < 0 or not done.stderr
    return Attempt(False, how_it_ended(done.returncode) if crashed else last_line(done.stderr))


def version_of(distribution: str) -> str | None:
    """The installed version, or None."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def check_python() -> list[Finding]:
    """The interpreter and our own version."""
    detail = f"{platform.python_version()} on {platform.platform(terse=True)}"
    urlab = Finding("urlab", Status.OK, version_of(DISTRIBUTION) or "not installed, run from source")
    if sys.version_info < _OLDEST_PYTHON:
        return [urlab, Finding("python", Status.PROBLEM, detail, "use Python 3.11 or newer")]
    return [urlab, Finding("python", Status.OK, detail)]


def check_versions() -> list[Finding]:
    """The packages that the server needs beside MuJoCo."""
    missing = f"pip install {DISTRIBUTION}"
    return [
        Finding(name, Status.OK, version)
        if (version := version_of(name)) is not None
        else Finding(name, Status.PROBLEM, "not installed", missing)
        for name in _NEEDED
    ]


def check_extras() -> list[Finding]:
    """Optional features: what is missing is worth a note."""
    return [_extra(name, needs) for name, needs in sorted(_extras().items())]


def _extras() -> dict[str, list[str]]:
    extras: defaultdict[str, list[str]] = defaultdict(list)
    for requirement in (metadata.requires(DISTRIBUTION) or []) if version_of(DISTRIBUTION) else []:
        optional = _REQUIREMENT.match(requirement)
        if optional:
            extras[optional[2]].append(optional[1])
    return extras


def _extra(name: str, needs: list[str]) -> Finding:
    missing = [one for one in needs if version_of(one) is None]
    label = f"extra {name}"
    if missing:
        detail = f"not installed: {', '.join(missing)}"
        return Finding(label, Status.NOTE, detail, f"if you want it: pip install '{DISTRIBUTION}[{name}]'")
    return Finding(label, Status.OK, ", ".join(f"{one} {version_of(one)}" for one in needs))


def check_mujoco() -> list[Finding]:
    """One finding: the installation as a whole."""
    version = version_of("mujoco")
    trouble = _trouble(version)
    if trouble:
        return [Finding("mujoco", Status.PROBLEM, trouble, _MEND)]
    tried = try_in_child("import mujoco; print(mujoco.mj_versionString())")
    if not tried.ok:
        return [Finding("mujoco", Status.PROBLEM, f"{version} does not import: {tried.text}", _MEND)]
    if tried.text != version:
        return [Finding("mujoco", Status.PROBLEM, f"package {version}, but library {tried.text}", _MEND)]
    if _numbers(tried.text) < _MADE_FOR_MUJOCO:
        return [Finding("mujoco", Status.NOTE, f"{version}, which has less than 4.0", _OLDER_MUJOCO)]
    return [Finding("mujoco", Status.OK, f"{version}")]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


def _trouble(version: str | None) -> str | None:
    if version is None:
        return "not installed"
    numbers = _numbers(version)
    if not _OLDEST_MUJOCO <= numbers < _NEXT_MUJOCO:
        return f"{version} is installed, but {'.'.join(map(str, _OLDEST_MUJOCO))} or newer, and below 5, is needed"
    core = version_of("mujoco-core")
    if numbers >= _MADE_FOR_MUJOCO and core != version:
        return f"mujoco is {version}, but mujoco-core is {core or 'not installed'}"
    return _holes() or _leftovers(version)


def _holes() -> str | None:
    installed = [part for part in PARTS if version_of(part) is not None]
    files = [path for part in installed for path in metadata.files(part) or [] if path.suffix != ".pyc"]
    missing = [str(path) for path in files if not Path(str(path.locate())).exists()]
    return f"{len(missing)} of its files are missing, for example {missing[0]}" if missing else None


def _leftovers(version: str) -> str | None:
    spec = util.find_spec("mujoco")
    folders = spec.submodule_search_locations if spec is not None else None
    for path in (path for folder in folders or [] for path in Path(folder).glob("libmujoco*")):
        found = _LIBRARY_VERSION.match(path.name)
        if found and found[1] != version:
            return f"files of MuJoCo {found[1]} lie among those of {version}"
    return None


def check_graphics() -> list[Finding]:
    """A finding per backend. One that works is enough, and none is a warning: only cameras need it."""
    if sys.platform != "linux":
        return []
    attempts = {name: try_in_child(_PROBE, environment={"MUJOCO_GL": name}) for name in GL_BACKENDS}
    any_works = any(attempt.ok for attempt in attempts.values())
    return [_finding(name, attempt, any_works) for name, attempt in attempts.items()] + _chosen(attempts)


def _finding(name: str, attempt: Attempt, any_works: bool) -> Finding:
    label = f"graphics {name}"
    if attempt.ok:
        kind = "software rendering" if attempt.text.startswith(_SOFTWARE) else "hardware rendering"
        return Finding(label, Status.OK, f"{attempt.text} ({kind})")
    if any_works:
        return Finding(label, Status.NOTE, f"does not work: {attempt.text}", f"if you want it: {GL_INSTALL_LINE}")
    return Finding(label, Status.WARNING, f"does not work, so no cameras: {attempt.text}", GL_INSTALL_LINE)


def _chosen(attempts: dict[str, Attempt]) -> list[Finding]:
    chosen = os.environ.get("MUJOCO_GL", "").strip().lower()
    if chosen in attempts and not attempts[chosen].ok:
        working = [name for name, attempt in attempts.items() if attempt.ok]
        advice = f"unset MUJOCO_GL, or set it to {working[0]}" if working else GL_INSTALL_LINE
        return [Finding("MUJOCO_GL", Status.WARNING, f"asks for {chosen}, which does not work", advice)]
    return []


def check_ports() -> list[Finding]:
    """The default ports; a taken one is a warning, because another may be chosen."""
    ports = asdict(Ports())
    taken = {name: port for name, port in ports.items() if not _is_free(port)}
    findings = [
        Finding(
            f"port {port}",
            Status.WARNING,
            f"taken (--{name}-port)",
            f"end the process that has it (urlab ping?), or choose another: --{name}-port 0 takes any free one",
        )
        for name, port in taken.items()
    ]
    free = ", ".join(str(port) for name, port in ports.items() if name not in taken)
    return [*findings, Finding("ports", Status.OK, f"{free} free")] if free else findings


def check_access() -> list[Finding]:
    """To which machines the servers at the usual ports are open, and to which clients."""
    findings = []
    for name, port in asdict(Ports()).items():
        findings += [_openness(name, port, address) for address in _listening_at(port)]
    return findings


def _openness(name: str, port: int, address: str) -> Finding:
    from urlab_client.transports.keys import mechanism_of

    local = ipaddress.ip_address(address).is_loopback
    reached = "127.0.0.1" if address in ("0.0.0.0", "::") else address
    mechanism = mechanism_of(f"tcp://[{reached}]:{port}" if ":" in reached else f"tcp://{reached}:{port}")
    title, where = f"access {port}", f"{name} at {address}"
    if mechanism == "CURVE":
        return Finding(title, Status.OK, f"{where}: clients with a key only, encrypted")
    if local:
        return Finding(title, Status.OK, f"{where}: this machine only, and of other users only if it shares (--share)")
    advice = "end it, or start it with --keys (urlab keys new) or --host 127.0.0.1"
    return Finding(title, Status.WARNING, f"{where}: EVERY MACHINE that reaches this one, unencrypted", advice)


def _listening_at(port: int) -> list[str]:
    """The addresses at which a process of this machine listens on a port."""
    found = []
    for table, family in (("/proc/net/tcp", socket.AF_INET), ("/proc/net/tcp6", socket.AF_INET6)):
        with contextlib.suppress(OSError):
            for line in Path(table).read_text(encoding="ascii").splitlines()[1:]:
                address, state = line.split()[1], line.split()[3]
                host, _, number = address.partition(":")
                if state == _LISTEN and int(number, 16) == port:
                    words = [int(host[at : at + 8], 16) for at in range(0, len(host), 8)]
                    found.append(socket.inet_ntop(family, struct.pack(f"={len(words)}I", *words)))
    return found


def check_keys() -> list[Finding]:
    """The keys folder of this user, if there is one."""
    folder = default_folder()
    if not folder.exists():
        return []
    try:
        roles = Counter(str(one.role) for one in KeysFolder(folder).clients())
    except ConfigError as wrong:
        return [Finding("keys", Status.PROBLEM, str(folder), wrong.message)]
    shown = ", ".join(f"{count} {role}" for role, count in roles.items()) or "none"
    return [Finding("keys", Status.OK, f"{folder}: {shown}")]


def check_shared_memory() -> list[Finding]:
    """The folder for the shared-memory transport."""
    if sys.platform != "linux":
        return []
    if not _is_writable(SHM_DIR):
        return [Finding("shared memory", Status.WARNING, f"{SHM_DIR} is not writable", "clients use ZeroMQ instead")]
    usage = shutil.disk_usage(SHM_DIR)
    detail = f"{SHM_DIR}: {_mebibytes(usage.free)} of {_mebibytes(usage.total)} free"
    if usage.free < _SMALL_SHM_BYTES:
        return [Finding("shared memory", Status.WARNING, detail, "in a container: start it with --shm-size=1g")]
    return [Finding("shared memory", Status.OK, detail)]


def check_project(folder: str) -> list[Finding]:
    """The project folder, or the nearest folder above it that exists."""
    wanted = Path(folder).expanduser().resolve()
    existing = next(path for path in (wanted, *wanted.parents) if path.exists())
    if not existing.is_dir() or not _is_writable(existing):
        advice = f"choose another with --project DIR, or make {existing} a folder that you may write to"
        return [Finding("project folder", Status.PROBLEM, f"{wanted} is not writable", advice)]
    return [Finding("project folder", Status.OK, f"{wanted}{'' if existing == wanted else ' (will be created)'}")]


def check_cores() -> list[Finding]:
    """How many cores this process may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if cores < _MANY_CORES:
        return [Finding("cores", Status.WARNING, f"{cores}", "live mode and cameras want two or more")]
    return [Finding("cores", Status.OK, f"{cores}")]


def check_timer() -> list[Finding]:
    """How much longer than asked a short sleep takes, which limits how evenly live physics runs."""
    late_s = statistics.median(_oversleep_s() for _ in range(_NAPS))
    resolution_s = time.get_clock_info("perf_counter").resolution
    detail = f"resolution {1e9 * resolution_s:.0f} ns, a sleep of 1 ms takes {1e3 * (_NAP_S + late_s):.2f} ms"
    if late_s > _SLOPPY_S:
        return [Finding("timer", Status.WARNING, detail, "live pacing will be uneven: give this machine less to do")]
    return [Finding("timer", Status.OK, detail)]


def _oversleep_s() -> float:
    begin = time.perf_counter()
    time.sleep(_NAP_S)
    return time.perf_counter() - begin - _NAP_S


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _is_writable(folder: Path) -> bool:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _mebibytes(count: int) -> str:
    return f"{count // (1024 * 1024)} MiB"

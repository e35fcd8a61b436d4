"""Python, the packages that the server needs, and the optional ones."""

import platform
import re
import sys
from collections import defaultdict
from importlib import metadata

from urlab.cli.doctor.finding import Finding, Status

DISTRIBUTION = "urlab-headless"
_NEEDED = ("numpy", "pyzmq", "msgspec", "rich", "typer", "pillow")
_OLDEST_PYTHON = (3, 11)
_REQUIREMENT = re.compile(r"""^([A-Za-z0-9._-]+).*\bextra\s*==\s*['"]([A-Za-z0-9._-]+)['"]""")


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
    return [_package(name) for name in _NEEDED]


def check_extras() -> list[Finding]:
    """Optional features: what is missing is worth a note."""
    return [_extra(name, needs) for name, needs in sorted(_extras().items())]


def _package(name: str) -> Finding:
    version = version_of(name)
    if version is None:
        return Finding(name, Status.PROBLEM, "not installed", f"pip install {DISTRIBUTION}")
    return Finding(name, Status.OK, version)


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

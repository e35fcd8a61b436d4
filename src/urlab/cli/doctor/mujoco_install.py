"""MuJoCo: since version 4 two packages fill one folder, and an upgrade in place can tear holes into it."""

import re
from importlib import metadata, util
from pathlib import Path

from urlab.cli.doctor.child import try_in_child
from urlab.cli.doctor.finding import Finding, Status
from urlab.cli.doctor.packages import version_of

PARTS = ("mujoco", "mujoco-core")
_LIBRARY_VERSION = re.compile(r"libmujoco\D*(\d+\.\d+\.\d+)")
_MEND = (
    "pip uninstall -y mujoco mujoco-core mujoco-studio && pip install --no-cache-dir 'mujoco>=4.0,<5' "
    "(an upgrade in place from an older MuJoCo leaves a mixture behind)"
)


def check() -> list[Finding]:
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
    return [Finding("mujoco", Status.OK, f"{version}")]


def _trouble(version: str | None) -> str | None:
    if version is None:
        return "not installed"
    if int(version.split(".")[0]) != 4:
        return f"{version} is installed, but 4.x is needed"
    core = version_of("mujoco-core")
    if core != version:
        return f"mujoco is {version}, but mujoco-core is {core or 'not installed'}"
    return _holes() or _leftovers(version)


def _holes() -> str | None:
    missing = [str(path) for part in PARTS for path in metadata.files(part) or [] if _is_gone(path)]
    if not missing:
        return None
    return f"{len(missing)} of its files are missing, for example {missing[0]}"


def _is_gone(path: metadata.PackagePath) -> bool:
    return path.suffix != ".pyc" and not Path(str(path.locate())).exists()


def _leftovers(version: str) -> str | None:
    spec = util.find_spec("mujoco")
    folders = spec.submodule_search_locations if spec is not None else None
    for path in (path for folder in folders or [] for path in Path(folder).glob("libmujoco*")):
        found = _LIBRARY_VERSION.match(path.name)
        if found and found[1] != version:
            return f"files of MuJoCo {found[1]} lie among those of {version}"
    return None

"""What a run is to do, and the conditions that it had, for the readers of its numbers."""

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from urlab.errors import UrlabError
from urlab.evaluation.errors import BadJob
from urlab.evaluation.policies import PolicySource
from urlab.evaluation.runs.results import NO_PICTURES, Run, RunFolderError, read_run
from urlab.evaluation.settings import RENDER_PROFILE, VideoChoice

_PACKAGES = ("urlab-headless", "mujoco", "numpy")
_ANOTHER = "give another --run-id"


@dataclass(frozen=True)
class RunPlan:
    """One policy on some tasks, ``episodes`` seeds each from ``seed`` on.

    Without ``url`` a server is started for it and ended after it. With ``url`` that server is asked to run ``tasks``;
    None goes on with the job that it has. ``cameras``, ``videos`` and ``camera_files`` are for our own server only.
    ``policy_arguments`` are those, as they were written, that make the policy another one. An episode that the policy
    fails in counts as failed; after ``max_policy_failures`` of them in a row the run ends. In ``live_folder`` the
    workers of our own server tell what they simulate, for those who watch; with ``ray``, the address of a Ray cluster,
    they are actors there.
    """

    policy: PolicySource
    tasks: tuple[str, ...] | None
    episodes: int
    seed: int
    workers: int
    cameras: bool
    videos: VideoChoice
    results: Path
    run_id: str | None = None
    url: str | None = None
    token: str | None = None
    command: str = ""
    policy_arguments: tuple[str, ...] = ()
    camera_files: tuple[Path, ...] = ()
    max_policy_failures: int = 3
    live_folder: Path | None = None
    ray: str | None = None


def describe(plan: RunPlan, run_id: str) -> dict[str, Any]:
    """Everything that may change the numbers, and the line that runs it again."""
    known: dict[str, Any] = {
        "run_id": run_id,
        "policy": plan.policy.name,
        "policy_arguments": list(plan.policy_arguments),
        "command": plan.command,
        "started": now(),
        "server": plan.url or "started by the run",
        "workers": plan.workers,
        "machine": machine(),
        "versions": versions(),
    }
    if plan.url is None:
        known |= {"cameras": plan.cameras, **drawing(cameras=plan.cameras)}
    if plan.tasks is not None:
        known |= {"episodes": plan.episodes, "seeds": f"{plan.seed} to {plan.seed + plan.episodes - 1}"}
    return known


def refuse_other_policy(folder: Path, plan: RunPlan) -> None:
    """BadJob if the folder has results of another policy, which would count as this one's."""
    try:
        before = read_run(folder).info
    except RunFolderError:
        return
    ours = (plan.policy.name, list(plan.policy_arguments))
    theirs = (before.get("policy", ours[0]), before.get("policy_arguments", ours[1]))
    if theirs != ours:
        wanted = "--tasks and another --run-id" if plan.tasks is None else "another --run-id"
        raise BadJob(
            f"run {before.get('run_id', folder.name)} has results of {_in_words(*theirs)}, "
            f"and this is {_in_words(*ours)}: give {wanted}"
        )


def refuse_other_conditions(folder: Path, new: Mapping[str, Any]) -> dict[str, str]:
    """BadJob if the folder has results of tasks that were changed since, or that saw pictures of another renderer.

    ``new`` is what the server writes into the run's description. Returns the digests of the tasks that ran before.
    """
    try:
        before = read_run(folder)
    except RunFolderError:
        return {}
    after = Run(before.name, folder, dict(new), ())
    ran = {one.task for one in before.episodes}
    changed = [name for name, digest in after.task_digests.items() if before.task_digests.get(name, digest) != digest]
    if found := [name for name in changed if name in ran]:
        raise BadJob(f"run {before.name} has results of {found[0]} as it was before the task was changed: {_ANOTHER}")
    if before.drawing and after.drawing and before.drawing != after.drawing:
        raise BadJob(
            f"run {before.name} has results with pictures by {before.drawing}, and these would be by "
            f"{after.drawing}: {_ANOTHER}"
        )
    return before.task_digests


def _in_words(policy: str, arguments: list[str]) -> str:
    return f"{policy} ({', '.join(arguments)})" if arguments else policy


def now() -> str:
    """The local time with its zone."""
    return datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")


def machine() -> str:
    """This machine in a line."""
    cores = os.cpu_count() or 1
    return f"{_cpu_model()}, {cores} cores, {platform.platform()}"


def versions() -> dict[str, str]:
    """Of Python and of the packages that the numbers depend on."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def drawing(*, cameras: bool) -> dict[str, str]:
    """What a run's pictures depend on: ``renderer``, and with cameras ``render_profile``."""
    if not cameras:
        return {"renderer": NO_PICTURES}
    return {"renderer": _renderer(), "render_profile": str(RENDER_PROFILE)}


@cache
def _renderer() -> str:
    """What draws on this machine, as its driver calls it."""
    from urlab.cameras import GlThread

    gl = GlThread()
    try:
        return gl.gl_name()
    except UrlabError as none:
        return f"none: {none.message}"
    finally:
        gl.close()


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(errors="replace").splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()

"""From the options of `urlab eval run` to a plan."""

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from urlab.cli.complaint import WRONG_USE, CommandError
from urlab.cli.evaluation.options import names, server_url
from urlab.cli.evaluation.policy_arguments import policy_arguments
from urlab.cli.evaluation.task_words import known_tasks
from urlab.evaluation.settings import VideoChoice

if TYPE_CHECKING:
    from urlab.evaluation.policies import PolicySource
    from urlab.evaluation.settings import RunPlan


_SECRETS = ("key", "token", "password")
_NOT_THE_POLICY = (*_SECRETS, "timeout_s")
"""How arguments end that leave a policy what it is."""


@dataclass(frozen=True)
class Asked:
    """The options as they were given; None is for us to choose."""

    policy: str
    policy_args: Sequence[str]
    tasks: str | None
    episodes: int
    seed: int
    workers: int | None
    cameras: bool | None
    videos: VideoChoice | None
    results: Path
    run_id: str | None
    url: str | None
    token: str | None
    report: Path | None


def plan_of(asked: Asked) -> "RunPlan":
    """The plan; CommandError or TaskError when there is no such policy or task."""
    from urlab.evaluation.settings import RunPlan

    policy = _policy(asked)
    cameras, videos = _seeing(asked, policy)
    return RunPlan(
        policy=policy,
        tasks=_tasks(asked),
        episodes=asked.episodes,
        seed=asked.seed,
        workers=asked.workers or _default_workers(policy),
        cameras=cameras,
        videos=videos,
        results=asked.results.expanduser().resolve(),
        run_id=asked.run_id,
        url=None if asked.url is None else server_url(asked.url),
        token=asked.token,
        command=_command(asked),
        policy_arguments=tuple(word for word in asked.policy_args if not _key(word).endswith(_NOT_THE_POLICY)),
    )


def _policy(asked: Asked) -> "PolicySource":
    from urlab.evaluation.policies import PolicyNotFound, find_policy

    try:
        return find_policy(asked.policy, _own_tasks(asked) | policy_arguments(asked.policy_args))
    except PolicyNotFound as missing:
        raise CommandError(str(missing), WRONG_USE) from missing


def _own_tasks(asked: Asked) -> dict[str, Any]:
    """The oracle carries out the scripts of task files, so it has to be given those that we do not ship."""
    files = [word for word in names(asked.tasks or "") if word.endswith(".toml")]
    return {"task_files": files} if files and asked.policy == "oracle" else {}


def _tasks(asked: Asked) -> tuple[str, ...] | None:
    """A server that is far away may have tasks that we have not: it judges their names itself."""
    if asked.url is None:
        return known_tasks(asked.tasks or "all")
    return None if asked.tasks is None else tuple(names(asked.tasks))


def _seeing(asked: Asked, policy: "PolicySource") -> tuple[bool, VideoChoice]:
    """Nobody pays for pictures that nobody looks at."""
    if asked.url is not None and (asked.cameras is not None or asked.videos is not None):
        raise CommandError("with --url the server chooses: say --cameras and --videos to `urlab eval serve`", WRONG_USE)
    films = asked.videos not in (None, VideoChoice.NONE)
    if asked.cameras is False and films:
        raise CommandError(f"--videos {asked.videos} needs cameras, and --no-cameras forbids them", WRONG_USE)
    cameras = asked.cameras if asked.cameras is not None else policy.needs_cameras or films
    return cameras, asked.videos or (VideoChoice.FAILURES if cameras else VideoChoice.NONE)


def _default_workers(policy: "PolicySource") -> int:
    return max(1, os.cpu_count() or 1) if policy.shared_nothing else 1


def _command(asked: Asked) -> str:
    """The line that runs the same episodes again; where results go and secrets are no part of it."""
    words = ["urlab", "eval", "run", "--policy", asked.policy]
    for argument in asked.policy_args:
        words += ["--policy-arg", f"{_key(argument)}=..." if _key(argument).endswith(_SECRETS) else argument]
    words += ["--tasks", asked.tasks or "all", "--episodes", str(asked.episodes), "--seed", str(asked.seed)]
    words += ["--workers", str(asked.workers)] if asked.workers else []
    words += ["--url", asked.url] if asked.url else []
    return shlex.join(words)


def _key(argument: str) -> str:
    return argument.partition("=")[0]

"""From the options of `urlab eval run` to a plan."""

import json
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from urlab.cli.console import WRONG_USE, CommandError
from urlab.cli.eval.options import known_tasks, names, server_url
from urlab.evaluation.settings import VideoChoice

if TYPE_CHECKING:
    from urlab.evaluation.policies import PolicySource
    from urlab.evaluation.runs.plan import RunPlan


_SECRETS = ("key", "token", "password")
_NOT_THE_POLICY = (*_SECRETS, "timeout_s")
"""How arguments end that leave a policy what it is."""


@dataclass(frozen=True)
class RunOptions:
    """The options as they were given; None stands for the default."""

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


def plan_of(options: RunOptions) -> "RunPlan":
    """The plan; CommandError or TaskError when there is no such policy or task."""
    from urlab.evaluation.runs.plan import RunPlan

    policy = _policy(options)
    cameras, videos = _pictures(options, policy)
    return RunPlan(
        policy=policy,
        tasks=_tasks(options),
        episodes=options.episodes,
        seed=options.seed,
        workers=options.workers or _default_workers(policy),
        cameras=cameras,
        videos=videos,
        results=options.results.expanduser().resolve(),
        run_id=options.run_id,
        url=None if options.url is None else server_url(options.url),
        token=options.token,
        command=_command(options),
        policy_arguments=tuple(word for word in options.policy_args if not _key(word).endswith(_NOT_THE_POLICY)),
    )


def _policy(options: RunOptions) -> "PolicySource":
    from urlab.evaluation.policies import PolicyNotFound, find_policy

    try:
        return find_policy(options.policy, _own_tasks(options) | policy_arguments(options.policy_args))
    except PolicyNotFound as missing:
        raise CommandError(str(missing), WRONG_USE) from missing


def _own_tasks(options: RunOptions) -> dict[str, Any]:
    """The oracle carries out the scripts of task files, so it has to be given those that we do not ship."""
    files = [word for word in names(options.tasks or "") if word.endswith(".toml")]
    return {"task_files": files} if files and options.policy == "oracle" else {}


def _tasks(options: RunOptions) -> tuple[str, ...] | None:
    """A server that is far away may have tasks that we have not: it judges their names itself."""
    if options.url is None:
        return known_tasks(options.tasks or "all")
    return None if options.tasks is None else tuple(names(options.tasks))


def _pictures(options: RunOptions, policy: "PolicySource") -> tuple[bool, VideoChoice]:
    """Pictures cost much: they are drawn only if the policy or the videos need them."""
    if options.url is not None and (options.cameras is not None or options.videos is not None):
        raise CommandError("with --url the server chooses: say --cameras and --videos to `urlab eval serve`", WRONG_USE)
    wants_videos = options.videos not in (None, VideoChoice.NONE)
    if options.cameras is False and wants_videos:
        raise CommandError(f"--videos {options.videos} needs cameras, and --no-cameras forbids them", WRONG_USE)
    cameras = options.cameras if options.cameras is not None else policy.needs_cameras or wants_videos
    return cameras, options.videos or (VideoChoice.FAILURES if cameras else VideoChoice.NONE)


def _default_workers(policy: "PolicySource") -> int:
    return max(1, os.cpu_count() or 1) if policy.shared_nothing else 1


def _command(options: RunOptions) -> str:
    """The line that runs the same episodes again; where results go and secrets are no part of it."""
    words = ["urlab", "eval", "run", "--policy", options.policy]
    for argument in options.policy_args:
        words += ["--policy-arg", f"{_key(argument)}=..." if _key(argument).endswith(_SECRETS) else argument]
    words += ["--tasks", options.tasks or "all", "--episodes", str(options.episodes), "--seed", str(options.seed)]
    words += ["--workers", str(options.workers)] if options.workers else []
    words += ["--url", options.url] if options.url else []
    return shlex.join(words)


def _key(argument: str) -> str:
    return argument.partition("=")[0]


def policy_arguments(words: Sequence[str]) -> dict[str, Any]:
    """``steps=8`` is a number, ``checkpoint=best.pt`` a text."""
    found: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key.isidentifier():
            raise CommandError(f"--policy-arg {word!r} is not KEY=VALUE", WRONG_USE)
        found[key] = _value(value)
    return found


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text

"""``urlab rollout``: a policy acts for many episodes of a task, here or on a Ray cluster."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from urlab.cli import options as opt
from urlab.cli.console import WRONG_USE, CommandError, LogLevel, print_json, set_up_logging, stderr, stdout
from urlab.cli.signals import StopSignals

if TYPE_CHECKING:
    from urlab.envs.rollout import EpisodeRow, MakePolicy

Task = Annotated[
    str, typer.Argument(metavar="TASK", help="A task of urlab.envs, such as PandaReach-v0, with or without urlab/.")
]
PolicyWord = Annotated[
    str,
    typer.Option(
        "--policy",
        metavar="NAME",
        help="baseline, random, or module:NAME or file.py:NAME, which is called with the environment and returns "
        "a policy: reset(seed), act(observation).",
    ),
]
EpisodeCount = Annotated[int, typer.Option("--episodes", min=1, help="Each with a seed of its own.")]
JobSeed = Annotated[int, typer.Option("--seed", min=0, help="The seeds of all episodes follow from it.")]
RandomizeOption = Annotated[bool, typer.Option("--randomize", help="Draw what the task's level randomises.")]
RayAddress = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="ADDRESS",
        help="On the actors of this Ray cluster (host:6379, auto), or of one that is started here (local).",
        show_default="in this process",
    ),
]
Actors = Annotated[
    int | None,
    typer.Option("--actors", min=1, help="How many of them, each with a CPU.", show_default="one for each CPU"),
]
Out = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="Write a line of JSON for each episode, in their order.")
]
_TELL_EVERY_S = 5.0


def rollout(
    task: Task,
    policy: PolicyWord = "baseline",
    episodes: EpisodeCount = 10,
    seed: JobSeed = 0,
    randomize: RandomizeOption = False,
    ray: RayAddress = None,
    actors: Actors = None,
    out: Out = None,
    as_json: opt.AsJson = False,
    log_level: opt.Log = LogLevel.WARNING,
) -> None:
    """Run a policy for many episodes of an environment; the result does not depend on where.

    Examples: [bold]urlab rollout PandaReach-v0 --episodes 20[/bold]; with a policy of your own on all machines of a
    cluster: [bold]urlab rollout PandaReach-v0 --policy mine.py:make --episodes 10000 --ray head:6379 --out
    rows.jsonl[/bold]
    """
    set_up_logging(log_level)
    if actors is not None and ray is None:
        raise CommandError("--actors is how many of a Ray cluster: say --ray ADDRESS too, or --ray local", WRONG_USE)
    _check_out(out)
    try:
        from urlab.envs.rollout import RolloutJob, roll_out
        from urlab.envs.task import TASKS
    except ImportError as missing:
        raise CommandError(str(missing)) from missing
    name = task.removeprefix("urlab/")
    if name not in TASKS:
        raise CommandError(f"there is no task {task!r}; there are: {', '.join(sorted(TASKS))}", WRONG_USE)
    job = RolloutJob(
        name, _policy(policy, ray is not None), episodes, seed, (("randomize", True),) if randomize else ()
    )
    count = None if ray is None else _connected(ray, actors)
    begin_s = time.perf_counter()
    rows: list[EpisodeRow] = []
    with StopSignals():
        _collect(roll_out(job, actors=count), rows, episodes)
    rows.sort(key=lambda row: row.episode)
    if out is not None:
        _write(out, rows)
    if len(rows) < episodes:
        kept = "" if out is None else f"; what there is, is in {out}"
        raise CommandError(f"stopped after {len(rows)} of {episodes} episodes{kept}")
    report = _report(name, policy, rows, time.perf_counter() - begin_s)
    if as_json:
        print_json(report)
    else:
        _show(report, out)


def _check_out(out: Path | None) -> None:
    """Before the work: what cannot be written afterwards is no use."""
    if out is not None and (out.is_dir() or not out.absolute().parent.is_dir()):
        raise CommandError(f"--out {out}: name a file in a folder that exists", WRONG_USE)


def _policy(word: str, on_cluster: bool) -> "MakePolicy":
    from urlab.envs.rollout import POLICIES

    if word in POLICIES:
        return POLICIES[word]
    if ":" not in word:
        known = ", ".join(POLICIES)
        raise CommandError(f"there is no policy {word!r}; there are: {known}, module:NAME, file.py:NAME", WRONG_USE)
    from urlab.evaluation.policies.registry import load_class

    made = load_class(word)
    if on_cluster and made.__module__.partition(".")[0] != "urlab":
        from urlab.ray_actors import ship_code

        ship_code(made.__module__)
    return made


def _connected(address: str, actors: int | None) -> int:
    from urlab import ray_actors

    ray_actors.connect(address)
    cpus = ray_actors.cluster_cpus()
    if actors is not None and actors > cpus:
        raise CommandError(f"--actors {actors}: the cluster has {cpus} CPUs, and each actor needs one", WRONG_USE)
    return max(1, cpus if actors is None else actors)


def _collect(coming: "Iterator[EpisodeRow]", rows: "list[EpisodeRow]", episodes: int) -> None:
    """Told now and then how far it is."""
    told_s = time.monotonic()
    for row in coming:
        rows.append(row)
        if time.monotonic() - told_s > _TELL_EVERY_S:
            told_s = time.monotonic()
            stderr().print(f"{len(rows)} of {episodes} episodes")


def _write(out: Path, rows: "list[EpisodeRow]") -> None:
    from urlab.files import replacing

    with replacing(out) as file:
        for row in rows:
            file.write(json.dumps(row.as_dict()).encode() + b"\n")


def _report(task: str, policy: str, rows: "list[EpisodeRow]", wall_s: float) -> dict[str, Any]:
    steps = sum(row.steps for row in rows)
    judged = [row.success for row in rows if row.success is not None]
    return {
        "task": task,
        "policy": policy,
        "episodes": len(rows),
        "success_rate": sum(judged) / len(judged) if judged else None,
        "mean_reward_sum": sum(row.reward_sum for row in rows) / len(rows),
        "mean_steps": steps / len(rows),
        "wall_time_s": wall_s,
        "steps_per_second": steps / wall_s,
    }


def _show(report: dict[str, Any], out: Path | None) -> None:
    rate = report["success_rate"]
    solved = "" if rate is None else f"{100 * rate:.1f} % solved, "
    stdout().print(
        f"{report['task']} by {report['policy']}: {report['episodes']} episodes, {solved}mean sum of rewards "
        f"{report['mean_reward_sum']:.3f} in {report['mean_steps']:.1f} steps; {report['steps_per_second']:.0f} steps/s"
    )
    if out is not None:
        stdout().print(f"{out}: a line for each episode")

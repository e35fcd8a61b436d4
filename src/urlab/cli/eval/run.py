"""`urlab eval run`: a policy on tasks, from the options through a plan and its progress to the results."""

import contextlib
import json
import logging
import os
import shlex
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from urlab.cli.console import FAILED, WRONG_USE, CommandError, LogLevel, in_words, print_json, set_up_logging, stderr
from urlab.cli.eval import options as opt
from urlab.cli.eval.jobs import client_errors_as_command_errors
from urlab.cli.eval.report import print_summary
from urlab.cli.options import AsJson, Log
from urlab.errors import ChildFailed, UrlabError
from urlab.evaluation.settings import VideoChoice

if TYPE_CHECKING:
    from urlab.evaluation.episode_result import EpisodeResult
    from urlab.evaluation.policies import PolicySource
    from urlab.evaluation.runs.plan import RunPlan
    from urlab.evaluation.runs.runner import RunObserver, RunOutcome

INTERRUPTED = 130
_MOST_WARNINGS = 3

Policy = Annotated[
    str,
    typer.Option(
        "--policy", metavar="POLICY", help="oracle, random, module:Class, file.py:Class or ws://host:port (openpi)."
    ),
]
PolicyArgs = Annotated[
    list[str] | None,
    typer.Option("--policy-arg", metavar="KEY=VALUE", help="Keyword argument of the policy's class; may be repeated."),
]
Tasks = Annotated[
    str | None,
    typer.Option(
        "--tasks",
        metavar="NAME,...|all",
        help="Tasks, .toml files of your own, or a robot's name for all its tasks.",
        show_default="all; with --url the job that is there",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers", min=1, help="Episodes side by side.", show_default="one per core for oracle and random, else 1"
    ),
]
Cameras = Annotated[
    bool | None,
    typer.Option(
        "--cameras/--no-cameras",
        help="Pictures in observations.",
        show_default="if the policy wants them, or videos are asked for",
    ),
]
Videos = Annotated[
    VideoChoice | None,
    typer.Option(
        "--videos", help="Which episodes to keep videos of.", show_default="failures if there are cameras, else none"
    ),
]
Report = Annotated[Path | None, typer.Option("--report", metavar="FILE", help="Write an HTML report there.")]
Url = Annotated[
    str | None,
    typer.Option("--url", metavar="URL", help="Use a server that runs already."),
]
MinSuccess = Annotated[
    float | None,
    typer.Option(
        "--min-success", min=0, max=1, help="Exit with 1 if a smaller part of the episodes succeeds: 0.9 is 90 %."
    ),
]
MaxPolicyFailures = Annotated[
    int,
    typer.Option(
        "--max-policy-failures", min=1, metavar="N", help="Stop after N episodes in a row that the policy failed in."
    ),
]
Watch = Annotated[
    bool,
    typer.Option(
        "--watch", help="Show the episodes on a page of the browser editor while they run; its address is printed."
    ),
]
_SECRETS = ("key", "token", "password")
_NOT_THE_POLICY = (*_SECRETS, "timeout_s")
"""How arguments end that leave a policy what it is."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_STOPPING = b"\nstopping, what is done is kept; Ctrl-C again does not wait for the policy\n"


def run(
    policy: Policy,
    policy_arg: PolicyArgs = None,
    tasks: Tasks = None,
    episodes: opt.Episodes = 10,
    seed: opt.Seed = 0,
    workers: Workers = None,
    cameras: Cameras = None,
    url: Url = None,
    token: opt.Token = None,
    results: opt.Results = opt.DEFAULT_RESULTS,
    run_id: opt.RunId = None,
    videos: Videos = None,
    camera_config: opt.CameraFiles = None,
    report: Report = None,
    min_success: MinSuccess = None,
    max_policy_failures: MaxPolicyFailures = 3,
    ray: opt.Ray = None,
    watch: Watch = False,
    as_json: AsJson = False,
    log_level: Log = LogLevel.WARNING,
) -> None:
    """Evaluate a policy: start a server for it, run all episodes, print and keep the results.

    Ctrl-C ends it and keeps what is done; the same --run-id goes on from there.

    Exit codes: 0 all episodes ran, however well; 1 they did not, or fewer succeeded than --min-success asks for;
    2 asked in a way that cannot work; 130 interrupted.

    Example: [bold]urlab eval run --policy oracle --tasks all --episodes 2 --report out.html[/bold]; your own policy:
    [bold]urlab eval run --policy my_policy.py:MyPolicy --policy-arg checkpoint=best.pt --episodes 20[/bold]
    """
    set_up_logging(log_level)
    opt.need_packages(opt.FOR_A_SERVER if url is None else opt.FOR_TASKS if policy == "oracle" else ())
    opt.check_folder("--results", results)
    opt.check_file("--report", report)
    if ray is not None and url is not None:
        raise CommandError(f"--ray is for a server that is started here; {url} has workers of its own", WRONG_USE)
    if watch:
        _check_watch(url, ray)
    options = RunOptions(
        policy,
        policy_arg or [],
        tasks,
        episodes,
        seed,
        workers,
        cameras,
        videos,
        results,
        run_id,
        url,
        token,
        max_policy_failures,
    )
    options = replace(options, camera_files=tuple(camera_config or ()), ray=ray)
    with redirect_stdout(sys.stderr):  # a policy may print: stdout is for the results
        plan = plan_of(options)
        if plan.url is None and plan.cameras:
            opt.check_drawing()
        with _watched(plan, watch) as (plan, observers):
            outcome = _evaluate(plan, observers)
    _show_results(outcome, report, as_json)
    _warn(outcome)
    _judge(outcome, min_success)


def _check_watch(url: str | None, ray: str | None) -> None:
    """What --watch cannot do is said before anything is started."""
    from urlab.editor_process import MISSING, is_installed

    if url is not None:
        raise CommandError(f"--watch shows the workers of this machine, and those of {url} are its own", WRONG_USE)
    if ray is not None:
        raise CommandError("--watch shows the workers of this machine, and those of --ray are anywhere", WRONG_USE)
    if not is_installed():
        raise CommandError(f"--watch: {MISSING}")


@contextlib.contextmanager
def _watched(plan: "RunPlan", watch: bool) -> Iterator[tuple["RunPlan", list["RunObserver"]]]:
    """The plan, and who else gets to know how it goes: with ``watch`` the page, until the run has ended."""
    if not watch:
        yield plan, []
        return
    from urlab.evaluation.watching import RunWatch, tasks_of

    with RunWatch(tasks_of(plan.tasks or ())) as page:
        stderr().print(f"watch: {page.url}", markup=False, soft_wrap=True)
        yield replace(plan, live_folder=page.folder), [page]


def _evaluate(plan: "RunPlan", others: Sequence["RunObserver"] = ()) -> "RunOutcome":
    from urlab.evaluation.policies import PolicyError, PolicyNotFound
    from urlab.evaluation.runs.runner import run_plan

    try:
        with (
            client_errors_as_command_errors(plan.url or ""),
            stop_event() as stop,
            RunProgress(stderr(), others) as progress,
        ):
            return run_plan(plan, progress, stop)
    except PolicyNotFound as missing:
        raise CommandError(str(missing), WRONG_USE) from missing
    except (PolicyError, ChildFailed) as failed:
        raise CommandError(str(failed)) from failed


def _show_results(outcome: "RunOutcome", report: Path | None, as_json: bool) -> None:
    """Results of what is done, whatever came of the rest."""
    from urlab.evaluation.report import RunFolderError, document, read_run, write_report

    try:
        done = read_run(outcome.folder)
    except RunFolderError:
        if as_json:
            print_json({"runs": [], "comparisons": [], "complete": False})
        return
    if as_json:
        print_json({**document([done]), "complete": outcome.is_complete})
    else:
        print_summary([done])
    if report is not None:
        write_report([done], report)
    stderr().print(f"results: {done.folder}", markup=False, soft_wrap=True)
    if report is not None:
        stderr().print(f"report: {report}", markup=False, soft_wrap=True)


def _warn(outcome: "RunOutcome") -> None:
    """What cost no result, and is missed later: videos, files."""
    for complaint in outcome.complaints[-_MOST_WARNINGS:]:
        stderr().print(f"warning: {complaint}", markup=False, soft_wrap=True)
    more = len(outcome.complaints) - _MOST_WARNINGS
    if more > 0:
        stderr().print(f"warning: and {more} before these", markup=False, soft_wrap=True)


def _judge(outcome: "RunOutcome", min_success: float | None) -> None:
    """What is wrong becomes the exit code, and a sentence."""
    if outcome.problem is not None:
        raise CommandError(f"{outcome.problem}{_where_to_look(outcome.problem)}") from outcome.problem
    if outcome.was_stopped:
        stderr().print(f"interrupted; --run-id {outcome.run_id} goes on from here", markup=False, soft_wrap=True)
        raise typer.Exit(INTERRUPTED)
    if not outcome.is_complete:
        raise CommandError(f"{outcome.completed + len(outcome.finished)} of {outcome.total} episodes have a result")
    if min_success is not None:
        _require(outcome, min_success)


def _where_to_look(problem: Exception) -> str:
    """An error inside a policy may be explained by its traceback."""
    from urlab.evaluation.policies import PolicyError

    cause = problem.__cause__ if isinstance(problem, PolicyError) else None
    is_shown = cause is None or isinstance(cause, UrlabError) or logging.getLogger("urlab").isEnabledFor(logging.DEBUG)
    return "" if is_shown else "; --log-level debug shows the traceback"


def _require(outcome: "RunOutcome", min_success: float) -> None:
    from urlab.evaluation.report import read_run, summarise

    rate = summarise(read_run(outcome.folder)).overall.rate
    if rate < min_success:
        raise CommandError(
            f"{100 * rate:.1f} % of the episodes succeeded; --min-success asks for {100 * min_success:g} %", FAILED
        )


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
    max_policy_failures: int = 3
    camera_files: Sequence[Path] = ()
    ray: str | None = None


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
        workers=options.workers or (os.cpu_count() or 1 if policy.shared_nothing else 1),
        cameras=cameras,
        videos=videos,
        results=options.results.expanduser().resolve(),
        run_id=options.run_id,
        url=None if options.url is None else opt.server_url(options.url),
        token=options.token,
        command=_command(options),
        camera_files=_camera_files(options),
        policy_arguments=tuple(word for word in options.policy_args if not _key(word).endswith(_NOT_THE_POLICY)),
        max_policy_failures=options.max_policy_failures,
        ray=options.ray,
    )


def _policy(options: RunOptions) -> "PolicySource":
    from urlab.evaluation.policies import PolicyNotFound, find_policy

    # The oracle carries out the scripts of task files, so it has to be given those that we do not ship.
    files = [word for word in opt.names(options.tasks or "") if word.endswith(".toml")]
    own_tasks = {"task_files": files} if files and options.policy == "oracle" else {}
    try:
        return find_policy(options.policy, own_tasks | policy_arguments(options.policy_args))
    except PolicyNotFound as missing:
        raise CommandError(str(missing), WRONG_USE) from missing


def _tasks(options: RunOptions) -> tuple[str, ...] | None:
    """A server that is far away may have tasks that we have not: it judges their names itself."""
    if options.url is None:
        return opt.known_tasks(options.tasks or "all")
    return None if options.tasks is None else tuple(opt.names(options.tasks))


def _pictures(options: RunOptions, policy: "PolicySource") -> tuple[bool, VideoChoice]:
    """Pictures cost much: they are drawn only if the policy or the videos need them."""
    if options.url is not None and (options.cameras is not None or options.videos is not None):
        raise CommandError("with --url the server chooses: say --cameras and --videos to `urlab eval serve`", WRONG_USE)
    wants_videos = options.videos not in (None, VideoChoice.NONE)
    if options.cameras is False and wants_videos:
        raise CommandError(f"--videos {options.videos} needs cameras, and --no-cameras forbids them", WRONG_USE)
    cameras = options.cameras if options.cameras is not None else policy.needs_cameras or wants_videos
    return cameras, options.videos or (VideoChoice.FAILURES if cameras else VideoChoice.NONE)


def _camera_files(options: RunOptions) -> tuple[Path, ...]:
    """Checked here, so that a mistake is told before a server is started."""
    if options.url is not None and options.camera_files:
        raise CommandError("with --url the server chooses: say --camera-config to `urlab eval serve`", WRONG_USE)
    opt.camera_choice(options.camera_files)
    return tuple(path.expanduser().resolve() for path in options.camera_files)


def _command(options: RunOptions) -> str:
    """The line that runs the same episodes again; where results go and secrets are no part of it."""
    words = ["urlab", "eval", "run", "--policy", options.policy]
    for argument in options.policy_args:
        words += ["--policy-arg", f"{_key(argument)}=..." if _key(argument).endswith(_SECRETS) else argument]
    words += ["--tasks", options.tasks or "all", "--episodes", str(options.episodes), "--seed", str(options.seed)]
    words += ["--workers", str(options.workers)] if options.workers else []
    for file in options.camera_files:
        words += ["--camera-config", str(file)]
    if options.cameras is not None:
        words.append("--cameras" if options.cameras else "--no-cameras")
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
        found[key] = value
        with contextlib.suppress(ValueError):
            found[key] = json.loads(value)
    return found


class RunProgress:
    """A bar with the running success, a line for each episode above it; without a terminal the lines alone.

    ``others`` are told as well.
    """

    def __init__(self, console: Console, others: Sequence["RunObserver"] = ()) -> None:
        self._console = console
        self._others = others
        self._progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("{task.fields[success]}"),
            TimeElapsedColumn(),
            TextColumn("[dim]left"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._bar = self._progress.add_task("starting", total=None, success="")
        self._total = self._done = self._solved = 0

    def __enter__(self) -> "RunProgress":
        self._progress.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._progress.stop()

    def begin(self, run_id: str, total: int, completed: int, solved: int) -> None:
        """The server is there."""
        for other in self._others:
            other.begin(run_id, total, completed, solved)
        self._total, self._done, self._solved = total, completed, solved
        self._progress.update(self._bar, description="episodes", total=total, completed=completed)
        again = f", {completed} of them done before and {solved} of these solved" if completed else ""
        episodes = in_words({"episodes": total}) or "no episodes"
        self._console.print(f"run [bold]{escape(run_id)}[/]: {episodes}{again}", soft_wrap=True)

    def episode(self, result: "EpisodeResult") -> None:
        """An episode has ended."""
        for other in self._others:
            other.episode(result)
        self._done += 1
        self._solved += result.success
        rate = f"{self._solved}/{self._done} solved, {100 * self._solved / self._done:.0f} %"
        self._progress.update(self._bar, completed=self._done, success=rate)
        word = "[green]solved[/]" if result.success else "[red]failed[/]"
        steps = "" if result.steps is None else f" {result.steps} steps"
        reason = "" if result.success or result.reason is None else f" {escape(result.reason)}"
        self._console.print(
            f"{self._done:>4}/{self._total} {word} {escape(result.task)} {escape(result.seed)} "
            f"score {result.score:.2f}{steps}{reason}  [dim]{rate}[/]",
            soft_wrap=True,
        )


@contextlib.contextmanager
def stop_event() -> Iterator[threading.Event]:
    """Set by the first SIGINT or SIGTERM; the second ends the process at once. To be used on the main thread."""
    event = threading.Event()

    def receive(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature of handlers
        if event.is_set():
            raise KeyboardInterrupt
        event.set()
        with contextlib.suppress(OSError, ValueError):
            os.write(sys.stderr.fileno(), _STOPPING)  # no print: the signal may have interrupted one

    before = {one: signal.signal(one, receive) for one in _SIGNALS}
    try:
        yield event
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)

"""`urlab eval run`: a policy on tasks, from start to report."""

import logging
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from urlab.cli.console import FAILED, WRONG_USE, CommandError, LogLevel, print_json, set_up_logging, stderr
from urlab.cli.eval import options as opt
from urlab.cli.eval.jobs import client_errors_as_command_errors
from urlab.cli.eval.options import FOR_A_SERVER, FOR_TASKS, check_drawing, check_file, check_folder, need_packages
from urlab.cli.eval.planning import RunOptions, plan_of
from urlab.cli.eval.progress import RunProgress, stop_event
from urlab.cli.eval.report import print_summary
from urlab.cli.options import AsJson, Log
from urlab.errors import ChildFailed, UrlabError
from urlab.evaluation.settings import VideoChoice

if TYPE_CHECKING:
    from urlab.evaluation.report import Run
    from urlab.evaluation.runs.plan import RunPlan
    from urlab.evaluation.runs.runner import RunOutcome


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
    typer.Option("--videos", help="Which episodes to film.", show_default="failures if there are cameras, else none"),
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
    report: Report = None,
    min_success: MinSuccess = None,
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
    need_packages(FOR_A_SERVER if url is None else FOR_TASKS if policy == "oracle" else ())
    check_folder("--results", results)
    check_file("--report", report)
    options = RunOptions(
        policy, policy_arg or [], tasks, episodes, seed, workers, cameras, videos, results, run_id, url, token, report
    )
    with redirect_stdout(sys.stderr):  # a policy may print: stdout is for the results
        plan = plan_of(options)
        if plan.url is None and plan.cameras:
            check_drawing()
        outcome = _evaluate(plan)
    _show_results(outcome, report, as_json)
    _warn(outcome)
    _judge(outcome, min_success)


def _evaluate(plan: "RunPlan") -> "RunOutcome":
    from urlab.evaluation.policies import PolicyError, PolicyNotFound
    from urlab.evaluation.runs.runner import run_plan

    try:
        with client_errors_as_command_errors(plan.url or ""), stop_event() as stop, RunProgress(stderr()) as progress:
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
    _say_where(done, report)


def _say_where(done: "Run", report: Path | None) -> None:
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

"""`urlab eval run`: a policy on tasks, from start to report."""

import logging
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from urlab.cli.complaint import FAILED, WRONG_USE, CommandError
from urlab.cli.console import LogLevel, print_json, set_up_logging, stderr
from urlab.cli.evaluation import options as opt
from urlab.cli.evaluation import run_options as own
from urlab.cli.evaluation.drawing import check_drawing
from urlab.cli.evaluation.extra import FOR_A_SERVER, FOR_TASKS, need_packages
from urlab.cli.evaluation.places import check_file, check_folder
from urlab.cli.evaluation.planning import Asked, plan_of
from urlab.cli.evaluation.progress import RunProgress
from urlab.cli.evaluation.server_errors import told_plainly
from urlab.cli.evaluation.stop_event import stop_event
from urlab.cli.evaluation.tables import print_summary
from urlab.cli.options import AsJson, Log
from urlab.errors import UrlabError

if TYPE_CHECKING:
    from urlab.evaluation.report import Run
    from urlab.evaluation.runs.runner import RunOutcome
    from urlab.evaluation.settings import RunPlan

INTERRUPTED = 130
_MOST_TOLD = 3


def run(
    policy: own.Policy,
    policy_arg: own.PolicyArgs = None,
    tasks: own.Tasks = None,
    episodes: opt.Episodes = 10,
    seed: opt.Seed = 0,
    workers: own.Workers = None,
    cameras: own.Cameras = None,
    url: own.Url = None,
    token: opt.Token = None,
    results: opt.Results = opt.DEFAULT_RESULTS,
    run_id: opt.RunId = None,
    videos: own.VideoChoice = None,
    report: own.Report = None,
    min_success: own.MinSuccess = None,
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
    asked = Asked(
        policy, policy_arg or [], tasks, episodes, seed, workers, cameras, videos, results, run_id, url, token, report
    )
    with redirect_stdout(sys.stderr):  # a policy may print: stdout is for the results
        plan = plan_of(asked)
        if plan.url is None and plan.cameras:
            check_drawing()
        outcome = _carried_out(plan)
    _tell(outcome, report, as_json)
    _warn(outcome)
    _judge(outcome, min_success)


def _carried_out(plan: "RunPlan") -> "RunOutcome":
    from urlab.evaluation.policies import PolicyError, PolicyNotFound
    from urlab.evaluation.runs.runner import run_plan
    from urlab.evaluation.runs.server_process import ServerProcessError

    try:
        with told_plainly(plan.url or ""), stop_event() as stop, RunProgress(stderr()) as progress:
            return run_plan(plan, progress, stop)
    except PolicyNotFound as missing:
        raise CommandError(str(missing), WRONG_USE) from missing
    except (PolicyError, ServerProcessError) as failed:
        raise CommandError(str(failed)) from failed


def _tell(outcome: "RunOutcome", report: Path | None, as_json: bool) -> None:
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
    """What cost no result, and is missed later: films, files."""
    for complaint in outcome.complaints[-_MOST_TOLD:]:
        stderr().print(f"warning: {complaint}", markup=False, soft_wrap=True)
    more = len(outcome.complaints) - _MOST_TOLD
    if more > 0:
        stderr().print(f"warning: and {more} before these", markup=False, soft_wrap=True)


def _judge(outcome: "RunOutcome", min_success: float | None) -> None:
    """Whatever is wrong becomes the exit code, and a sentence."""
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
    told = cause is None or isinstance(cause, UrlabError) or logging.getLogger("urlab").isEnabledFor(logging.DEBUG)
    return "" if told else "; --log-level debug shows the traceback"


def _require(outcome: "RunOutcome", min_success: float) -> None:
    from urlab.evaluation.report import read_run, summarise

    rate = summarise(read_run(outcome.folder)).overall.rate
    if rate < min_success:
        raise CommandError(
            f"{100 * rate:.1f} % of the episodes succeeded; --min-success asks for {100 * min_success:g} %", FAILED
        )

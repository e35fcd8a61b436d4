"""A whole evaluation: a server if there is none, a policy for each worker, and what came out."""

import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from urlab.evaluation.client import EvalClient
from urlab.evaluation.client_errors import EvalClientError, ServerUnreachable
from urlab.evaluation.driver import Driver, EpisodeDone
from urlab.evaluation.job_status import at_work
from urlab.evaluation.kept_results import keep_result, remove_videos
from urlab.evaluation.policies import Policy
from urlab.evaluation.policies.registry import in_a_line
from urlab.evaluation.problems import BadJob
from urlab.evaluation.report.run_folder import RUN_INFO
from urlab.evaluation.results import RunFolder, new_run_id, write_json
from urlab.evaluation.run_info import describe, now, refuse_other_policy
from urlab.evaluation.run_plan import RunPlan
from urlab.evaluation.server_child import ServerChild
from urlab.evaluation.video_choice import Videos
from urlab.evaluation.worker_link import HttpWorker

STOP_GRACE_S = 10.0
"""How long a stop waits for policies that are thinking; what they think is not worth more."""

_LOOK_EVERY_S = 0.2
_COMPLAINTS_LIMIT_S = 10.0
_DYING_S = 2.0


class Watcher(Protocol):
    """Whoever looks on. Called on the thread of `run_plan`."""

    def begin(self, run_id: str, total: int, completed: int) -> None:
        """It starts; ``completed`` of ``total`` episodes are there from an earlier run of this name."""

    def episode(self, done: EpisodeDone) -> None:
        """An episode has ended."""


@dataclass
class RunOutcome:
    """What a run came to. ``problem`` is what ended it early, ``was_stopped`` whether somebody asked for that.

    ``complaints`` are about what went wrong and cost no result, such as films that could not be made.
    ``folder`` holds the results, those of earlier runs under the same name too; ``finished`` is new.
    """

    run_id: str
    folder: Path
    total: int = 0
    completed: int = 0
    finished: list[EpisodeDone] = field(default_factory=list)
    problem: Exception | None = None
    was_stopped: bool = False
    complaints: list[str] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        """Whether every episode of the job has a result."""
        return self.problem is None and self.completed + len(self.finished) >= self.total


@dataclass(frozen=True)
class _Server:
    url: str
    token: str | None
    child: ServerChild | None

    def client(self, worker: str = "0") -> EvalClient:
        return EvalClient(self.url, (worker,), token=self.token)


def run_plan(plan: RunPlan, watcher: Watcher, stop: threading.Event) -> RunOutcome:
    """Evaluate. What cannot even begin is raised; what goes wrong later is in the outcome, with all that was done.

    ``stop`` may be set by any thread or signal handler: what is done is kept.
    """
    if plan.run_id is not None:
        refuse_other_policy(RunFolder(plan.results, plan.run_id).path, plan)
    policy = plan.policy.make()
    with _server(plan) as (server, outcome):
        _count(server, outcome)
        watcher.begin(outcome.run_id, outcome.total, outcome.completed)
        known = {**describe(plan, outcome.run_id), "total_episodes": outcome.total}
        write_json(outcome.folder / RUN_INFO, known)
        _Drive(plan, server, outcome, watcher, stop).run(policy)
        outcome.complaints += _complaints(server)
    write_json(outcome.folder / RUN_INFO, {**known, "ended": now()})
    if plan.url is None and plan.videos is Videos.FAILURES:
        remove_videos(outcome.folder, [one for one in outcome.finished if one.success])
    return outcome


@contextmanager
def _server(plan: RunPlan) -> Iterator[tuple[_Server, RunOutcome]]:
    if plan.url is not None:
        yield _known_server(plan, plan.url)
        return
    run_id = plan.run_id or new_run_id()
    folder = RunFolder(plan.results, run_id).path
    with ServerChild(plan, run_id) as child:
        yield _Server(child.url, child.token, child), RunOutcome(run_id, folder)


def _known_server(plan: RunPlan, url: str) -> tuple[_Server, RunOutcome]:
    """A server that runs already. It gets a new job if the plan names tasks."""
    server = _Server(url, plan.token, None)
    client = server.client()
    if plan.tasks is not None:
        _refuse_to_interrupt(client.status())
        client.submit(list(plan.tasks), run_id=plan.run_id, episodes=plan.episodes, seed=plan.seed)
    run_id = str(client.status()["run_id"])
    if plan.run_id not in (None, run_id):
        raise BadJob(f"the server has the run {run_id!r}, not {plan.run_id!r}: with --tasks it begins another one")
    folder = RunFolder(plan.results, run_id).path
    refuse_other_policy(folder, plan)
    return server, RunOutcome(run_id, folder)


def _refuse_to_interrupt(status: dict[str, Any]) -> None:
    busy = at_work(status)
    if busy is not None:
        raise BadJob(f"{busy}: wait for it (urlab eval status), or end it with urlab eval submit --force")


def _count(server: _Server, outcome: RunOutcome) -> None:
    status = server.client().status()
    outcome.total, outcome.completed = int(status["total_episodes"]), int(status["completed_episodes"])


def _complaints(server: _Server) -> list[str]:
    """What the server noted; nothing if it cannot be asked any more."""
    try:
        with EvalClient(server.url, (), token=server.token, timeout_s=_COMPLAINTS_LIMIT_S) as client:
            return [str(one) for one in client.status().get("problems", [])]
    except EvalClientError:
        return []


class _Drive:
    """The threads of a run and the one that waits for them."""

    def __init__(
        self, plan: RunPlan, server: _Server, outcome: RunOutcome, watcher: Watcher, stop: threading.Event
    ) -> None:
        self._plan, self._server, self._outcome = plan, server, outcome
        self._watcher, self._stop = watcher, stop
        self._ending = threading.Event()
        self._news: queue.SimpleQueue[EpisodeDone | Exception | None] = queue.SimpleQueue()

    def run(self, first: Policy) -> None:
        """Until all workers are done; the first problem ends them all."""
        for place in range(self._plan.workers):
            policy = first if place == 0 else None
            threading.Thread(
                target=self._work, args=(str(place), policy), name=f"urlab-drive-{place}", daemon=True
            ).start()
        try:
            self._wait()
        except KeyboardInterrupt:  # whoever insists does not wait for policies, but gets what is done
            self._outcome.was_stopped = True
            self._ending.set()

    def _wait(self) -> None:
        working, patience_s = self._plan.workers, STOP_GRACE_S
        while working and patience_s > 0:
            working -= self._hear()
            if self._ending.is_set():
                patience_s -= _LOOK_EVERY_S
            elif self._stop.is_set():
                self._outcome.was_stopped = True
                self._ending.set()

    def _hear(self) -> int:
        """Wait a moment for news; how many workers have ended."""
        try:
            news = self._news.get(timeout=_LOOK_EVERY_S)
        except queue.Empty:
            return 0
        if isinstance(news, EpisodeDone):
            self._note(news)
            return 0
        if news is not None:
            self._fail(news)
        return 1

    def _note(self, done: EpisodeDone) -> None:
        self._outcome.finished.append(done)
        if self._plan.url is not None:
            keep_result(self._outcome.folder, done)
        self._watcher.episode(done)

    def _fail(self, problem: Exception) -> None:
        """Of several problems the first counts; after a stop none does."""
        if self._outcome.problem is None and not self._outcome.was_stopped:
            self._outcome.problem = self._cause(problem)
        self._ending.set()

    def _cause(self, problem: Exception) -> Exception:
        """A server of ours that has died explains more than the connection that broke."""
        try:
            if self._server.child is not None:
                self._server.child.check(_DYING_S if isinstance(problem, ServerUnreachable) else 0.0)
        except Exception as cause:  # noqa: BLE001 - it is kept, and told
            return cause
        return problem

    def _work(self, worker: str, policy: Policy | None) -> None:
        try:
            self._drive(worker, policy if policy is not None else self._plan.policy.make())
        except Exception as problem:  # noqa: BLE001 - it is kept, and told
            self._news.put(problem)
        else:
            self._news.put(None)

    def _drive(self, worker: str, policy: Policy) -> None:
        try:
            with HttpWorker(self._server.client(worker), worker) as link:
                Driver(link, policy, self._ending, self._news.put).drive()
        finally:
            self._close(policy)

    def _close(self, policy: Policy) -> None:
        """One that fails costs no result, and hides no problem that came before."""
        try:
            policy.close()
        except (Exception, SystemExit) as failed:  # noqa: BLE001 - it is kept, and told
            self._outcome.complaints.append(f"the policy's close() failed: {in_a_line(failed)}")

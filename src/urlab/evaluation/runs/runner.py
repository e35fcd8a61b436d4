"""A whole evaluation: a server if there is none, a policy for each worker, and what came out."""

import logging
import queue
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from urlab.child_process import UrlabProcess
from urlab.evaluation.episode_result import EpisodeResult
from urlab.evaluation.errors import BadJob
from urlab.evaluation.policies import Action, Observation, Policy, PolicyError
from urlab.evaluation.policies.base import optional_method
from urlab.evaluation.policies.registry import in_a_line
from urlab.evaluation.runs.client import (
    EvalClient,
    EvalClientError,
    ForeignServer,
    InvalidRequest,
    NotSendable,
    ServerUnreachable,
    WorkerTimedOut,
    running_job,
)
from urlab.evaluation.runs.plan import RunPlan, describe, now, refuse_other_policy
from urlab.evaluation.runs.results import RunFolder, new_run_id
from urlab.evaluation.settings import TOKEN_VARIABLE, VideoChoice

log = logging.getLogger("urlab.evaluation")

Reply = dict[str, Any]

SERVER_STOP_LIMIT_S = 150.0
"""Longer than the server itself gives its workers to write what they have."""

STOP_GRACE_S = 10.0
"""How long a stop waits for policies that are thinking; what they think is not worth more."""

_POLL_EVERY_S = 0.2
_COMPLAINTS_LIMIT_S = 10.0
_DYING_S = 2.0


class RunObserver(Protocol):
    """Gets to know how a run goes. Called on the thread of `run_plan`."""

    def begin(self, run_id: str, total: int, completed: int, solved: int) -> None:
        """It starts; ``completed`` of ``total`` episodes are there from before, ``solved`` of them successes."""

    def episode(self, result: EpisodeResult) -> None:
        """An episode has ended."""


@dataclass
class RunOutcome:
    """What a run came to. ``problem`` is what ended it early, ``was_stopped`` whether that was asked for.

    ``complaints`` are about what went wrong and cost no result, such as videos that could not be made.
    ``folder`` holds the results, those of earlier runs under the same name too; ``finished`` is new.
    """

    run_id: str
    folder: Path
    total: int = 0
    completed: int = 0
    finished: list[EpisodeResult] = field(default_factory=list)
    problem: Exception | None = None
    was_stopped: bool = False
    complaints: list[str] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        """Whether every episode of the job has a result."""
        return self.problem is None and self.completed + len(self.finished) >= self.total


class EvalServerProcess(UrlabProcess):
    """`urlab eval serve` on a free port with a secret token. Leaving the context ends it and keeps its results.

    It lives in a session of its own, so that Ctrl-C reaches the run alone, which then ends it in order. A run that dies
    in whatever way closes the child's stdin, and the child ends by itself.
    """

    def __init__(self, plan: RunPlan, run_id: str) -> None:
        self.token = secrets.token_urlsafe()
        super().__init__(
            "eval",
            "serve",
            *server_options(plan, run_id),
            environment={TOKEN_VARIABLE: self.token},
            keep_stdin=True,
            own_session=True,
        )
        self.url = str(self.ready["url"])

    def stop(self, limit_s: float = SERVER_STOP_LIMIT_S) -> None:
        """End it: SIGTERM, then SIGKILL after a time limit."""
        super().stop(limit_s)


def server_options(plan: RunPlan, run_id: str) -> list[str]:
    """The options of `urlab eval serve` for a plan."""
    options = ["--port", "0", "--run-id", run_id, "--end-with-stdin"]
    options += ["--one-job", "--tasks", ",".join(plan.tasks or ("all",)), "--episodes", str(plan.episodes)]
    options += ["--seed", str(plan.seed), "--workers", str(plan.workers), "--results", str(plan.results)]
    options += ["--cameras" if plan.cameras else "--no-cameras"]
    options += ["--videos" if plan.cameras and plan.videos is not VideoChoice.NONE else "--no-videos"]
    for file in plan.camera_files:
        options += ["--camera-config", str(file)]
    for camera, size in (plan.policy.cameras or {}).items():
        options += ["--draw", camera if size is None else f"{camera}={size[0]}x{size[1]}"]
    options += [] if plan.policy.depth else ["--no-depth"]
    options += [] if plan.live_folder is None else ["--live-folder", str(plan.live_folder)]
    options += [] if plan.ray is None else ["--ray", plan.ray]
    return options + (["--privileged"] if plan.policy.needs_privileged else [])


@dataclass(frozen=True)
class _Server:
    url: str
    token: str | None
    process: EvalServerProcess | None

    def client(self, worker: str = "0", run_id: str | None = None) -> EvalClient:
        return EvalClient(self.url, (worker,), token=self.token, run_id=run_id)


def run_plan(plan: RunPlan, observer: RunObserver, stop: threading.Event) -> RunOutcome:
    """Evaluate. What cannot even begin is raised; what goes wrong later is in the outcome, with all that was done.

    ``stop`` may be set by any thread or signal handler: what is done is kept.
    """
    if plan.run_id is not None:
        refuse_other_policy(RunFolder(plan.results, plan.run_id).path, plan)
    policy = plan.policy.make()
    with _server(plan) as (server, outcome):
        folder = RunFolder(plan.results, outcome.run_id)
        status = server.client().status()
        outcome.total, outcome.completed = int(status["total_episodes"]), int(status["completed_episodes"])
        observer.begin(outcome.run_id, outcome.total, outcome.completed, int(status.get("solved_episodes", 0)))
        if plan.url is not None and outcome.is_complete:
            outcome.complaints.append(f"run {outcome.run_id} was complete, and nothing was run: --tasks begins another")
        known = {**describe(plan, outcome.run_id), "total_episodes": outcome.total}
        folder.write_info(known)
        _PolicyThreads(plan, server, outcome, observer, stop).run(policy)
        outcome.complaints += _complaints(server)
    folder.write_info({**known, "ended": now()})
    if plan.url is None and plan.videos is VideoChoice.FAILURES:
        folder.remove_videos([one for one in outcome.finished if one.success])
    return outcome


@contextmanager
def _server(plan: RunPlan) -> Iterator[tuple[_Server, RunOutcome]]:
    if plan.url is not None:
        yield _known_server(plan, plan.url)
        return
    run_id = plan.run_id or new_run_id()
    folder = RunFolder(plan.results, run_id).path
    with EvalServerProcess(plan, run_id) as process:
        yield _Server(process.url, process.token, process), RunOutcome(run_id, folder)


def _known_server(plan: RunPlan, url: str) -> tuple[_Server, RunOutcome]:
    """A server that runs already. It gets a new job if the plan names tasks."""
    server = _Server(url, plan.token, None)
    client = server.client()
    if plan.tasks is not None:
        busy = running_job(client.status())
        if busy is not None:
            raise BadJob(f"{busy}: wait for it (urlab eval status), or end it with urlab eval submit --force")
        client.submit(list(plan.tasks), run_id=plan.run_id, episodes=plan.episodes, seed=plan.seed)
    run_id = str(client.status()["run_id"])
    if plan.run_id not in (None, run_id):
        raise BadJob(f"the server has the run {run_id!r}, not {plan.run_id!r}: with --tasks it begins another one")
    folder = RunFolder(plan.results, run_id).path
    refuse_other_policy(folder, plan)
    return server, RunOutcome(run_id, folder)


def _complaints(server: _Server) -> list[str]:
    """What the server noted; nothing if it cannot be asked any more."""
    try:
        with EvalClient(server.url, (), token=server.token, timeout_s=_COMPLAINTS_LIMIT_S) as client:
            return [str(one) for one in client.status().get("problems", [])]
    except EvalClientError:
        return []


class _PolicyThreads:
    """The threads of a run and the one that waits for them."""

    def __init__(
        self, plan: RunPlan, server: _Server, outcome: RunOutcome, observer: RunObserver, stop: threading.Event
    ) -> None:
        self._plan, self._server, self._outcome = plan, server, outcome
        self._observer, self._stop = observer, stop
        self._ending = threading.Event()
        self._failures = PolicyFailures(plan.max_policy_failures)
        self._news: queue.SimpleQueue[EpisodeResult | Exception | None] = queue.SimpleQueue()

    def run(self, first: Policy) -> None:
        """Until all workers are done; the first problem ends them all, a policy's failure only its episode."""
        for place in range(self._plan.workers):
            policy = first if place == 0 else None
            threading.Thread(
                target=self._work, args=(str(place), policy), name=f"urlab-drive-{place}", daemon=True
            ).start()
        try:
            self._wait()
        except KeyboardInterrupt:  # a second Ctrl-C does not wait for policies, and keeps what is done
            self._outcome.was_stopped = True
            self._ending.set()
        self._outcome.complaints += self._failures.in_words()
        if self._failures.are_all and self._outcome.problem is None and not self._outcome.was_stopped:
            self._outcome.problem = self._failures.last

    def _wait(self) -> None:
        working, patience_s = self._plan.workers, STOP_GRACE_S
        while working and patience_s > 0:
            working -= self._next_news()
            if self._ending.is_set():
                patience_s -= _POLL_EVERY_S
            elif self._stop.is_set():
                self._outcome.was_stopped = True
                self._ending.set()

    def _next_news(self) -> int:
        """Wait a moment for news; how many workers have ended."""
        try:
            news = self._news.get(timeout=_POLL_EVERY_S)
        except queue.Empty:
            return 0
        if isinstance(news, EpisodeResult):
            self._note(news)
            return 0
        if news is not None:
            self._fail(news)
        return 1

    def _note(self, result: EpisodeResult) -> None:
        self._outcome.finished.append(result)
        if self._plan.url is not None:
            RunFolder(self._plan.results, self._outcome.run_id).keep_result(result)
        self._observer.episode(result)

    def _fail(self, problem: Exception) -> None:
        """Of several problems the first counts; after a stop none does."""
        if self._outcome.problem is None and not self._outcome.was_stopped:
            self._outcome.problem = self._cause(problem)
        self._ending.set()

    def _cause(self, problem: Exception) -> Exception:
        """A server of ours that has died explains more than the connection that broke."""
        try:
            if self._server.process is not None:
                self._server.process.check(_DYING_S if isinstance(problem, ServerUnreachable) else 0.0)
        except Exception as cause:  # noqa: BLE001 - it is kept, and reported
            return cause
        return problem

    def _work(self, worker: str, policy: Policy | None) -> None:
        try:
            self._drive(worker, policy if policy is not None else self._plan.policy.make())
        except Exception as problem:  # noqa: BLE001 - it is kept, and reported
            self._news.put(problem)
        else:
            self._news.put(None)

    def _drive(self, worker: str, policy: Policy) -> None:
        try:
            client = self._server.client(worker, self._outcome.run_id)
            Driver(client, policy, self._ending, self._news.put, self._failures).drive()
        finally:
            self._close(policy)

    def _close(self, policy: Policy) -> None:
        """One that fails costs no result, and hides no problem that came before."""
        try:
            optional_method(policy, "close")()
        except (Exception, SystemExit) as failed:  # noqa: BLE001 - it is kept, and reported
            self._outcome.complaints.append(f"the policy's close() failed: {in_a_line(failed)}")


class PolicyFailures:
    """The episodes of a run that its policy failed in. ``most`` of them, one after the other, end the run.

    Shared by the threads of a run.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._in_a_row = self._count = self._others = 0
        self.last: PolicyError | None = None

    def add(self, failure: PolicyError) -> None:
        """An episode failed by its policy; PolicyError if that was one too many in a row."""
        with self._lock:
            self._count += 1
            self._in_a_row += 1
            self.last = failure
            if self._in_a_row >= self._most:
                raise PolicyError(
                    f"the policy failed in {self._in_a_row} episodes one after the other, the last time: {failure}; "
                    "--max-policy-failures allows more"
                ) from failure

    def end_row(self) -> None:
        """An episode ended in another way."""
        with self._lock:
            self._others += 1
            self._in_a_row = 0

    @property
    def are_all(self) -> bool:
        """Whether every episode that has ended failed by its policy."""
        return self._count > 0 and self._others == 0

    def in_words(self) -> list[str]:
        """A sentence, if there were any."""
        if not self._count:
            return []
        return [f"episodes that the policy failed in, and that count as failed: {self._count}; the last: {self.last}"]


class Driver:
    """One policy at one worker of a server, episode after episode until the job is done or ``stop`` is set. One thread.

    ``client`` is the driver's own; in the end it gives an unfinished episode back. ``on_result`` gets the result of
    every episode. An episode that the policy fails in ends as failed; ``failures`` says when there were too many.
    """

    def __init__(
        self,
        client: EvalClient,
        policy: Policy,
        stop: threading.Event,
        on_result: Callable[[EpisodeResult], None],
        failures: PolicyFailures,
    ) -> None:
        (self._worker_id,) = client.worker_ids
        self._client, self._policy, self._stop, self._on_result = client, policy, stop, on_result
        self._failures = failures

    def drive(self) -> None:
        """PolicyError when the policy fails again and again; what the client raises is passed on."""
        with self._client:
            observation: Observation | None = self._reset()["obs"]
            while observation is not None and not self._stop.is_set():
                reply = self._next(observation)
                observation = reply["obs"]

    def _next(self, observation: Observation) -> Reply:
        """Ask the policy and carry out what it says."""
        try:
            if observation["reset"]:
                self._call(optional_method(self._policy, "reset"), observation)
            reply = self._step(self._actions(observation))
        except PolicyError as failure:
            return self._give_up(failure)
        if reply.get("episode_result"):
            self._failures.end_row()
            self._on_result(EpisodeResult.from_reply(reply["episode_result"]))
        return reply

    def _give_up(self, failure: PolicyError) -> Reply:
        """End the episode as failed; the failure itself is raised if the server cannot do that."""
        log.debug("the policy failed", exc_info=failure)
        try:
            reply = self._client.give_up(str(failure))[self._worker_id]
        except (ForeignServer, InvalidRequest):
            raise failure from None
        if reply.get("episode_result"):
            self._on_result(EpisodeResult.from_reply(reply["episode_result"]))
        self._failures.add(failure)
        return reply

    def _reset(self) -> Reply:
        return self._client.reset()[self._worker_id]

    def _step(self, actions: list[Action]) -> Reply:
        """One step, or a chunk. PolicyError if the server refuses it; an episode that took too long begins again."""
        try:
            if len(actions) == 1:
                return self._client.step({self._worker_id: actions[0]})[self._worker_id]
            return self._client.step_chunk([{self._worker_id: one} for one in actions])[self._worker_id]
        except (InvalidRequest, NotSendable) as refused:
            said = "" if isinstance(refused, NotSendable) else "the server refused the policy's action: "
            raise PolicyError(f"{said}{refused.message}") from refused
        except WorkerTimedOut:
            return self._reset()

    def _actions(self, observation: Observation) -> list[Action]:
        made: object = self._call(self._policy.act, observation)
        actions: list[Any] = made if isinstance(made, list) else [made]
        if actions and all(isinstance(one, dict) for one in actions):
            return actions
        raise PolicyError(
            f"the policy's act() returned {_kind(made)} {_where(observation)}; an action is a dict such as "
            "{'control_type': 'joint_position', 'action': [...]}, a chunk is a list of them"
        )

    def _call(self, method: Callable[[Observation], object], observation: Observation) -> object:
        try:
            return method(observation)
        except PolicyError:
            raise
        except (Exception, SystemExit) as failed:
            name = getattr(method, "__name__", "call")
            raise PolicyError(f"the policy's {name}() failed {_where(observation)}: {in_a_line(failed)}") from failed


def _where(observation: Observation) -> str:
    return f"at step {observation.get('timestep')} of {observation.get('episode_id')}"


def _kind(made: object) -> str:
    if isinstance(made, list):
        return f"a list of {type(made[0]).__name__}" if made else "an empty list"
    return "nothing" if made is None else f"a {type(made).__name__}"

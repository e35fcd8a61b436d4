"""One worker of a server, for one thread."""

from typing import Self

from urlab.evaluation.client import EvalClient
from urlab.evaluation.client_errors import BadRequest, WorkerTimedOut
from urlab.evaluation.driver import Reply
from urlab.evaluation.policies import Action, PolicyError


class HttpWorker:
    """A worker through a client of its own. Leaving the context gives its unfinished episode back."""

    def __init__(self, client: EvalClient, worker_id: str) -> None:
        self._client, self._worker_id = client, worker_id

    def reset(self) -> Reply:
        """Begin the next episode."""
        return self._client.reset()[self._worker_id]

    def act(self, actions: list[Action]) -> Reply:
        """One step, or a chunk. PolicyError if the server refuses it; an episode that took too long begins again."""
        try:
            return self._act(actions)
        except BadRequest as refused:
            raise PolicyError(f"the server refused the policy's action: {refused.message}") from refused
        except WorkerTimedOut:
            return self.reset()

    def _act(self, actions: list[Action]) -> Reply:
        if len(actions) == 1:
            return self._client.step({self._worker_id: actions[0]})[self._worker_id]
        return self._client.step_chunk([{self._worker_id: one} for one in actions])[self._worker_id]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self._client.__exit__(*failure)

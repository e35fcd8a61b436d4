"""Workers that have run out of episodes before the other workers of their client.

Stock clients stop as soon as their first worker has no observation, and leave the others' episodes unfinished. So until
all are done a worker that waits is told something to look at: what another one sees, under an id of its own. What it is
then told to do is ignored.
"""

from typing import Any

from urlab.evaluation.worker_pool import Replies
from urlab.evaluation.worker_slot import Reply


class WaitingRoom:
    """Remembers whom each waiting worker looks at: a policy should not see now this robot, now that."""

    def __init__(self) -> None:
        self._shown: dict[str, str] = {}

    def show(self, replies: Replies, run_name: str, *, is_first: bool = False) -> Replies:
        """The replies for a stock client; ``is_first`` after a reset. Once nobody is busy they are what they were."""
        busy = [one for one, reply in replies.items() if reply["obs"] is not None]
        for one in busy or replies:
            self._shown.pop(one, None)
        if not busy:
            return replies
        return {
            one: reply if one in busy else self._waiting(one, reply, replies, busy, run_name, is_first)
            for one, reply in replies.items()
        }

    def _waiting(
        self, worker: str, reply: Reply, replies: Replies, busy: list[str], run_name: str, is_first: bool
    ) -> Reply:
        """With ``reset`` when what is shown changes, and once at the start: clients end the episode that was."""
        before = self._shown.get(worker)
        shown = self._shown[worker] = before if before in busy else busy[0]
        seen: dict[str, Any] = replies[shown]["obs"]
        is_new = is_first or shown != before or seen["reset"]
        return {**reply, "obs": {**seen, "episode_id": f"{run_name}/waiting/{worker}", "reset": is_new}, "metric": None}

"""Workers that have run out of episodes before the other workers of their client.

Stock clients stop as soon as their first worker has no observation, and leave the others' episodes unfinished. So until
all are done a worker that waits is told something to look at: what another one sees, under an id of its own. What it is
then told to do is ignored.
"""

from typing import Any

from urlab.evaluation.worker_pool import Replies
from urlab.evaluation.worker_slot import Reply


def keep_waiting(replies: Replies, run_name: str, *, is_first: bool = False) -> Replies:
    """The replies for a stock client; ``is_first`` after a reset. Once nobody is busy they are what they were."""
    seen = next((reply["obs"] for reply in replies.values() if reply["obs"] is not None), None)
    if seen is None:
        return replies
    return {
        one: reply if reply["obs"] is not None else _waiting(reply, seen, f"{run_name}/waiting/{one}", is_first)
        for one, reply in replies.items()
    }


def _waiting(reply: Reply, seen: dict[str, Any], episode_id: str, is_first: bool) -> Reply:
    """With ``reset`` once, so that clients end the episode that was."""
    is_new = is_first or reply["episode_result"] is not None
    return {**reply, "obs": {**seen, "episode_id": episode_id, "reset": is_new, "timestep": 0}, "metric": None}

"""Which generation of clients speaks for a worker: the generations count a subgoal as reached at different times.

Clients of spec 004's generation call /create_workers before they reset; those of the next do so too, but after
/load_config; later ones do neither.
"""

from collections.abc import Iterable
from enum import Enum

from urlab.evaluation.goals.scoring import HOLD_STEPS_P2, HOLD_STEPS_P4

_MOST_CREATED = 1000


class Generation(Enum):
    """The value is how many control steps a subgoal must hold."""

    SPEC_004 = HOLD_STEPS_P2
    LATER = HOLD_STEPS_P4


class Generations:
    """What is known of the clients so far. Event loop only."""

    def __init__(self) -> None:
        self._created: set[str] = set()
        self._has_loaded_config = False

    def created(self, worker_ids: Iterable[str]) -> None:
        """These workers were asked for by /create_workers; of names without end only so many are kept."""
        if self._has_loaded_config:
            return
        self._created.update(worker_ids)
        while len(self._created) > _MOST_CREATED:
            self._created.pop()

    def forget(self, worker_ids: Iterable[str]) -> None:
        """These workers were killed: whoever resets them next is judged anew."""
        self._created.difference_update(worker_ids)

    def forget_all(self) -> None:
        """Another job: all workers have ended, and so have the announcements of those that never came."""
        self._created.clear()
        self._has_loaded_config = False

    def config_loaded(self) -> None:
        """The job was chosen by /load_config: whoever announces workers now is not of the first generation."""
        self._has_loaded_config = True

    def of(self, worker_id: str) -> Generation:
        """The generation of the client that drives a worker."""
        return Generation.SPEC_004 if worker_id in self._created else Generation.LATER

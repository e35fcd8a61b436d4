"""Which generation of clients a worker belongs to, and whether its client is a new one, by what its requests show.

HTTP requests do not say who sends them, so this is told by signs. A client of the first generation announces its
workers with /create_workers; so does one of the second, which also knows /load_config and ``base_motion``. Later ones
look at /docs before they reset, or use what the first ones do not know: /start_new_job, /reset_result, /step_chunk,
``base_motion`` and ``is_rel``. A client that shows nothing of all this is taken for one of the first generation.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from urlab.evaluation.settings import FIRST_CLIENTS, LATER_CLIENTS, OWN_CLIENTS, SECOND_CLIENTS, ClientGeneration

_LATER_KEYS = ("is_rel", "base_motion")
_MOST_REMEMBERED = 1000


class Caller(NamedTuple):
    """Who sends a request: the host it comes from, whether it is our own client, and the run that it means."""

    host: str
    is_own: bool = False
    run_id: str | None = None


class ClientSigns:
    """The signs that clients have given, by worker and by host. Names without end are not all kept.

    /docs and the way a job was started say nothing of single workers: they count for every worker that was not
    announced, /docs for those of the same host.
    """

    def __init__(self) -> None:
        self._job: ClientGeneration | None = None
        self._announced: dict[str, bool] = {}
        self._visits: dict[str, bool] = {}
        """Host -> whether the run was complete when it last looked at /docs; workers likewise when announced."""
        self._later: set[str] = set()
        self._took_part: set[str] = set()

    def generation(self, worker_id: str, caller: Caller) -> ClientGeneration:
        """Of the client that sends this request for the worker."""
        if caller.is_own:
            return OWN_CLIENTS
        if self._job is SECOND_CLIENTS:
            return SECOND_CLIENTS
        if worker_id in self._announced:
            return SECOND_CLIENTS if worker_id in self._later else FIRST_CLIENTS
        is_later = worker_id in self._later or self._job is LATER_CLIENTS or caller.host in self._visits
        return LATER_CLIENTS if is_later else FIRST_CLIENTS

    def announce(self, worker_ids: Iterable[str], *, is_complete: bool) -> None:
        """/create_workers; ``is_complete`` is whether the run was."""
        self._announced |= dict.fromkeys(worker_ids, is_complete)
        while len(self._announced) > _MOST_REMEMBERED:
            self._announced.pop(next(iter(self._announced)))

    def visit(self, host: str, *, is_complete: bool) -> None:
        """GET /docs."""
        self._visits[host] = is_complete
        while len(self._visits) > _MOST_REMEMBERED:
            self._visits.pop(next(iter(self._visits)))

    def show_later(self, worker_ids: Iterable[str]) -> None:
        """These workers were used in a way that the first generation does not know."""
        self._later.update(worker_ids)

    def look_at(self, actions: Mapping[str, Sequence[object]]) -> None:
        """The actions of a request, by worker."""
        for worker_id, raws in actions.items():
            if worker_id not in self._later and any(
                key in raw for raw in raws if isinstance(raw, Mapping) for key in _LATER_KEYS
            ):
                self._later.add(worker_id)

    def take_part(self, worker_ids: Iterable[str]) -> None:
        """These workers were reset for the run."""
        self._took_part.update(worker_ids)

    def is_new_client(self, worker_ids: Sequence[str], existing: Sequence[str], caller: Caller) -> bool:
        """Whether a reset after the end of the run comes from a client that was not there before it.

        It is new if it has announced itself since. Workers that still exist are those of a client that asks again for
        its results. One that announced itself before the end and never had a worker comes too late for this run.
        """
        signs = [self._announced.get(one) for one in worker_ids] + [self._visits.get(caller.host)]
        if True in signs:
            return True
        if any(one in existing for one in worker_ids):
            return False
        return False not in signs or any(one in self._took_part for one in worker_ids)

    def forget(self, worker_ids: Iterable[str]) -> None:
        """These workers were killed: the next client may be another one."""
        for one in worker_ids:
            self._announced.pop(one, None)
            self._later.discard(one)

    def begin_run(self) -> None:
        """Another run of the server's own tasks: clients that have announced themselves are there before its end."""
        self._announced = dict.fromkeys(self._announced, False)
        self._visits = dict.fromkeys(self._visits, False)
        self._took_part.clear()

    def begin_job(self, generation: ClientGeneration) -> None:
        """Another job, started in the way of that generation; announcements before it were for the old one."""
        self._job = generation
        self._announced.clear()
        self._later.clear()
        self.begin_run()

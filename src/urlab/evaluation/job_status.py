"""What a server's status says to somebody who wants to give it another job."""

from collections.abc import Mapping
from typing import Any


def at_work(status: Mapping[str, Any]) -> str | None:
    """A sentence on the run that another job would end; None if nobody is at work."""
    workers = status["active_workers"]
    if status["status"] != "running" or not workers:
        return None
    return (
        f"run {status['run_id']} is running with {len(workers)} workers, "
        f"{status['completed_episodes']} of {status['total_episodes']} episodes done"
    )

"""Domains: Cyclone allows one of each number in a process, so backends share them."""

import threading
from dataclasses import dataclass

from urlab.ros2.dds.library import DOMAIN_EXISTS, check, lib


@dataclass
class _Shared:
    handle: int | None
    users: int


_lock = threading.Lock()
_shared: dict[int, _Shared] = {}


def join_domain(number: int, settings: str) -> None:
    """Make sure that the domain exists. The settings count for whoever comes first in this process."""
    with _lock:
        shared = _shared.get(number)
        if shared is None:
            shared = _shared[number] = _Shared(_create(number, settings), 0)
        shared.users += 1


def leave_domain(number: int) -> None:
    """Give it up; the last one out ends it, and its threads."""
    with _lock:
        shared = _shared[number]
        shared.users -= 1
        if shared.users == 0:
            del _shared[number]
            if shared.handle is not None:
                lib.dds_delete(shared.handle)


def _create(number: int, settings: str) -> int | None:
    handle = lib.dds_create_domain(number, settings.encode())
    if handle == DOMAIN_EXISTS:
        return None
    return check(handle, f"open domain {number} with the settings {settings}")

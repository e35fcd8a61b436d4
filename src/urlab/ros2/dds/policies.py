"""Qualities of service, in the form that the C library wants."""

import ctypes as ct
from collections.abc import Iterator
from contextlib import contextmanager

from urlab.ros2.dds.library import lib
from urlab.ros2.qos import Qos

MAX_BLOCKING_NS = 5_000_000
"""How long a write may wait for readers that do not keep up. With our keep-last histories it never does: what they did
not acknowledge is dropped, the oldest first."""

_BEST_EFFORT, _RELIABLE = 0, 1
_VOLATILE, _TRANSIENT_LOCAL = 0, 1
_KEEP_LAST = 0
_UNLIMITED = -1
_XCDR1 = 0


@contextmanager
def endpoint_policies(qos: Qos, user_data: str) -> Iterator[int]:
    """Those of a reader or writer, as rmw has them: keep-last, plain CDR, never disposed; user data for the graph."""
    with _policies(user_data) as policies:
        lib.dds_qset_reliability(policies, _RELIABLE if qos.reliable else _BEST_EFFORT, MAX_BLOCKING_NS)
        lib.dds_qset_durability(policies, _TRANSIENT_LOCAL if qos.transient_local else _VOLATILE)
        lib.dds_qset_history(policies, _KEEP_LAST, qos.depth)
        if qos.transient_local:
            limits = (_UNLIMITED, _UNLIMITED, _UNLIMITED)
            lib.dds_qset_durability_service(policies, 0, _KEEP_LAST, qos.depth, *limits)
        lib.dds_qset_data_representation(policies, 1, (ct.c_int16 * 1)(_XCDR1))
        lib.dds_qset_writer_data_lifecycle(policies, False)
        yield policies


@contextmanager
def participant_policies(user_data: str) -> Iterator[int]:
    """Those of a participant."""
    with _policies(user_data) as policies:
        yield policies


@contextmanager
def _policies(user_data: str) -> Iterator[int]:
    policies = lib.dds_create_qos()
    try:
        data = user_data.encode()
        lib.dds_qset_userdata(policies, data, len(data))
        yield policies
    finally:
        lib.dds_delete_qos(policies)

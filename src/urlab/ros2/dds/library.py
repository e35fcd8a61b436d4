"""The functions of Cyclone DDS's C library that the backend calls, with their types.

The C library is the one inside the wheel ``cyclonedds``, of which the extra ``ros2`` pins 11.x (``>=11,<12``). All
functions are in its installed headers, but ``ddsi_serdata_*``, by which bytes go in and out as they are, is not a
stable interface: it may change with any version. Widen the pin only after the tests against another vendor's DDS
(``tests/urlab/ros2/test_dds_*.py``) have passed with the new one.

Every call lets other Python threads run. Handles of entities are ints, negative ones are errors (`check`).
"""

import ctypes as ct
from typing import Any, Final

from urlab.ros2.backend import BackendError

try:
    from cyclonedds.internal import load_cyclonedds
except ImportError as missing:
    raise ImportError("ROS 2 without ROS needs cyclonedds: pip install 'urlab-headless[ros2]'") from missing

ANY_STATE: Final = 0x7F
FOREVER_NS: Final = 2**63 - 1
SERDATA_OF_A_SAMPLE: Final = 2
TIMED_OUT: Final = -10
DOMAIN_EXISTS: Final = -4


class Iovec(ct.Structure):
    """A piece of memory."""

    _fields_ = [("base", ct.c_void_p), ("length", ct.c_size_t)]


class Guid(ct.Structure):
    """What identifies an entity in the whole graph."""

    _fields_ = [("value", ct.c_uint8 * 16)]


class SampleInfo(ct.Structure):
    """What comes with a sample."""

    _fields_ = [
        ("sample_state", ct.c_uint),
        ("view_state", ct.c_uint),
        ("instance_state", ct.c_uint),
        ("valid_data", ct.c_bool),
        ("source_timestamp", ct.c_int64),
        ("instance_handle", ct.c_uint64),
        ("publication_handle", ct.c_uint64),
        ("disposed_generation_count", ct.c_uint32),
        ("no_writers_generation_count", ct.c_uint32),
        ("sample_rank", ct.c_uint32),
        ("generation_rank", ct.c_uint32),
        ("absolute_generation_rank", ct.c_uint32),
    ]


class MatchedStatus(ct.Structure):
    """How many readers a writer has met, and has now."""

    _fields_ = [
        ("total_count", ct.c_uint32),
        ("total_count_change", ct.c_int32),
        ("current_count", ct.c_uint32),
        ("current_count_change", ct.c_int32),
        ("last_subscription_handle", ct.c_uint64),
    ]


class EndpointData(ct.Structure):
    """What discovery found out about a reader or writer."""

    _fields_ = [
        ("key", Guid),
        ("participant_key", Guid),
        ("participant_instance_handle", ct.c_uint64),
        ("topic_name", ct.c_char_p),
        ("type_name", ct.c_char_p),
        ("qos", ct.c_void_p),
    ]


class _TypeMeta(ct.Structure):
    _fields_ = [("data", ct.c_void_p), ("size", ct.c_uint32)]


class TopicDescriptor(ct.Structure):
    """What the C library knows of a topic's type."""

    _fields_ = [
        ("size", ct.c_uint32),
        ("align", ct.c_uint32),
        ("flagset", ct.c_uint32),
        ("nkeys", ct.c_uint32),
        ("type_name", ct.c_char_p),
        ("keys", ct.c_void_p),
        ("nops", ct.c_uint32),
        ("ops", ct.POINTER(ct.c_uint32)),
        ("meta", ct.c_char_p),
        ("type_information", _TypeMeta),
        ("type_mapping", _TypeMeta),
        ("restrict_data_representation", ct.c_uint32),
    ]


_ENTITY = _CODE = ct.c_int32
_HANDLE = ct.c_uint64
_DURATION = ct.c_int64
_PTR = ct.c_void_p
_U32 = ct.c_uint32
_INT = ct.c_int
_SIZE = ct.c_size_t
_TEXT = ct.c_char_p

_SIGNATURES: Final[dict[str, tuple[Any, ...]]] = {
    # name: (result, argument, argument ...)
    "dds_strretcode": (_TEXT, _CODE),
    "dds_free": (None, _PTR),
    "dds_delete": (_CODE, _ENTITY),
    "dds_create_domain": (_ENTITY, _U32, _TEXT),
    "dds_create_participant": (_ENTITY, _U32, _PTR, _PTR),
    "dds_create_topic": (_ENTITY, _ENTITY, ct.POINTER(TopicDescriptor), _TEXT, _PTR, _PTR),
    "dds_create_writer": (_ENTITY, _ENTITY, _ENTITY, _PTR, _PTR),
    "dds_create_reader": (_ENTITY, _ENTITY, _ENTITY, _PTR, _PTR),
    "dds_create_readcondition": (_ENTITY, _ENTITY, _U32),
    "dds_create_guardcondition": (_ENTITY, _ENTITY),
    "dds_set_guardcondition": (_CODE, _ENTITY, ct.c_bool),
    "dds_create_waitset": (_ENTITY, _ENTITY),
    "dds_waitset_attach": (_CODE, _ENTITY, _ENTITY, ct.c_ssize_t),
    "dds_waitset_detach": (_CODE, _ENTITY, _ENTITY),
    "dds_waitset_wait": (_CODE, _ENTITY, ct.POINTER(ct.c_ssize_t), _SIZE, _DURATION),
    "dds_get_guid": (_CODE, _ENTITY, ct.POINTER(Guid)),
    "dds_get_publication_matched_status": (_CODE, _ENTITY, ct.POINTER(MatchedStatus)),
    "dds_get_matched_subscriptions": (_CODE, _ENTITY, ct.POINTER(_HANDLE), _SIZE),
    "dds_get_matched_subscription_data": (ct.POINTER(EndpointData), _ENTITY, _HANDLE),
    "dds_get_matched_publication_data": (ct.POINTER(EndpointData), _ENTITY, _HANDLE),
    "dds_builtintopic_free_endpoint": (None, ct.POINTER(EndpointData)),
    "dds_get_entity_sertype": (_CODE, _ENTITY, ct.POINTER(_PTR)),
    "dds_writecdr": (_CODE, _ENTITY, _PTR),
    "dds_takecdr": (_CODE, _ENTITY, ct.POINTER(_PTR), _U32, ct.POINTER(SampleInfo), _U32),
    "ddsi_serdata_from_ser_iov": (_PTR, _PTR, _INT, _SIZE, ct.POINTER(Iovec), _SIZE),
    "ddsi_serdata_size": (_U32, _PTR),
    "ddsi_serdata_to_ser_ref": (_PTR, _PTR, _SIZE, _SIZE, ct.POINTER(Iovec)),
    "ddsi_serdata_to_ser_unref": (None, _PTR, ct.POINTER(Iovec)),
    "ddsi_serdata_unref": (None, _PTR),
    "dds_create_qos": (_PTR,),
    "dds_delete_qos": (None, _PTR),
    "dds_qset_userdata": (None, _PTR, _PTR, _SIZE),
    "dds_qget_userdata": (ct.c_bool, _PTR, ct.POINTER(_PTR), ct.POINTER(_SIZE)),
    "dds_qset_reliability": (None, _PTR, _INT, _DURATION),
    "dds_qset_durability": (None, _PTR, _INT),
    "dds_qset_durability_service": (None, _PTR, _DURATION, _INT, ct.c_int32, ct.c_int32, ct.c_int32, ct.c_int32),
    "dds_qset_history": (None, _PTR, _INT, ct.c_int32),
    "dds_qset_data_representation": (None, _PTR, _U32, ct.POINTER(ct.c_int16)),
    "dds_qset_writer_data_lifecycle": (None, _PTR, ct.c_bool),
}


def _open() -> Any:
    library = load_cyclonedds()
    for name, (result, *arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


lib: Final = _open()


def check(code: int, what: str) -> int:
    """That handle or count, unless it is an error: then `BackendError` with what was tried."""
    if code < 0:
        raise BackendError(f"DDS could not {what}: {lib.dds_strretcode(code).decode()}")
    return code

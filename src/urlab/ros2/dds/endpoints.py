"""Readers and writers of bytes: topics whose type is only a name, their qualities of service, their user data.

To the C library a sample is a structure whose only member is one octet. Every CDR payload begins like one, so every
payload passes, and what follows the octet is kept as it is. No type information goes out with the endpoints: two
implementations would compare it, and refuse to talk over a difference in how they describe the same ROS type. Without
it they compare the name, as ROS intends. One thing is lost: a payload from a big-endian machine is not turned round.
ROS has no such machines.

What endpoints say beyond DDS are ``key=value;`` pairs that ROS puts into their user data.
"""

import ctypes as ct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from urlab.ros2 import messages
from urlab.ros2.dds.library import (
    ANY_STATE,
    SERDATA_OF_A_SAMPLE,
    TIMED_OUT,
    Guid,
    Iovec,
    MatchedStatus,
    SampleInfo,
    TopicDescriptor,
    check,
    lib,
)
from urlab.ros2.names import type_to_dds
from urlab.ros2.qos import Qos

MAX_BLOCKING_NS = 5_000_000
"""How long a write may wait for readers that do not keep up. With our keep-last histories it never does: what they did
not acknowledge is dropped, the oldest first."""

_BEST_EFFORT, _RELIABLE = 0, 1
_VOLATILE, _TRANSIENT_LOCAL = 0, 1
_KEEP_LAST = 0
_UNLIMITED = -1
_XCDR1 = 0

_MEMBER, _OCTET, _END = 1 << 24, 1 << 16, 0
_OPS: Final = (ct.c_uint32 * 3)(_MEMBER | _OCTET, 0, _END)
_RESTRICT_REPRESENTATION = 1 << 7
_ONLY_XCDR1 = 1 << 0

_PADDING = ct.create_string_buffer(4)
_AT_ONCE = 32


class DdsWriter:
    """A DDS writer of CDR payloads; see `urlab.ros2.backend.Publisher`. ``withdrawn`` is called once it is closed."""

    withdrawn: Callable[[], object] = staticmethod(lambda: None)

    def __init__(self, participant: int, dds_topic: str, type_name: str, qos: Qos, user_data: str = "") -> None:
        self._topic = dds_topic
        topic = _create_raw_topic(participant, dds_topic, type_to_dds(type_name))
        with _endpoint_policies(qos, user_data + _type_user_data(type_name)) as policies:
            self.handle = check(lib.dds_create_writer(participant, topic, policies, None), f"write {dds_topic}")
        lib.dds_delete(topic)
        self.guid = guid_of(self.handle)
        self._type = ct.c_void_p()
        check(lib.dds_get_entity_sertype(self.handle, ct.byref(self._type)), f"read the type of {dds_topic}")
        self._lock = threading.Lock()
        self._open = True

    def publish(self, *pieces: bytes | memoryview) -> None:
        """Send one payload, given in one piece or more; its first 4 bytes are the CDR header. Nothing once closed.

        A reliable reader that stalls loses the oldest ones; it never makes us wait.
        """
        with self._lock:
            if self._open:
                self._write(pieces)

    @property
    def subscribers(self) -> int:
        """How many readers are matched now."""
        status = MatchedStatus()
        with self._lock:
            if not self._open:
                return 0
            check(
                lib.dds_get_publication_matched_status(self.handle, ct.byref(status)), f"count {self._topic}'s readers"
            )
        return int(status.current_count)

    def close(self) -> None:
        """Withdraw it, once."""
        with self._lock:
            was_open, self._open = self._open, False
            if was_open:
                lib.dds_delete(self.handle)
        if was_open:
            self.withdrawn()

    def _write(self, pieces: tuple[bytes | memoryview, ...]) -> None:
        count = sum(len(piece) for piece in pieces)
        iovecs = (Iovec * (len(pieces) + 1))()
        for iovec, piece in zip(iovecs, pieces, strict=False):
            iovec.base, iovec.length = np.frombuffer(piece, np.uint8).ctypes.data, len(piece)
        iovecs[-1].base, iovecs[-1].length = ct.addressof(_PADDING), -count % 4
        total = count + -count % 4
        serdata = lib.ddsi_serdata_from_ser_iov(self._type, SERDATA_OF_A_SAMPLE, len(iovecs), iovecs, total)
        if not serdata:
            raise ValueError(f"{count} bytes for {self._topic} that are not a CDR message: {pieces[0][:8].hex()} ...")
        code = lib.dds_writecdr(self.handle, serdata)
        if code != TIMED_OUT:
            check(code, f"write {self._topic}")


class DdsReader:
    """A DDS reader of CDR payloads. One thread takes; any thread may close."""

    def __init__(self, participant: int, dds_topic: str, type_name: str, qos: Qos, user_data: str = "") -> None:
        topic = _create_raw_topic(participant, dds_topic, type_to_dds(type_name))
        with _endpoint_policies(qos, user_data + _type_user_data(type_name)) as policies:
            self.handle = check(lib.dds_create_reader(participant, topic, policies, None), f"read {dds_topic}")
        lib.dds_delete(topic)
        self.guid = guid_of(self.handle)
        self.condition = check(lib.dds_create_readcondition(self.handle, ANY_STATE), f"wait for {dds_topic}")
        """What a waitset waits for: something to take."""

    def take(self) -> Iterator[tuple[bytes, int]]:
        """Every payload that has arrived, with the handle of its writer; each is given once."""
        samples, infos = (ct.c_void_p * _AT_ONCE)(), (SampleInfo * _AT_ONCE)()
        count = _AT_ONCE
        while count == _AT_ONCE:
            count = max(0, lib.dds_takecdr(self.handle, samples, _AT_ONCE, infos, ANY_STATE))
            taken = [_payload(sample) for sample in samples[:count] if sample]
            yield from ((taken[i], infos[i].publication_handle) for i in range(count) if infos[i].valid_data)

    def close(self) -> None:
        """Withdraw it, once."""
        lib.dds_delete(self.handle)


def _payload(serdata: int) -> bytes:
    """A copy of a sample's bytes, CDR header included; the sample is given back."""
    iovec = Iovec()
    reference = lib.ddsi_serdata_to_ser_ref(serdata, 0, lib.ddsi_serdata_size(serdata), ct.byref(iovec))
    try:
        return ct.string_at(iovec.base, iovec.length)
    finally:
        lib.ddsi_serdata_to_ser_unref(reference, ct.byref(iovec))
        lib.ddsi_serdata_unref(serdata)


def guid_of(entity: int) -> bytes:
    """The 16 bytes that identify an entity in the whole graph."""
    guid = Guid()
    check(lib.dds_get_guid(entity, ct.byref(guid)), "tell the GUID of an entity")
    return bytes(guid.value)


def _create_raw_topic(participant: int, dds_topic: str, dds_type: str) -> int:
    """The handle of that topic in a participant; to be deleted once an endpoint is made on it."""
    descriptor = TopicDescriptor(
        size=1,
        align=1,
        flagset=_RESTRICT_REPRESENTATION,
        type_name=dds_type.encode(),
        nops=2,
        ops=_OPS,
        meta=b"",
        restrict_data_representation=_ONLY_XCDR1,
    )
    handle = lib.dds_create_topic(participant, ct.byref(descriptor), dds_topic.encode(), None, None)
    return check(handle, f"create the topic {dds_topic} of type {dds_type}")


# -- qualities of service ----------------------------------------------------------------------------------------------


@contextmanager
def _endpoint_policies(qos: Qos, user_data: str) -> Iterator[int]:
    """Those of a reader or writer, as rmw has them: keep-last, plain CDR, never disposed; user data for the graph."""
    with participant_policies(user_data) as policies:
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
    """Those of a participant: its user data."""
    policies = lib.dds_create_qos()
    try:
        data = user_data.encode()
        lib.dds_qset_userdata(policies, data, len(data))
        yield policies
    finally:
        lib.dds_delete_qos(policies)


# -- user data ---------------------------------------------------------------------------------------------------------


def _type_user_data(type_name: str) -> str:
    """The type's hash, for the graph tools; nothing for a type whose definition we do not have."""
    return f"typehash={messages.type_hash(type_name)};" if messages.knows(type_name) else ""


def user_data_of_writer(reader: int, writer: int) -> dict[str, str] | None:
    """What the writer of that instance handle, matched with a reader of ours, says; None if it is gone."""
    return _pairs_of(lib.dds_get_matched_publication_data(reader, writer))


def gid_of_writer(reader: int, writer: int) -> str | None:
    """The GID of that writer, 16 hexadecimal bytes with dots between them; None if it is gone."""
    endpoint = lib.dds_get_matched_publication_data(reader, writer)
    if not endpoint:
        return None
    try:
        return bytes(endpoint.contents.key.value).hex(".")
    finally:
        lib.dds_builtintopic_free_endpoint(endpoint)


def user_data_of_readers(writer: int) -> list[dict[str, str]]:
    """What each reader says that is matched with a writer of ours."""
    count = lib.dds_get_matched_subscriptions(writer, None, 0)
    handles = (ct.c_uint64 * max(0, count))()
    found = lib.dds_get_matched_subscriptions(writer, handles, len(handles))
    user_data = [
        _pairs_of(lib.dds_get_matched_subscription_data(writer, handle)) for handle in handles[: max(0, found)]
    ]
    return [pairs for pairs in user_data if pairs is not None]


def _pairs_of(endpoint: Any) -> dict[str, str] | None:
    if not endpoint:
        return None
    try:
        return parse_user_data(_bytes_of(endpoint.contents.qos))
    finally:
        lib.dds_builtintopic_free_endpoint(endpoint)


def _bytes_of(policies: int) -> bytes:
    data, size = ct.c_void_p(), ct.c_size_t()
    if not lib.dds_qget_userdata(policies, ct.byref(data), ct.byref(size)) or not data:
        return b""
    try:
        return ct.string_at(data, size.value)
    finally:
        lib.dds_free(data)


def parse_user_data(data: bytes) -> dict[str, str]:
    """The pairs; whatever is not one is left out."""
    pairs = (pair.partition("=") for pair in data.decode("utf-8", "replace").split(";"))
    return {key: value for key, equals, value in pairs if equals}

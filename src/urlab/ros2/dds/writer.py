"""Sends bytes on one DDS topic."""

import ctypes as ct
import threading

import numpy as np

from urlab.ros2.dds.library import SERDATA_OF_A_SAMPLE, TIMED_OUT, Guid, Iovec, MatchedStatus, check, lib
from urlab.ros2.dds.policies import endpoint_policies
from urlab.ros2.dds.raw_topic import create_raw_topic
from urlab.ros2.qos import Qos

_PADDING = ct.create_string_buffer(4)


class Writer:
    """A DDS writer of CDR payloads. Any thread may use it."""

    def __init__(self, participant: int, dds_topic: str, dds_type: str, qos: Qos, user_data: str) -> None:
        self._topic = dds_topic
        topic = create_raw_topic(participant, dds_topic, dds_type)
        with endpoint_policies(qos, user_data) as policies:
            self.handle = check(lib.dds_create_writer(participant, topic, policies, None), f"write {dds_topic}")
        lib.dds_delete(topic)
        self.guid = guid_of(self.handle)
        self._type = ct.c_void_p()
        check(lib.dds_get_entity_sertype(self.handle, ct.byref(self._type)), f"read the type of {dds_topic}")
        self._lock = threading.Lock()
        self._open = True

    def write(self, *pieces: bytes | memoryview) -> None:
        """Send one payload, given in one piece or more; its first 4 bytes are the CDR header. Nothing once closed."""
        with self._lock:
            if self._open:
                self._write(pieces)

    @property
    def readers(self) -> int:
        """How many readers are matched now."""
        status = MatchedStatus()
        with self._lock:
            if not self._open:
                return 0
            check(
                lib.dds_get_publication_matched_status(self.handle, ct.byref(status)), f"count {self._topic}'s readers"
            )
        return int(status.current_count)

    def close(self) -> bool:
        """Withdraw it; whether it was open."""
        with self._lock:
            was_open, self._open = self._open, False
            if was_open:
                lib.dds_delete(self.handle)
            return was_open

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


def guid_of(entity: int) -> bytes:
    """The 16 bytes that identify an entity in the whole graph."""
    guid = Guid()
    check(lib.dds_get_guid(entity, ct.byref(guid)), "tell the GUID of an entity")
    return bytes(guid.value)

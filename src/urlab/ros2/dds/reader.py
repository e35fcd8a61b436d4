"""Receives bytes on one DDS topic."""

import ctypes as ct
from collections.abc import Iterator

from urlab.ros2.dds.library import ANY_STATE, Iovec, SampleInfo, check, lib
from urlab.ros2.dds.policies import endpoint_policies
from urlab.ros2.dds.raw_topic import create_raw_topic
from urlab.ros2.dds.writer import guid_of
from urlab.ros2.qos import Qos

_AT_ONCE = 32


class Reader:
    """A DDS reader of CDR payloads. One thread takes; any thread may close."""

    def __init__(self, participant: int, dds_topic: str, dds_type: str, qos: Qos, user_data: str) -> None:
        topic = create_raw_topic(participant, dds_topic, dds_type)
        with endpoint_policies(qos, user_data) as policies:
            self.handle = check(lib.dds_create_reader(participant, topic, policies, None), f"read {dds_topic}")
        lib.dds_delete(topic)
        self.guid = guid_of(self.handle)
        self.condition = check(lib.dds_create_readcondition(self.handle, ANY_STATE), f"wait for {dds_topic}")
        """What a waitset waits for: something to take."""

    def take(self) -> Iterator[tuple[bytes, int]]:
        """Every payload that has arrived, with the handle of who wrote it; each is given once."""
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

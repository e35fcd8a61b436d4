"""A topic whose type is a name: its samples are bytes that nobody looks into.

To the C library a sample is a structure whose only member is one octet. Every CDR payload begins like one, so every
payload passes, and what follows the octet is kept as it is. No type information goes out with the endpoints: two
implementations would compare it, and refuse to talk over a difference in how they describe the same ROS type. Without
it they compare the name, as ROS intends.

One thing is lost: a payload from a big-endian machine is not turned round. ROS has no such machines.
"""

import ctypes as ct
from typing import Final

from urlab.ros2.dds.library import TopicDescriptor, check, lib

_MEMBER, _OCTET, _END = 1 << 24, 1 << 16, 0
_OPS: Final = (ct.c_uint32 * 3)(_MEMBER | _OCTET, 0, _END)
_RESTRICT_REPRESENTATION = 1 << 7
_ONLY_XCDR1 = 1 << 0


def create_raw_topic(participant: int, dds_topic: str, dds_type: str) -> int:
    """The handle of that topic in a participant; whoever creates an endpoint on it deletes it afterwards."""
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

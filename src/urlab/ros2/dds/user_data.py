"""What endpoints tell about themselves beyond DDS: ``key=value;`` pairs that ROS puts into their user data."""

import ctypes as ct
from typing import Any

from urlab.ros2 import messages
from urlab.ros2.dds.library import lib


def of_type(type_name: str) -> str:
    """The type's hash, for the graph tools; nothing for a type whose definition we do not have."""
    return f"typehash={messages.type_hash(type_name)};" if messages.knows(type_name) else ""


def of_writer(reader: int, writer: int) -> dict[str, str] | None:
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


def of_readers(writer: int) -> list[dict[str, str]]:
    """What each reader says that is matched with a writer of ours."""
    count = lib.dds_get_matched_subscriptions(writer, None, 0)
    handles = (ct.c_uint64 * max(0, count))()
    found = lib.dds_get_matched_subscriptions(writer, handles, len(handles))
    told = [_pairs_of(lib.dds_get_matched_subscription_data(writer, handle)) for handle in handles[: max(0, found)]]
    return [pairs for pairs in told if pairs is not None]


def _pairs_of(endpoint: Any) -> dict[str, str] | None:
    if not endpoint:
        return None
    try:
        return parse(_bytes_of(endpoint.contents.qos))
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


def parse(data: bytes) -> dict[str, str]:
    """The pairs; whatever is not one is left out."""
    pairs = (pair.partition("=") for pair in data.decode("utf-8", "replace").split(";"))
    return {key: value for key, equals, value in pairs if equals}

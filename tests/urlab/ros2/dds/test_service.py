"""Services over DDS: what a client on rmw_cyclonedds_cpp puts on the wire, and what one on rmw_fastrtps_cpp does."""

import itertools
import struct
import threading
from typing import Any

import pytest

from urlab.ros2 import messages
from urlab.ros2.dds import DdsBackend
from urlab.ros2.qos import RELIABLE

messages.register("std_srvs/srv/SetBool", "bool data\n---\nbool success\nstring message\n")
SET_BOOL = "std_srvs/srv/SetBool"
REQUEST, RESPONSE = f"{SET_BOOL}_Request", f"{SET_BOOL}_Response"
CLIENT = 0x0123456789ABCDEF


def serve(request: bytes) -> bytes:
    asked = messages.deserialise(request, REQUEST)
    return bytes(messages.serialise(messages.make(RESPONSE, success=asked.data, message="done"), RESPONSE))


def request(sequence_number: int, data: bool) -> bytes:
    """As rmw_cyclonedds_cpp sends it: {client, sequence number} between the CDR header and the message."""
    plain = bytes(messages.serialise(messages.make(REQUEST, data=data), REQUEST))
    return plain[:4] + struct.pack("<Qq", CLIENT, sequence_number) + plain[4:]


def reply(payload: bytes) -> tuple[int, int, Any]:
    client, sequence_number = struct.unpack_from("<Qq", payload, 4)
    return client, sequence_number, messages.deserialise(payload[:4] + payload[20:], RESPONSE)


def become_a_client(peer: Any, user_data: str) -> None:
    quality = ("reliable", "volatile", 10, user_data)
    peer.do("subscribe", "reply", "rr/enableReply", "std_srvs::srv::dds_::SetBool_Response_", *quality)
    peer.do("advertise", "request", "rq/enableRequest", "std_srvs::srv::dds_::SetBool_Request_", *quality)
    peer.event("matched", "request", "1")
    peer.event("matched", "reply", "1")


def first_reply_from(peer: Any, sequence_number: int) -> tuple[int, int, Any]:
    """The first reply to that request, or to a later one."""
    for heard in itertools.count():
        got = reply(peer.sample("reply", after=heard))
        if got[1] >= sequence_number:
            return got
    raise AssertionError("unreachable")


@pytest.fixture
def call(peer: Any) -> Any:
    """Makes the peer a client of /enable on Cyclone, once a call of it has been answered."""

    def ready() -> Any:
        become_a_client(peer, "clientid=1.10.a4.7;")
        peer.write_until(lambda: peer.has_said("sample", "reply"), "request", request(0, data=True))
        return lambda number, data: peer.write("request", request(number, data))

    return ready


def test_a_client_of_cyclone_gets_the_replies_to_its_requests(call: Any, peer: Any, backend: DdsBackend) -> None:
    backend.service("/enable", SET_BOOL, serve)
    ask = call()
    for number, data in enumerate([True, False, True], start=41):
        ask(number, data)
        sender, sequence_number, response = first_reply_from(peer, number)
        assert (sender, sequence_number) == (CLIENT, number)
        assert (response.success, response.message) == (data, "done")


def test_a_service_s_endpoints_say_that_they_belong_together(peer: Any, backend: DdsBackend) -> None:
    backend.service("/enable", SET_BOOL, serve)
    backend.service("/disable", SET_BOOL, serve)

    def told(kind: str, topic: str) -> dict[str, str]:
        data = bytes.fromhex(peer.event(kind, "alive", None, topic)[5]).decode()
        return dict(pair.split("=") for pair in data.rstrip(";").split(";"))

    read, written = told("reader", "rq/enableRequest"), told("writer", "rr/enableReply")
    assert read["serviceid"] == written["serviceid"]
    assert read["serviceid"] != told("reader", "rq/disableRequest")["serviceid"]
    assert (read["typehash"], written["typehash"]) == (messages.type_hash(REQUEST), messages.type_hash(RESPONSE))


def test_a_request_that_fails_gets_no_reply_and_the_next_one_does(
    call: Any, peer: Any, backend: DdsBackend, caplog: pytest.LogCaptureFixture
) -> None:
    def picky(cdr: bytes) -> bytes:
        if not messages.deserialise(cdr, REQUEST).data:
            raise RuntimeError("no")
        return serve(cdr)

    backend.service("/enable", SET_BOOL, picky)
    ask = call()
    ask(1, False)
    ask(2, True)
    assert first_reply_from(peer, 1)[1] == 2
    assert "/enable: a message" in caplog.text


def test_a_client_of_fast_dds_is_ignored_with_a_warning(
    peer: Any, backend: DdsBackend, caplog: pytest.LogCaptureFixture
) -> None:
    served: list[bytes] = []

    def note(cdr: bytes) -> bytes:
        served.append(cdr)
        return cdr

    backend.service("/enable", SET_BOOL, note)
    become_a_client(peer, "-")
    plain = bytes(messages.serialise(messages.make(REQUEST, data=True), REQUEST))

    def told() -> list[str]:
        return [one.getMessage() for one in caplog.records if one.name == "urlab.ros2"]

    peer.write_until(told, "request", plain.ljust(40, b"\0"))
    assert "RMW_IMPLEMENTATION=rmw_cyclonedds_cpp" in caplog.text
    assert (len(told()), served) == (1, [])


def test_a_slow_request_does_not_delay_messages(call: Any, peer: Any, backend: DdsBackend, wait_until: Any) -> None:
    begun, finish = threading.Event(), threading.Event()
    finish.set()

    def slow(cdr: bytes) -> bytes:
        begun.set()
        assert finish.wait(10)
        return serve(cdr)

    heard: list[bytes] = []
    backend.service("/enable", SET_BOOL, slow)
    backend.subscription("/chat", "std_msgs/msg/Bool", RELIABLE, heard.append)
    publisher = backend.publisher("/chat", "std_msgs/msg/Bool", RELIABLE)
    wait_until(lambda: publisher.subscribers == 1)
    ask = call()
    finish.clear()
    begun.clear()
    ask(1, True)
    assert begun.wait(10)
    publisher.publish(messages.serialise(messages.make("std_msgs/msg/Bool"), "std_msgs/msg/Bool"))
    wait_until(lambda: heard)
    finish.set()
    assert first_reply_from(peer, 1)[1] == 1

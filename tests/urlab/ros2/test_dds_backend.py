"""The DDS backend by itself: its life, its threads, its settings."""

import logging
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from urlab.ros2 import messages
from urlab.ros2.backend import BackendError
from urlab.ros2.dds import DdsBackend, settings
from urlab.ros2.dds.user_data import parse
from urlab.ros2.qos import RELIABLE

STRING = "std_msgs/msg/String"


def said(text: str) -> bytes:
    return bytes(messages.serialise(messages.make(STRING, data=text), STRING))


def text_of(cdr: bytes) -> str:
    return str(messages.deserialise(cdr, STRING).data)


def threads() -> int:
    """All of this process, those of the C library included."""
    return len(list(Path("/proc/self/task").iterdir()))


def test_closing_leaves_no_thread_behind(domain: int, wait_until: Any) -> None:
    before = threads()
    backend = DdsBackend(domain=domain)
    backend.subscription("/chat", STRING, RELIABLE, print)
    backend.service("/reset", "std_srvs/srv/Empty", bytes)
    assert {"urlab-ros2-messages", "urlab-ros2-requests"} <= {thread.name for thread in threading.enumerate()}
    backend.close()
    wait_until(lambda: threads() == before)


def test_closing_ends_publishers_and_subscriptions(domain: int, caplog: pytest.LogCaptureFixture) -> None:
    backend = DdsBackend(domain=domain)
    publisher = backend.publisher("/chat", STRING, RELIABLE)
    subscription = backend.subscription("/chat", STRING, RELIABLE, print)
    backend.close()
    backend.close()
    publisher.publish(said("into the void"))
    assert publisher.subscribers == 0
    publisher.close()
    subscription.close()
    assert caplog.records == []


def test_a_closed_backend_makes_nothing_new(domain: int) -> None:
    backend = DdsBackend(domain=domain)
    backend.close()
    with pytest.raises(BackendError, match="closed"):
        backend.publisher("/chat", STRING, RELIABLE)


def test_two_backends_of_one_process_share_a_domain(backend: DdsBackend, domain: int, wait_until: Any) -> None:
    heard: list[bytes] = []
    backend.subscription("/chat", STRING, RELIABLE, heard.append)
    other = DdsBackend(domain=domain, node="other")
    publisher = other.publisher("/chat", STRING, RELIABLE)
    wait_until(lambda: publisher.subscribers == 1)
    publisher.publish(said("from one"))
    wait_until(lambda: heard)
    other.close()
    again = backend.publisher("/chat", STRING, RELIABLE)
    wait_until(lambda: again.subscribers == 1)
    again.publish(said("to the other"))
    wait_until(lambda: len(heard) == 2)
    assert [text_of(cdr) for cdr in heard] == ["from one", "to the other"]


def test_bytes_that_are_no_cdr_are_refused(backend: DdsBackend) -> None:
    publisher = backend.publisher("/chat", STRING, RELIABLE)
    for wrong in (b"", b"\x00\x01\x00", b"\x00\x01\x00\x00", b"\x7f\x7f\x00\x00text"):
        with pytest.raises(ValueError, match=f"{len(wrong)} bytes for rt/chat"):
            publisher.publish(wrong)


@pytest.mark.parametrize("topic", ["chat", "/panda-2/chat", "/2nd", "/a__b", "/a//b", "/", "/" + "x" * 250])
def test_an_illegal_topic_is_refused_by_name(backend: DdsBackend, topic: str) -> None:
    with pytest.raises(ValueError, match="ROS name"):
        backend.publisher(topic, STRING, RELIABLE)


def test_the_domain_is_the_given_one_or_that_of_the_environment() -> None:
    assert settings.domain_id(3, {"ROS_DOMAIN_ID": "7"}) == 3
    assert settings.domain_id(0, {"ROS_DOMAIN_ID": "7"}) == 0
    assert settings.domain_id(None, {"ROS_DOMAIN_ID": "7"}) == 7
    assert settings.domain_id(None, {"ROS_DOMAIN_ID": ""}) == 0
    assert settings.domain_id(None, {}) == 0


@pytest.mark.parametrize("number", ["-1", "233", "one", "1.5"])
def test_a_domain_that_cannot_be_is_refused(number: str) -> None:
    with pytest.raises(BackendError, match=f"0 to 232, not '{number}'"):
        settings.domain_id(None, {"ROS_DOMAIN_ID": number})


def test_the_environment_says_how_far_discovery_reaches(caplog: pytest.LogCaptureFixture) -> None:
    assert settings.discovery_range({}) == "SUBNET"
    assert settings.discovery_range({"ROS_AUTOMATIC_DISCOVERY_RANGE": "OFF"}) == "OFF"
    assert settings.discovery_range({"ROS_LOCALHOST_ONLY": "1", "ROS_AUTOMATIC_DISCOVERY_RANGE": "OFF"}) == "LOCALHOST"
    assert settings.discovery_range({"ROS_LOCALHOST_ONLY": "0"}) == "SUBNET"
    assert caplog.records == []
    assert settings.discovery_range({"ROS_AUTOMATIC_DISCOVERY_RANGE": "GALAXY"}) == "LOCALHOST"
    assert "GALAXY" in caplog.text


def test_only_localhost_without_static_peers_is_bound_to_the_loopback() -> None:
    def bound(**environment: str) -> bool:
        return 'NetworkInterface address="127.0.0.1"' in settings.cyclone_settings(environment)

    assert bound(ROS_AUTOMATIC_DISCOVERY_RANGE="LOCALHOST")
    assert bound(ROS_LOCALHOST_ONLY="1")
    assert not bound(ROS_LOCALHOST_ONLY="1", ROS_STATIC_PEERS="192.0.2.7")
    assert not bound()


def test_static_peers_are_looked_for() -> None:
    xml = settings.cyclone_settings({"ROS_STATIC_PEERS": '192.0.2.7; far.example "x"'})
    assert '<Peer address="192.0.2.7"/>' in xml
    assert "<Peer address='far.example \"x\"'/>" in xml


@pytest.mark.parametrize("reach", ["SUBNET", "LOCALHOST", "OFF", "SYSTEM_DEFAULT"])
def test_cyclone_accepts_the_settings_of_every_range(reach: str, domain: int) -> None:
    """In a process of its own, and on the loopback even with the ranges that would leave it."""
    loopback = '<NetworkInterface address="127.0.0.1"/>' if reach != "LOCALHOST" else ""
    code = f"from urlab.ros2.dds import DdsBackend; DdsBackend(domain={domain}).close()"
    environment = {
        **os.environ,
        "ROS_AUTOMATIC_DISCOVERY_RANGE": reach,
        "CYCLONEDDS_URI": f"<General><Interfaces>{loopback}</Interfaces></General>",
    }
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_cyclone_s_own_settings_win(domain: int, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    assert settings.cyclone_settings({"CYCLONEDDS_URI": "file:///mine.xml"}).endswith(",file:///mine.xml")
    monkeypatch.setenv("CYCLONEDDS_URI", "<General><NoSuchSetting>1</NoSuchSetting></General>")
    with pytest.raises(BackendError, match=f"open domain {domain}"):
        DdsBackend(domain=domain)
    assert "NoSuchSetting" in capfd.readouterr().err


def test_user_data_is_pairs() -> None:
    assert parse(b"typehash=RIHS01_ab;clientid= 1.10.a4;") == {"typehash": "RIHS01_ab", "clientid": " 1.10.a4"}
    assert parse(b"\xff\x00;;nonsense;a=b=c") == {"a": "b=c"}
    assert parse(b"") == {}


def test_a_message_during_which_the_listener_closes_is_the_last(
    backend: DdsBackend, wait_until: Any, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[bytes] = []

    def hear(cdr: bytes) -> None:
        heard.append(cdr)
        subscription.close()

    subscription = backend.subscription("/chat", STRING, RELIABLE, hear)
    publisher = backend.publisher("/chat", STRING, RELIABLE)
    wait_until(lambda: publisher.subscribers == 1)
    with caplog.at_level(logging.ERROR):
        publisher.publish(said("first"))
        publisher.publish(said("second"))
        wait_until(lambda: publisher.subscribers == 0)
    assert [text_of(cdr) for cdr in heard] == ["first"]
    assert caplog.records == []

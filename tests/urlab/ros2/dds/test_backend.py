"""The DDS backend: its life, its threads, its settings, and what the ROS graph is told of it."""

import logging
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from urlab.ros2 import messages
from urlab.ros2.backend import BackendError
from urlab.ros2.dds import DdsBackend
from urlab.ros2.dds import domain as settings
from urlab.ros2.dds.endpoints import parse_user_data
from urlab.ros2.qos import RELIABLE

STRING = "std_msgs/msg/String"


def said(text: str) -> bytes:
    return bytes(messages.serialise(messages.make(STRING, data=text), STRING))


def text_of(cdr: bytes) -> str:
    return str(messages.deserialise(cdr, STRING).data)


def threads() -> set[str]:
    """All of this process, those of the C library included."""
    return {one.name for one in Path("/proc/self/task").iterdir()}


def test_closing_leaves_no_thread_behind(domain: int, wait_until: Any) -> None:
    before = threads()
    backend = DdsBackend(domain=domain)
    backend.subscription("/chat", STRING, RELIABLE, print)
    backend.service("/reset", "std_srvs/srv/Empty", bytes)
    assert {"urlab-ros2-messages", "urlab-ros2-requests"} <= {thread.name for thread in threading.enumerate()}
    backend.close()
    wait_until(lambda: threads() <= before)


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


def test_only_localhost_without_static_peers_is_bound_to_the_loopback() -> None:
    def bound(**environment: str) -> bool:
        return 'NetworkInterface address="127.0.0.1"' in settings.cyclone_settings(environment)

    assert bound(ROS_AUTOMATIC_DISCOVERY_RANGE="LOCALHOST")
    assert bound(ROS_LOCALHOST_ONLY="1")
    assert bound()
    assert bound(ROS_AUTOMATIC_DISCOVERY_RANGE="OFF")
    assert not bound(ROS_LOCALHOST_ONLY="1", ROS_STATIC_PEERS="192.0.2.7")
    assert not bound(ROS_AUTOMATIC_DISCOVERY_RANGE="SUBNET")
    assert not bound(ROS_AUTOMATIC_DISCOVERY_RANGE="SYSTEM_DEFAULT")


def test_interfaces_of_the_users_own_settings_are_the_only_ones(tmp_path: Path) -> None:
    """Cyclone adds up what it is given, and refuses an interface that is named twice."""
    mine = '<General><Interfaces><NetworkInterface name="lo"/></Interfaces></General>'
    (tmp_path / "mine.xml").write_text(mine)
    for uri in (mine, f"file://{tmp_path}/mine.xml"):
        xml = settings.cyclone_settings({"ROS_LOCALHOST_ONLY": "1", "CYCLONEDDS_URI": uri})
        assert '127.0.0.1" multicast' not in xml
        assert xml.endswith(uri)
    kept = settings.cyclone_settings({"ROS_LOCALHOST_ONLY": "1", "CYCLONEDDS_URI": "file:///no/such/file.xml"})
    assert '127.0.0.1" multicast' in kept


def test_static_peers_are_looked_for() -> None:
    xml = settings.cyclone_settings({"ROS_STATIC_PEERS": '192.0.2.7; far.example "x"'})
    assert '<Peer address="192.0.2.7"/>' in xml
    assert "<Peer address='far.example \"x\"'/>" in xml


EVERY_RANGE = """
import os, sys
from urlab.ros2.dds import DdsBackend
for domain, reach in enumerate(("SUBNET", "LOCALHOST", "OFF", "SYSTEM_DEFAULT"), start=int(sys.argv[1])):
    loopback = '<NetworkInterface address="127.0.0.1"/>'
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = reach
    os.environ["CYCLONEDDS_URI"] = f"<General><Interfaces>{loopback}</Interfaces></General>"
    DdsBackend(domain=domain).close()
"""


def test_cyclone_accepts_the_settings_of_every_range(domain: int) -> None:
    """In a process of its own, on the loopback: the reader's own settings name it, once more than `LOCALHOST` does."""
    command = [sys.executable, "-c", EVERY_RANGE, str(domain)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_cyclone_s_own_settings_win(domain: int, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    assert settings.cyclone_settings({"CYCLONEDDS_URI": "file:///mine.xml"}).endswith(",file:///mine.xml")
    monkeypatch.setenv("CYCLONEDDS_URI", "<General><NoSuchSetting>1</NoSuchSetting></General>")
    with pytest.raises(BackendError, match=f"open domain {domain}"):
        DdsBackend(domain=domain)
    assert "NoSuchSetting" in capfd.readouterr().err


def test_user_data_is_pairs() -> None:
    assert parse_user_data(b"typehash=RIHS01_ab;clientid= 1.10.a4;") == {
        "typehash": "RIHS01_ab",
        "clientid": " 1.10.a4",
    }
    assert parse_user_data(b"\xff\x00;;nonsense;a=b=c") == {"a": "b=c"}
    assert parse_user_data(b"") == {}


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


INFO = "rmw_dds_common/msg/ParticipantEntitiesInfo"


@pytest.fixture
def graph(peer: Any, backend: DdsBackend) -> Any:
    """Our entry in the graph, as the peer hears it; the newest one, once it fits."""
    peer.do(
        "subscribe", "graph", "ros_discovery_info", "rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_",
        "reliable", "transient_local", 1, "-",
    )  # fmt: skip

    def graph(readers: int, writers: int) -> Any:
        heard = 0
        while True:
            info = messages.deserialise(peer.sample("graph", after=heard), INFO)
            (node,) = info.node_entities_info_seq
            if (len(node.reader_gid_seq), len(node.writer_gid_seq)) == (readers, writers):
                return info
            heard += 1

    return graph


def guid(gid: Any) -> str:
    """Without the padding that it has in Humble."""
    return bytes(gid.data)[:16].hex()


def test_the_graph_knows_our_node_and_its_endpoints(graph: Any, peer: Any, backend: DdsBackend) -> None:
    publisher = backend.publisher("/chat", STRING, RELIABLE)
    subscription = backend.subscription("/orders", STRING, RELIABLE, lambda _cdr: None)
    info = graph(readers=1, writers=1)
    (node,) = info.node_entities_info_seq
    assert (node.node_namespace, node.node_name) == ("/", "urlab")
    assert guid(info.gid) == peer.event("participant", "alive")[2]
    assert [guid(gid) for gid in node.writer_gid_seq] == [peer.event("writer", "alive", None, "rt/chat")[2]]
    assert [guid(gid) for gid in node.reader_gid_seq] == [peer.event("reader", "alive", None, "rt/orders")[2]]
    publisher.close()
    subscription.close()


def test_the_graph_is_told_when_endpoints_go(graph: Any, peer: Any, backend: DdsBackend) -> None:
    publisher = backend.publisher("/chat", STRING, RELIABLE)
    subscription = backend.subscription("/orders", STRING, RELIABLE, lambda _cdr: None)
    graph(readers=1, writers=1)
    publisher.close()
    peer.event("writer", "gone", None, "rt/chat")
    graph(readers=1, writers=0)
    subscription.close()
    peer.event("reader", "gone", None, "rt/orders")
    graph(readers=0, writers=0)


def test_a_service_is_in_the_graph_with_both_its_topics(graph: Any, peer: Any, backend: DdsBackend) -> None:
    service = backend.service("/reset", "std_srvs/srv/Empty", lambda request: request)
    (node,) = graph(readers=1, writers=1).node_entities_info_seq
    assert [guid(gid) for gid in node.reader_gid_seq] == [peer.event("reader", "alive", None, "rq/resetRequest")[2]]
    assert [guid(gid) for gid in node.writer_gid_seq] == [peer.event("writer", "alive", None, "rr/resetReply")[2]]
    service.close()
    graph(readers=0, writers=0)


def test_a_node_may_have_another_name(graph: Any, peer: Any, backend: DdsBackend, domain: int) -> None:
    graph(readers=0, writers=0)
    other = DdsBackend(domain=domain, node="urlab_2")
    second = messages.deserialise(peer.sample("graph", after=1), INFO)
    assert second.node_entities_info_seq[0].node_name == "urlab_2"
    other.close()

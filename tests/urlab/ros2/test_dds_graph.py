"""What the ROS graph is told of us."""

from typing import Any

import pytest

from urlab.ros2 import messages
from urlab.ros2.dds import DdsBackend
from urlab.ros2.qos import RELIABLE

INFO = "rmw_dds_common/msg/ParticipantEntitiesInfo"
STRING = "std_msgs/msg/String"


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

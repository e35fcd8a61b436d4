"""What other machines can reach of a node: none of it, unless the user says otherwise.

The other machine is a network namespace, joined to one with the nodes by a pair of virtual cables.
"""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

OUR_ADDRESS, OTHER_ADDRESS = (f"10.231.{os.getpid() % 250 + 1}.{end}" for end in (1, 2))
TOPIC, TYPE = "/probe", "std_msgs/msg/String"

NODE = """
import os, sys, threading, time
from urlab.ros2 import messages
from urlab.ros2.dds import DdsBackend
from urlab.ros2.qos import RELIABLE

node = DdsBackend(domain=77)
String = messages.typestore.types["std_msgs/msg/String"]
if sys.argv[1] == "listen":
    heard = []
    def hear(cdr):
        word = messages.deserialise(cdr, "std_msgs/msg/String").data
        if word not in heard:
            heard.append(word)
            print(word, flush=True)
    subscription = node.subscription("/probe", "std_msgs/msg/String", RELIABLE, hear)
    print("ready", flush=True)
    sys.stdin.read()
else:
    publisher = node.publisher("/probe", "std_msgs/msg/String", RELIABLE)
    print("ready", flush=True)
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set())).start()
    number = 0
    while not ended.wait(0.05):
        publisher.publish(messages.serialise(String(f"{sys.argv[2]} {number}"), "std_msgs/msg/String"))
        number += 1
node.close()
"""


class Network:
    """Two network namespaces that are joined; ``run`` starts a node in one of them."""

    def __init__(self, name: str) -> None:
        self.ours, self.other = f"{name}-a", f"{name}-b"
        self._nodes: list[subprocess.Popen[str]] = []

    def open(self) -> None:
        for one in (self.ours, self.other):
            self._ip("netns", "add", one)
        self._ip("-n", self.ours, "link", "add", "cable0", "type", "veth", "peer", "cable1", "netns", self.other)
        for space, device, address in ((self.ours, "cable0", OUR_ADDRESS), (self.other, "cable1", OTHER_ADDRESS)):
            self._ip("-n", space, "address", "add", f"{address}/24", "dev", device)
            for link in ("lo", device):
                self._ip("-n", space, "link", "set", link, "up", "multicast", "on")

    def close(self) -> None:
        for node in self._nodes:
            node.kill()
            node.communicate()
        for one in (self.ours, self.other):
            subprocess.run(["ip", "netns", "delete", one], capture_output=True, check=False)

    def run(self, space: str, *words: str, **variables: str) -> "subprocess.Popen[str]":
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("ROS_", "CYCLONE"))}
        node = subprocess.Popen(
            ["ip", "netns", "exec", space, sys.executable, "-c", NODE, *words],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**environment, **variables},
        )  # fmt: skip
        self._nodes.append(node)
        assert next_word(node) == "ready"
        return node

    def _ip(self, *words: str) -> None:
        subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


def next_word(node: "subprocess.Popen[str]") -> str:
    assert node.stdout is not None
    return node.stdout.readline().strip()


def words_until_now(node: "subprocess.Popen[str]") -> list[str]:
    """All that a node has printed; it ends."""
    return node.communicate("", timeout=60)[0].split("\n")


@pytest.fixture
def network() -> Iterator[Network]:
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("only root can make network namespaces, with the command ip")
    made = Network(f"urlab-{os.getpid()}")
    try:
        made.open()
    except subprocess.CalledProcessError as refused:
        made.close()
        pytest.skip(f"no network namespaces here: {refused.stderr.strip()}")
    yield made
    made.close()


NOT_TOLD_OTHERWISE = ({}, {"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}, {"ROS_LOCALHOST_ONLY": "1"})


def test_a_node_that_was_not_told_otherwise_hears_its_own_machine_and_no_other(network: Network) -> None:
    """The other machine's node knows our address and tries it; a node of ours that is open to it shows that it does."""
    listeners = [network.run(network.ours, "listen", **variables) for variables in NOT_TOLD_OTHERWISE]
    network.run(network.ours, "publish", "here")
    for listener in listeners:
        assert next_word(listener).startswith("here ")
    opened = network.run(network.ours, "listen", ROS_AUTOMATIC_DISCOVERY_RANGE="SUBNET")
    network.run(network.other, "publish", "there", ROS_AUTOMATIC_DISCOVERY_RANGE="SUBNET", ROS_STATIC_PEERS=OUR_ADDRESS)
    from_there = 0
    while from_there < 40:
        from_there += next_word(opened).startswith("there ")
    for listener, variables in zip(listeners, NOT_TOLD_OTHERWISE, strict=True):
        heard = words_until_now(listener)
        assert not [word for word in heard if word.startswith("there ")], variables
        assert len(heard) > 10, variables


def test_ports_of_a_node_take_nothing_from_beyond_the_loopback(domain: int, monkeypatch: Any) -> None:
    """Cyclone binds them to every address: it is the device that they are bound to which keeps others out."""
    from urlab.ros2.dds import DdsBackend

    if sys.platform != "linux":
        pytest.skip("only Linux binds sockets to devices")
    monkeypatch.delenv("ROS_AUTOMATIC_DISCOVERY_RANGE", raising=False)
    before = udp_sockets()
    node = DdsBackend(domain=domain)
    opened = {key: where for key, where in udp_sockets().items() if key not in before}
    node.close()
    assert len(opened) == 5
    for address, device in opened.values():
        assert address == "127.0.0.1" or device == b"lo\0"


def udp_sockets() -> dict[tuple[int, int], tuple[str, bytes]]:
    """This process's, by descriptor and port: the address and the device that each is bound to."""
    found = {}
    for link in Path("/proc/self/fd").iterdir():
        if link.is_socket():
            with socket.socket(fileno=os.dup(int(link.name))) as one:
                if (one.family, one.type) == (socket.AF_INET, socket.SOCK_DGRAM):
                    address, port = one.getsockname()
                    device = one.getsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, 16)
                    found[int(link.name), port] = address, device
    return found

"""Requests in one region, replies in another."""

import mmap
import threading
from contextlib import closing

import msgpack
import pytest

from urlab.transport.repeats import RequestRegistry
from urlab.transport.shm.folder import ShmFolder
from urlab.transport.shm.server import ShmRpcServer
from urlab_wire.shm import REPLY_FILE, REQUEST_FILE, RPC_STRIDE, Region
from urlab_wire.shm_wait import SequenceWaiter, wake


def big(request: bytes) -> bytes:
    return b"x" * int(request[4:]) if request.startswith(b"big ") else b"re: " + request


class Peer:
    """A client of the regions."""

    def __init__(self, folder):
        self.regions = []
        for name in (REQUEST_FILE, REPLY_FILE):
            with (folder / name).open("r+b") as file:
                self.regions.append(Region(mmap.mmap(file.fileno(), 0)))
        self.requests, self.replies = self.regions
        self.waiter = SequenceWaiter(self.replies)

    def ask(self, request: bytes) -> bytes:
        seen = self.replies.sequence
        self.requests.write(request)
        wake(self.requests)
        assert self.waiter.wait(seen, 10.0)
        return self.replies.read(seen)[1]


@pytest.fixture
def served(tmp_path):
    """Starts a server of a function; gives a peer and what was kept."""
    folder, servers = ShmFolder(tmp_path), []

    def start(handle):
        kept = RequestRegistry()
        server = ShmRpcServer(folder, handle, kept)
        servers.append(server)
        server.start()
        return Peer(folder.path), kept

    yield start
    for server in servers:
        server.stop()
    folder.close()
    assert list(tmp_path.iterdir()) == []


def test_each_request_gets_its_reply(served):
    peer, _ = served(big)
    for number in range(2000):
        request = b"request %d" % number
        assert peer.ask(request) == b"re: " + request


def test_a_reply_that_just_fits_is_sent_and_one_that_does_not_is_kept(served):
    peer, kept = served(big)
    fits, too_large = RPC_STRIDE - 4, RPC_STRIDE - 3
    assert len(peer.ask(b"big %d" % fits)) == fits
    refusal = msgpack.unpackb(peer.ask(b"big %d" % too_large))
    assert (refusal["op"], refusal["code"]) == ("error", "reply_too_large")
    assert str(too_large) in refusal["message"]
    over_zmq = object()
    assert kept.begin(b"big 1", over_zmq).reply is None
    assert len(kept.begin(b"big %d" % too_large, over_zmq).reply) == too_large
    assert kept.begin(b"big %d" % too_large, over_zmq).reply is None
    assert peer.ask(b"on") == b"re: on"


def test_a_crash_is_an_error_reply(served, caplog):
    def crash(request):
        raise RuntimeError(request)

    peer, _ = served(crash)
    assert msgpack.unpackb(peer.ask(b"boom"))["code"] == "internal_error"
    assert msgpack.unpackb(peer.ask(b"boom again"))["code"] == "internal_error"
    assert "could not be served" in caplog.text


def test_rubbish_in_a_slot_is_passed_over(served):
    peer, _ = served(big)
    peer.ask(b"one")
    words = memoryview(peer.requests._whole)
    slot = 64 + (peer.requests._words[6] + 1) % 2 * RPC_STRIDE
    words[slot : slot + 4] = (0xFFFFFFFF).to_bytes(4, "little")
    peer.requests._words[6] ^= 1
    peer.requests._sequences[2] += 1
    wake(peer.requests)
    assert peer.ask(b"two") == b"re: two"


def test_what_is_being_served_is_answered_before_the_end(tmp_path):
    folder, begun, go_on = ShmFolder(tmp_path), threading.Event(), threading.Event()

    def slow(request):
        begun.set()
        go_on.wait(10)
        return b"done"

    server = ShmRpcServer(folder, slow, RequestRegistry())
    server.start()
    peer, answers = Peer(folder.path), []
    asking = threading.Thread(target=lambda: answers.append(peer.ask(b"work")))
    asking.start()
    assert begun.wait(10)
    ending = threading.Thread(target=server.stop)
    ending.start()
    go_on.set()
    for thread in (asking, ending):
        thread.join(10)
    assert answers == [b"done"]
    with closing(folder):
        assert not (folder.path / REQUEST_FILE).exists()

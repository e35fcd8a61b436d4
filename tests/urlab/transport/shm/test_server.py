"""Requests in one region, replies in another."""

import fcntl
import mmap
import os
import threading
from contextlib import closing
from types import SimpleNamespace

import msgpack
import pytest

from urlab.transport.repeats import RequestRegistry
from urlab.transport.shm.folder import ShmFolder
from urlab.transport.shm.server import ShmRpcServer
from urlab_wire.shm import COUNT_BITS, REPLY_FILE, REQUEST_FILE, RPC_STRIDE, SEALED_REPLY_FILE, Region
from urlab_wire.shm_wait import SequenceWaiter, wake


def big(request: bytes) -> bytes:
    return b"x" * int(request[4:]) if request.startswith(b"big ") else b"re: " + request


class Function:
    """Has a function answer frames, which have no ids."""

    def __init__(self, answer):
        self._answer = answer

    def parse(self, frame):
        return SimpleNamespace(frame=frame, key=None, holder=None)

    def serve(self, request):
        return self._answer(request.frame)


class Peer:
    """A client of the regions."""

    def __init__(self, folder):
        self.folder = folder
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
        server = ShmRpcServer(folder, Function(handle), kept)
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


class NumberingPeer(Peer):
    """A client as ours: it numbers its requests, and holds the locks."""

    def __init__(self, folder, client=1):
        super().__init__(folder)
        self.files = [(folder / name).open("rb") for name in (REQUEST_FILE, SEALED_REPLY_FILE)]
        for file in self.files:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.sealed = Region(mmap.mmap(self.files[1].fileno(), 0, access=mmap.ACCESS_READ))
        self.waiter = SequenceWaiter(self.sealed)
        self.number = client << COUNT_BITS

    def send(self, request, number=None):
        self.number = self.number + 1 if number is None else number
        self.requests.write_request(request, self.number)
        wake(self.requests)

    def receive(self, seen, within_s=10.0):
        return self.sealed.read(seen, self.number) if self.waiter.wait(seen, within_s) else None

    def leave(self):
        for file in self.files:
            file.close()
        self.sealed.release()


class Counting:
    """Answers with how many requests it has served."""

    def __init__(self):
        self.served = []

    def __call__(self, request):
        self.served.append(request)
        return b"%d" % len(self.served)


@pytest.fixture
def numbering(served, tmp_path):
    """A server that counts, and a client that numbers its requests."""
    count = Counting()
    folder = served(count)[0].folder
    peer = NumberingPeer(folder)
    yield count, peer
    peer.leave()


def test_a_numbered_request_is_answered_under_its_number_and_only_there(numbering):
    _, peer = numbering
    for number in range(1, 100):
        seen = peer.sealed.sequence
        peer.send(b"request")
        assert peer.receive(seen)[1] == b"%d" % number
    assert peer.replies.sequence == 0


def test_a_request_that_is_shown_again_is_served_once(numbering):
    count, peer = numbering
    peer.send(b"first")
    peer.receive(0)
    for number in (peer.number, peer.number - 1):
        peer.send(b"first", number)
    peer.send(b"second", peer.number + 2)
    assert peer.receive(1)[1] == b"2"
    assert count.served == [b"first", b"second"]


def test_a_request_that_was_damaged_is_passed_over_and_served_when_it_comes_whole(numbering):
    count, peer = numbering
    peer.requests.write(b"damaged")
    wake(peer.requests)
    assert peer.receive(0, within_s=0.1) is None
    peer.send(b"whole")
    assert peer.receive(0)[1] == b"1"
    assert count.served == [b"whole"]


def test_no_other_process_can_write_a_reply(numbering):
    _, peer = numbering
    with pytest.raises(PermissionError):
        mmap.mmap(os.open(peer.folder / SEALED_REPLY_FILE, os.O_RDWR), 0)


def test_requests_of_a_client_that_left_are_not_served_again(served, wait_until):
    count = Counting()
    folder = served(count)[0].folder
    peer = NumberingPeer(folder)
    for request in (b"first", b"second"):
        seen = peer.sealed.sequence
        peer.send(request)
        peer.receive(seen)
    peer.leave()
    wait_until(lambda: [peer.requests._slots[slot][:4].tobytes() for slot in (0, 1)] == [bytes(4)] * 2)
    for index in (0, 1):
        peer.requests._words[6] = index
        peer.requests._sequences[2] += 1
        wake(peer.requests)
    assert Peer(folder).ask(b"a client as the original's") == b"3"
    assert count.served == [b"first", b"second", b"a client as the original's"]


def test_a_header_that_was_written_over_is_put_right_for_the_next_client(served, wait_until):
    peer, _ = served(big)
    peer.ask(b"one")
    peer.requests._whole[:16] = b"\xff" * 16
    wait_until(lambda: bytes(peer.requests._whole[:4]) == b"URLB")
    assert Peer(peer.folder).ask(b"two") == b"re: two"


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

    server = ShmRpcServer(folder, Function(slow), RequestRegistry())
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

"""Requests through shared memory: the server's own end of it, with an answer that a test chooses."""

import contextlib
import json
import logging
import os
import random
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from urlab.transport.repeats import RequestRegistry
from urlab.transport.shm.folder import ShmFolder
from urlab.transport.shm.server import SharedMemory
from urlab_client import URLabRPCError, URLabTimeoutError, ZmqTransport
from urlab_client.errors import ServerEndedError
from urlab_client.transports import ServerAddress, ShmTransport, open_transport
from urlab_client.transports.shm_file import FileRegion
from urlab_client.transports.shm_link import ShmLink
from urlab_wire.codec import encode
from urlab_wire.shm import (
    MAGIC,
    OWNER_FILE,
    REPLY_FILE,
    REQUEST_FILE,
    RPC_STRIDE,
    SEALED_REPLY_FILE,
    PayloadTooLarge,
    format_region,
    region_bytes,
)

SEALED_MEMORY = "/memfd:urlab-"
Handle = Callable[[bytes], bytes]
Make = Callable[..., ShmTransport]


class Function:
    """Has a function answer frames, which have no ids."""

    def __init__(self, answer: Handle) -> None:
        self._answer = answer

    def parse(self, frame: bytes) -> Any:
        return SimpleNamespace(frame=frame, key=None, holder=None)

    def serve(self, request: Any) -> bytes:
        return self._answer(request.frame)


def over_zmq(frame: bytes) -> bytes:
    """What the other end of ZeroMQ answers, so that a test sees which way a request went."""
    return b"zmq " + frame[:20]


def error(code: str) -> bytes:
    return encode({"op": "error", "code": code, "message": "no"})


@pytest.fixture
def share(tmp_path: Path) -> Iterator[Callable[[Handle], SharedMemory]]:
    """Starts servers of shared memory."""
    made: list[SharedMemory] = []

    def make(handle: Handle = bytes.upper) -> SharedMemory:
        made.append(SharedMemory(Function(handle), RequestRegistry(), root=tmp_path))
        made[-1].start()
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def make(zmq_peer: Callable[..., Any]) -> Iterator[Make]:
    """Makes transports; with a folder, after their handshake."""
    made: list[ShmTransport] = []
    peer = zmq_peer(over_zmq)

    def of(folder: Path | str | None = None, **options: Any) -> ShmTransport:
        made.append(ShmTransport(ZmqTransport(peer.endpoint), **options))
        if folder is not None:
            made[-1].absorb_handshake({"shm_session_dir": str(folder)})
        return made[-1]

    yield of
    for transport in made:
        transport.close()


def ask(transport: ShmTransport, frame: bytes, timeout_ms: int = 30_000) -> bytes:
    return transport.request(frame, timeout_ms=timeout_ms)


class Gate:
    """Answers as ``bytes.upper`` does, but ``slow`` only once it is opened."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.open = threading.Event()

    def __call__(self, frame: bytes) -> bytes:
        if frame == b"slow":
            self.entered.set()
            assert self.open.wait(60)
        return frame.upper()


def await_shm(transport: ShmTransport, question: bytes) -> bytes:
    """The first answer that came through shared memory."""
    deadline = time.monotonic() + 30
    while (answer := ask(transport, question)).startswith(b"zmq"):
        assert time.monotonic() < deadline, "it stays with ZeroMQ"
    return answer


# -- which way ----------------------------------------------------------------------------------------------------


def test_requests_go_through_shared_memory_once_the_handshake_has_told_where(share: Any, make: Make):
    transport = make()
    assert ask(transport, b"a") == b"zmq a"
    transport.absorb_handshake({"shm_session_dir": str(share().folder)})
    assert [ask(transport, word) for word in (b"a", b"bc", b"d")] == [b"A", b"BC", b"D"]


@pytest.mark.parametrize("hello", [encode({"op": "hello"}), json.dumps({"n": None, "op": "hello"}).encode()])
def test_every_hello_goes_over_zeromq(share: Any, make: Make, hello: bytes):
    transport = make(share().folder)
    assert ask(transport, hello).startswith(b"zmq")
    not_one = encode({"op": "say", "word": "hello"})
    assert ask(transport, not_one) == not_one.upper()


def test_a_request_that_comes_before_the_server_looks_is_answered(make: Make, tmp_path: Path) -> None:
    memory = SharedMemory(Function(bytes.upper), RequestRegistry(), root=tmp_path)
    try:
        transport = make(memory.folder)
        with ThreadPoolExecutor(1) as beside:
            answer = beside.submit(ask, transport, b"early")
            with (memory.folder / REQUEST_FILE).open("rb") as file:
                while FileRegion(file.fileno()).sequence == 0:
                    assert not answer.done()
            memory.start()
            assert answer.result() == b"EARLY"
    finally:
        memory.close()


def test_a_frame_that_is_too_large_goes_over_zeromq_and_only_that(share: Any, make: Make):
    transport = make(share(lambda frame: b"%d" % len(frame)).folder)
    assert ask(transport, b"x" * (RPC_STRIDE - 4)) == b"%d" % (RPC_STRIDE - 4)
    assert ask(transport, b"x" * (RPC_STRIDE - 3)) == b"zmq " + b"x" * 20
    assert ask(transport, b"") == b"zmq "
    assert ask(transport, b"x") == b"1"


@pytest.mark.parametrize("code", ["reply_too_large", "wrong_transport"])
def test_a_reply_that_asks_for_it_sends_the_same_frame_over_zeromq_and_only_that(share: Any, make: Make, code: str):
    transport = make(share(lambda frame: error(code) if frame == b"big" else frame.upper()).folder)
    assert [ask(transport, word) for word in (b"a", b"big", b"b")] == [b"A", b"zmq big", b"B"]


def test_a_reply_that_only_mentions_the_words_is_one(share: Any, make: Make):
    replies = [b"reply_too_large", error("bad_value") + b"wrong_transport", encode({"code": 1, "x": "wrong_transport"})]
    for reply in replies:
        assert ask(make(share(lambda _, reply=reply: reply).folder), b"x") == reply


def test_a_large_reply_comes_whole(share: Any, make: Make):
    picture = os.urandom(RPC_STRIDE - 4)
    assert ask(make(share(lambda _: picture).folder), b"x") == picture


def test_a_folder_that_the_caller_names_goes_before_the_handshakes(share: Any, make: Make):
    mine, told = share(lambda _: b"mine"), share(lambda _: b"told")
    transport = make(told.folder, shm_dir=str(mine.folder))
    assert ask(transport, b"x") == b"mine"


def test_threads_get_each_its_own_answer(share: Any, make: Make):
    transport, wrong = make(share().folder), []

    def work(number: int) -> None:
        for turn in range(100):
            word = b"question %d of %d" % (turn, number)
            if ask(transport, word) != word.upper():
                wrong.append(word)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert wrong == []


def test_both_transports_are_known_by_name():
    with pytest.raises(ValueError, match=r"'carrier-pigeon' is not one: there are 'zmq', 'shm'"):
        open_transport("carrier-pigeon", ServerAddress("tcp://localhost", 1, 2, 100))
    transport = open_transport("shm", ServerAddress("tcp://localhost", 1, 2, 100, shm_dir="/nowhere"))
    assert isinstance(transport, ShmTransport)
    transport.close()


# -- where it cannot be -------------------------------------------------------------------------------------------


def dead_folder(root: Path) -> Path:
    folder = ShmFolder(root)
    for name in (REQUEST_FILE, REPLY_FILE):
        folder.make_region(name, RPC_STRIDE, 2)
    os.close(folder._lock)
    return folder.path


def folder_with(root: Path, content: bytes) -> Path:
    (root / "odd").mkdir()
    for name in (REQUEST_FILE, REPLY_FILE):
        (root / "odd" / name).write_bytes(content)
    return root / "odd"


def newer_region() -> bytes:
    buffer = bytearray(region_bytes(4096, 2))
    format_region(buffer, 4096, 2)
    buffer[4] = 2
    return bytes(buffer)


def huge_folder(root: Path) -> Path:
    header = struct.pack("<4I", MAGIC, 1, (1 << 28) + 1, 1) + bytes(48)
    folder = folder_with(root, header)
    for name in (REQUEST_FILE, REPLY_FILE):
        os.truncate(folder / name, 64 + (1 << 28) + 1)
    return folder


def folder_of_links(root: Path) -> Path:
    (root / "odd").mkdir()
    for name in (REQUEST_FILE, REPLY_FILE):
        (root / "odd" / name).symlink_to("/proc/999999999/fd/3")
    return root / "odd"


def folder_of_pipes(root: Path) -> Path:
    (root / "odd").mkdir()
    for name in (REQUEST_FILE, REPLY_FILE):
        os.mkfifo(root / "odd" / name)
    return root / "odd"


def folder_with_other_replies(root: Path) -> Path:
    """A server's own, but for the replies: another process has put a file in their place."""
    folder, _ = silent_server(root)
    sealed = folder.path / SEALED_REPLY_FILE
    content = sealed.read_bytes()
    sealed.unlink()
    sealed.write_bytes(content)
    return folder.path


UNUSABLE: dict[str, tuple[Callable[[Path], Any], str]] = {
    "not told": (lambda _: "", "the server has none (it was started with --no-shm"),
    "elsewhere": (lambda root: root / "nowhere", "is the server on another machine, or in a container?"),
    "nonsense": (lambda _: "/dev/shm\0", "is not there"),
    "no files": (lambda root: root, "req.shm: No such file or directory"),
    "empty files": (lambda root: folder_with(root, b""), "holds no region: the file is too short"),
    "other files": (lambda root: folder_with(root, b"x" * 100), "holds no region: the buffer begins with 0x78787878"),
    "newer": (lambda root: folder_with(root, newer_region()), "protocol version 2"),
    "dead server": (dead_folder, "has ended"),
    "slots of any size": (huge_folder, "its slots of 268435457 bytes are larger than any server makes them"),
    "another container": (folder_of_links, "is the server in another container?"),
    "pipes": (folder_of_pipes, "it is no file"),
    "replaced": (folder_with_other_replies, "another process has replaced them"),
}


@pytest.mark.parametrize("case", UNUSABLE)
def test_where_it_cannot_be_used_it_is_zeromq_and_the_log_says_why_once(
    make: Make, share: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture, case: str
):
    prepare, reason = UNUSABLE[case]
    folder = str(prepare(tmp_path))
    transport = make(folder)
    assert ask(transport, b"x") == b"zmq x"
    transport.absorb_handshake({"shm_session_dir": folder})
    (record,) = [one for one in caplog.records if one.name == "urlab_client.transports.shm"]
    assert record.levelno == logging.WARNING
    assert reason in record.getMessage()
    transport.absorb_handshake({"shm_session_dir": str(share().folder)})
    assert ask(transport, b"x") == b"X"


def test_a_second_client_uses_zeromq_until_the_first_has_closed_and_it_says_hello_again(
    share: Any, make: Make, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO)
    folder = share().folder
    first, second = make(folder), make(folder)
    assert [ask(one, b"x") for one in (first, second)] == [b"X", b"zmq x"]
    (record,) = [one for one in caplog.records if one.name == "urlab_client.transports.shm"]
    assert (record.levelno, "another client uses it" in record.getMessage()) == (logging.INFO, True)
    first.close()
    assert ask(second, b"x") == b"zmq x"
    second.absorb_handshake({"shm_session_dir": str(folder)})
    assert ask(second, b"x") == b"X"


def test_another_handshake_keeps_the_regions_of_the_same_server_and_leaves_those_of_another(share: Any, make: Make):
    first, second = share(lambda _: b"first"), share(lambda _: b"second")
    transport, rival = make(first.folder), make(first.folder)
    transport.absorb_handshake({"shm_session_dir": str(first.folder)})
    assert (ask(transport, b"x"), ask(rival, b"x")) == (b"first", b"zmq x")
    transport.absorb_handshake({"shm_session_dir": str(second.folder)})
    rival.absorb_handshake({"shm_session_dir": str(first.folder)})
    assert (ask(transport, b"x"), ask(rival, b"x")) == (b"second", b"first")


def test_a_server_that_stopped_to_share_is_left(share: Any, make: Make):
    transport = make(share().folder)
    transport.absorb_handshake({})
    assert (ask(transport, b"x"), transport.is_attached) == (b"zmq x", False)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_a_folder_of_another_user_is_told(share: Any, tmp_path: Path):
    program = """# preloaded
import os, sys
from urlab_client.transports import shm
os.setuid(65534)
try:
    shm._folder(sys.argv[1])
except shm.Unusable as refused:
    print(refused)
"""
    folder = Path("/dev/shm") / f"urlab-test-{os.getpid()}"
    folder.mkdir(mode=0o700)
    try:
        command = [sys.executable, "-c", program, str(folder)]
        said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout
    finally:
        folder.rmdir()
    assert f"{folder} is that of user 0, and this program runs as user 65534" in said
    assert "as one user" in said


# -- a server as the original's: plain files ----------------------------------------------------------------------


class OriginalServer:
    """Plain files, as the protocol describes them, and a thread that answers with capital letters."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = []
        for name in (REQUEST_FILE, REPLY_FILE):
            buffer = bytearray(region_bytes(4096, 2))
            format_region(buffer, 4096, 2)
            (folder / name).write_bytes(buffer)
            self.files.append((folder / name).open("r+b", buffering=0))

    def serve(self, requests: int) -> threading.Thread:
        asked, answered = (FileRegion(file.fileno()) for file in self.files)
        thread = threading.Thread(target=self._answer, args=(requests, asked, asked.sequence, answered))
        thread.start()
        return thread

    def _answer(self, requests: int, asked: FileRegion, seen: int, answered: FileRegion) -> None:
        deadline = time.monotonic() + 60
        while requests and time.monotonic() < deadline:
            found = asked.read(seen)
            if found is not None:
                seen, requests = found[0], requests - 1
                answered.write(found[1].upper())

    def close(self) -> None:
        for file in self.files:
            file.close()


@pytest.fixture
def original(tmp_path: Path) -> Iterator[OriginalServer]:
    (tmp_path / "original").mkdir()
    server = OriginalServer(tmp_path / "original")
    yield server
    server.close()


def test_the_plain_files_of_another_server_are_used_without_mapping_them(original: OriginalServer, make: Make):
    transport = make(original.folder)
    thread = original.serve(50)
    assert [ask(transport, b"request %d" % number) for number in range(50)] == [b"REQUEST %d" % n for n in range(50)]
    thread.join()
    assert str(original.folder) not in Path("/proc/self/maps").read_text()


@pytest.mark.parametrize(("name", "size"), [(REQUEST_FILE, 0), (REQUEST_FILE, 20), (REPLY_FILE, 0), (REPLY_FILE, 20)])
def test_plain_files_that_are_cut_short_cost_an_error_and_then_it_is_zeromq(
    original: OriginalServer, make: Make, name: str, size: int
):
    transport = make(original.folder)
    os.truncate(original.folder / name, size)
    with pytest.raises(URLabRPCError, match=r"the shared memory of .* is spoilt: the file is too short") as raised:
        ask(transport, b"x")
    assert raised.value.code == "transport_error"
    assert ask(transport, b"x") == b"zmq x"


# -- late and lost replies ----------------------------------------------------------------------------------------


def test_a_late_reply_is_never_taken_for_the_answer_to_another_request(share: Any, make: Make):
    gate = Gate()
    transport = make(share(gate).folder)
    begin = time.monotonic()
    with pytest.raises(URLabTimeoutError, match=r"no answer from tcp://.* within 0.3 s") as raised:
        ask(transport, b"slow", timeout_ms=300)
    assert time.monotonic() - begin > 0.29
    assert raised.value.connected
    assert [ask(transport, word) for word in (b"a", b"b")] == [b"zmq a", b"zmq b"]
    gate.open.set()
    assert await_shm(transport, b"c") == b"C"
    assert ask(transport, b"d") == b"D"


def test_a_reply_that_is_due_to_a_client_that_left_is_not_taken_by_the_next(share: Any, make: Make):
    gate = Gate()
    folder = share(gate).folder
    first = make(folder)
    with pytest.raises(URLabTimeoutError):
        ask(first, b"slow", timeout_ms=50)
    first.close()
    second = make(folder)
    assert second.is_attached
    assert ask(second, b"a") == b"zmq a"
    gate.open.set()
    assert await_shm(second, b"b") == b"B"


def test_an_interrupted_request_leaves_no_reply_for_the_next(share: Any, make: Make):
    gate = Gate()
    transport = make(share(gate).folder)

    def interrupt() -> None:
        assert gate.entered.wait(60)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        ask(transport, b"slow", timeout_ms=20_000)
    thread.join()
    assert ask(transport, b"a") == b"zmq a"
    gate.open.set()
    assert await_shm(transport, b"b") == b"B"


def test_no_reply_is_due_to_a_request_that_was_never_written(share: Any):
    link = ShmLink(share().folder, "here")
    with pytest.raises(PayloadTooLarge):
        link.ask(b"x" * RPC_STRIDE, 1.0)
    assert link.is_free
    assert link.ask(b"x", 1.0) == b"X"
    link.close()


def test_a_slow_answer_within_the_time_limit_is_waited_for(share: Any, make: Make):
    gate = Gate()
    transport = make(share(gate).folder)
    timer = threading.Timer(0.5, gate.open.set)
    timer.start()
    assert ask(transport, b"slow") == b"SLOW"
    timer.join()


def silent_server(root: Path) -> tuple[ShmFolder, list[Any]]:
    """One that never answers."""
    folder = ShmFolder(root)
    regions = [folder.make_region(name, RPC_STRIDE, 2, peers_write=True) for name in (REQUEST_FILE, REPLY_FILE)]
    return folder, [*regions, folder.make_region(SEALED_REPLY_FILE, RPC_STRIDE, 2)]


def test_a_server_that_ends_meanwhile_is_told_soon_and_the_next_request_goes_over_zeromq(make: Make, tmp_path: Path):
    folder, regions = silent_server(tmp_path)
    transport = make(folder.path)
    timer = threading.Timer(0.1, folder.close)
    timer.start()
    with pytest.raises(ServerEndedError, match=r"the server at tcp://.* ended before it answered: start one") as raised:
        ask(transport, b"x", timeout_ms=600_000)
    assert isinstance(raised.value, URLabTimeoutError)
    assert (raised.value.code, raised.value.connected) == ("timeout", False)
    assert "discover() again" in str(raised.value)
    assert ask(transport, b"x") == b"zmq x"
    timer.join()
    for region in regions:
        region.close()


def test_a_server_that_is_killed_while_it_writes_its_reply_is_told_within_a_second(make: Make, tmp_path: Path):
    folder, regions = silent_server(tmp_path)
    transport = make(folder.path)

    def die_amid_the_reply() -> None:
        struct.pack_into("<IQ", regions[2].region._slots[1], 0, 20, 0)  # and neither index nor sequence
        os.close(folder._lock)

    timer = threading.Timer(0.1, die_amid_the_reply)
    timer.start()
    with pytest.raises(ServerEndedError):
        ask(transport, b"x", timeout_ms=60_000)
    timer.join()
    for region in regions:
        region.close()


def test_a_request_that_was_written_over_is_sent_again_and_served_once(share: Any, make: Make):
    served: list[bytes] = []

    def handle(frame: bytes) -> bytes:
        served.append(frame)
        return b"%d" % len(served)

    shared = share(handle)
    transport = make(shared.folder)
    with scribbling(shared.folder / REQUEST_FILE):
        replies = [ask(transport, b"request %d" % number, 20_000) for number in range(1, 21)]
    assert replies == [b"%d" % number for number in range(1, 21)]
    assert served == [b"request %d" % number for number in range(1, 21)]


@contextlib.contextmanager
def scribbling(path: Path) -> Iterator[None]:
    """Meanwhile another thread writes over the sequence, the index and the first slots, again and again."""
    stop, chance = threading.Event(), random.Random(1)

    def scribble() -> None:
        with path.open("r+b", buffering=0) as file:
            while not stop.wait(0.001):
                for start in (16, 24, 64, 64 + RPC_STRIDE):
                    if chance.random() < 0.3:
                        os.pwrite(file.fileno(), chance.randbytes(4), start)

    thread = threading.Thread(target=scribble)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_without_a_lock_it_is_not_judged_whether_the_server_lives(make: Make, tmp_path: Path):
    folder, regions = silent_server(tmp_path)
    (folder.path / OWNER_FILE).unlink()
    transport = make(folder.path)
    with pytest.raises(URLabTimeoutError, match="no answer from"):
        ask(transport, b"x", timeout_ms=300)
    for region in regions:
        region.close()
    folder.close()


# -- the end ------------------------------------------------------------------------------------------------------


def held(folder: Path) -> tuple[int, int]:
    """How many descriptors and mappings of a folder, and of sealed regions, this process has."""
    descriptors = 0
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # another thread's, closed meanwhile
            target = str(link.readlink())
            descriptors += str(folder) in target or SEALED_MEMORY in target
    mappings = Path("/proc/self/maps").read_text()
    return descriptors, mappings.count(str(folder)) + mappings.count(SEALED_MEMORY)


def test_closing_leaves_nothing_open_and_may_be_done_twice(share: Any, make: Make):
    folder = share().folder
    before, threads = held(folder), set(threading.enumerate())
    transport = make(folder)
    assert ask(transport, b"x") == b"X"
    assert held(folder) > before
    transport.close()
    transport.close()
    assert held(folder) == before
    assert set(threading.enumerate()) <= threads
    transport.absorb_handshake({"shm_session_dir": str(folder)})
    assert not transport.is_attached


def test_a_server_that_is_refused_leaves_nothing_open(make: Make, tmp_path: Path):
    folder = folder_with(tmp_path, b"x" * 100)
    before = held(folder)
    transport = make(folder)
    assert held(folder) == before
    assert not transport.is_attached

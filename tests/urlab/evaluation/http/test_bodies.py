"""What reading a body may cost, whatever is in it: measured in a process of its own, by the kernel's figures."""

import json
import pickle
import subprocess
import sys
from collections.abc import Iterator

import msgspec
import pytest

from urlab.evaluation.encoding import BodyFormat
from urlab.evaluation.http.bodies import EXTRA_BYTES, MAX_VALUES, LongWork, read_body

LARGEST = 8 << 20
"""The limit of the server's bodies, unless it is told otherwise."""

READ = """
import os
import sys
from pathlib import Path
from urlab.evaluation.encoding import BodyFormat
from urlab.evaluation.errors import BadBody
from urlab.evaluation.http.bodies import read_body
from urlab.evaluation.simulation import actions
from urlab.evaluation.embodiments import FRANKA_PANDA

def memory(what):
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(what):
            return 1024 * int(line.split()[1])

def read(body, name):
    Path("/proc/self/clear_refs").write_text("5")
    before = memory("VmRSS:")
    try:
        value = read_body(body, BodyFormat[name])
        said = "read"
        actions.parse_action({"control_type": "joint_position", "action": value}, FRANKA_PANDA, default_is_rel=True)
    except BadBody as refused:
        said = "refused"
    except actions.ActionError:
        pass
    print(memory("VmHWM:") - before, said, flush=True)

for file in sys.argv[1:]:
    if os.fork() == 0:  # each in a process of its own, whose memory no other has used
        read(Path(file).read_bytes(), Path(file).suffix[1:])
        os._exit(0)
    if os.wait()[1]:
        print(0, "died", flush=True)
"""


def listed(first: bytes, others: bytes) -> bytes:
    """The pickle of a list, of which the others may refer to the first by ``h\x00``; each is a pickle's middle part."""
    return b"\x80\x04](" + first + b"\x94" + others + b"e."


def text(value: str) -> bytes:
    raw = value.encode()
    return b"X" + len(raw).to_bytes(4, "little") + raw


def encoded_array(data: bytes, length: int) -> bytes:
    """The middle part of a pickle: a dict that stands for an array."""
    shape = b"(J" + length.to_bytes(4, "little") + b"l"
    return (
        b"}("
        + text("type")
        + text("numpy_array")
        + text("dtype")
        + text("uint8")
        + text("shape")
        + shape
        + (text("data") + data + b"u")
    )


BYTES = 999_999
DATA = text("AAAA" * (BYTES // 3))


def pickles() -> Iterator[tuple[str, bytes]]:
    yield "one array, a thousand times", listed(encoded_array(DATA, BYTES), b"h\x00" * 1000)
    yield "a thousand arrays over the same text", listed(DATA, encoded_array(b"h\x00", BYTES) * 1000)
    yield "empty dicts", listed(b"}", b"}" * (MAX_VALUES - 10))
    yield "dicts of one value", listed(b"}", (b"}" + text("a") + b"Ns") * (MAX_VALUES // 4 - 5))
    yield "dicts that are remembered", listed(b"}", b"}\x94" * (MAX_VALUES // 2 - 5))
    yield "more opcodes than there may be", listed(b"}", b"}" * (LARGEST - 10))
    yield "a long text that is wide", b"\x80\x04" + text("A" * (LARGEST - 100) + "\U0001f600") + b"."
    encoded = b"c_codecs\nencode\nh\x00" + text("latin1") + b"\x86R"
    yield "text that is encoded over and over", listed(DATA, encoded * 40)
    dtype = b"cnumpy\ndtype\n" + text("f8") + b"\x89\x88\x87R"
    yield "dtypes", listed(b"N", dtype * 40_000)
    array = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85C\x01b\x87R"
    yield "arrays without contents", listed(b"N", array * 30_000)


def texts() -> Iterator[tuple[str, bytes]]:
    for name, part in (
        ("lists", b"[],"), ("dicts", b"{},"), ("text", b'"a",'), ("whole numbers", b"300,"), ("numbers", b".5e1,"[1:]),
        ("dicts of one value", b'{"a":1},'), ("different dicts", b'{"k":[]},'),
    ):  # fmt: skip
        yield f"many {name}", b"[" + part * ((LARGEST - 10) // len(part)) + b"1]"
    keys = b",".join(b'"%d":[]' % number for number in range(MAX_VALUES // 2 - 10))
    yield "many keys", b"{" + keys + b"}"
    yield "deep lists", b"[" * LARGEST
    yield "deep dicts", b'{"a":' * (MAX_VALUES - 10)
    yield "a number of many digits", b"1" * LARGEST
    yield "a long text that is wide", json.dumps("A" * (LARGEST - 100) + "\U0001f600", ensure_ascii=False).encode()
    yield "text of escapes", b'"' + b"\\u0041" * ((LARGEST - 10) // 6) + b'"'


def packs() -> Iterator[tuple[str, bytes]]:
    for name, part in (
        ("lists", b"\x90"), ("dicts", b"\x80"), ("numbers", b"\x01"), ("extensions", b"\xd4\x05a"),
        ("dicts of one value", b"\x81\xa1a\x90"), ("times", b"\xd6\xff\x00\x00\x00\x00"), ("text", b"\xa1a"),
    ):  # fmt: skip
        times = (LARGEST - 10) // len(part)
        yield f"many {name}", b"\xdd" + times.to_bytes(4, "big") + part * times
        few = (250 << 10) // len(part)
        yield f"few {name}", b"\xdd" + few.to_bytes(4, "big") + part * few
    yield "deep lists", b"\x91" * (MAX_VALUES - 10)
    yield (
        "a long array of short numbers",
        msgspec.msgpack.encode(
            {"type": "numpy_array", "dtype": "float16", "shape": [LARGEST // 2 - 100], "data": bytes(LARGEST - 200)}
        ),
    )


BODIES = {
    f"{body_format.name}-{name}": (body_format, body)
    for body_format, bodies in ((BodyFormat.PICKLE, pickles), (BodyFormat.JSON, texts), (BodyFormat.MSGPACK, packs))
    for name, body in bodies()
}


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str]]:
    """What reading each body took in bytes, and what came of it."""
    if sys.platform != "linux":
        pytest.skip("the peak of a process's memory is told by Linux")
    folder = tmp_path_factory.mktemp("bodies")
    files = [folder / f"{number}.{one.name}" for number, (one, _) in enumerate(BODIES.values())]
    for file, (_, body) in zip(files, BODIES.values(), strict=True):
        file.write_bytes(body)
    ended = subprocess.run([sys.executable, "-c", READ, *map(str, files)], capture_output=True, text=True, timeout=90)
    assert ended.returncode == 0, ended.stderr
    lines = (line.split() for line in ended.stdout.splitlines())
    return {name: (int(taken), said) for name, (taken, said) in zip(BODIES, lines, strict=True)}


@pytest.mark.parametrize("name", BODIES)
def test_reading_a_body_takes_64_megabytes_and_ten_times_its_size_at_most(
    figures: dict[str, tuple[int, str]], name: str
) -> None:
    taken, said = figures[name]
    assert said in ("read", "refused")
    assert taken <= EXTRA_BYTES + 10 * len(BODIES[name][1]), said


def test_arrays_that_share_their_data_are_read_from_one_pickle() -> None:
    from urlab.evaluation.http.bodies import read_body

    one = {"type": "numpy_array", "dtype": "float64", "shape": (2,), "data": "AAAAAAAA8D8AAAAAAAAAQA=="}
    first, second, other = read_body(pickle.dumps([one, one, {**one, "shape": [1, 2]}]), BodyFormat.PICKLE)  # type: ignore[misc]
    assert first.tolist() == second.tolist() == [1.0, 2.0]
    assert other.tolist() == [[1.0, 2.0]]


def test_a_small_body_that_stands_for_many_values_is_left_to_a_reader_with_time() -> None:
    shared = list(range(20))
    body = pickle.dumps([shared] * 600, 5)
    assert len(body) < 2000
    with pytest.raises(LongWork):
        read_body(body, BodyFormat.PICKLE, at_once=10_000)
    assert read_body(body, BodyFormat.PICKLE) == [shared] * 600

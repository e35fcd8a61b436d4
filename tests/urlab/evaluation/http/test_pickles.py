"""Pickles of strangers: what stock clients send is read, everything else is refused and runs nothing."""

import base64
import copyreg
import io
import os
import pickle
import random
import resource
import struct
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from urlab.evaluation import encoding
from urlab.evaluation.encoding import BodyFormat
from urlab.evaluation.errors import BadBody
from urlab.evaluation.http.bodies import read_body

PROTOCOLS = range(6)


def _read(body: bytes) -> Any:
    return read_body(body, BodyFormat.PICKLE)


def _same(ours: Any, theirs: Any) -> bool:
    if isinstance(theirs, np.ndarray):
        return isinstance(ours, np.ndarray) and ours.dtype == theirs.dtype and np.array_equal(ours, theirs)
    if isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(_same(ours[key], theirs[key]) for key in theirs)
    if isinstance(theirs, list | tuple):
        same_kind = type(ours) is type(theirs) and len(ours) == len(theirs)
        return same_kind and all(_same(a, b) for a, b in zip(ours, theirs, strict=True))
    return bool(ours == theirs)


SHARED = np.linspace(0, 1, 9)
HONEST = [
    {"worker_ids": ["0", "1"]},
    {"0": {"action": [0.0, -1.5, 3], "control_type": "joint_position", "is_rel": True, "base_motion": None}},
    {"0": {"action": ([0.1, 0.2, 0.3], (1.0, 0.0, 0.0, 0.0), np.array([0.04, 0.04])), "control_type": "ee_pose"}},
    {"0": {"action": SHARED}, "1": {"action": SHARED}},
    [{"0": {"action": np.arange(9, dtype=np.float32)}}] * 3,
    {"strided": np.arange(12.0).reshape(3, 4)[:, ::2], "fortran": np.asfortranarray(np.arange(6).reshape(2, 3))},
    {"scalars": [np.float32(0.5), np.float64(2.5), np.int64(-3), np.bool_(True)], "big": np.arange(3, dtype=">f8")},
    {"image": np.zeros((4, 5, 3), np.uint8), "none": None, "int": -(2**60), "deep": [[[]]]},
    {"text": "ünïcode", "bytes": b"ab", "flags": [True, False], "scalar array": np.array(3.5)},
]


@pytest.mark.parametrize("value", HONEST)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_clients_send_is_read_as_pickle_reads_it(value: Any, protocol: int) -> None:
    assert _same(_read(pickle.dumps(value, protocol)), value)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_pickle_of_numpy_1_is_read(protocol: int) -> None:
    """The name is one byte shorter, and old pickles say its length."""
    new = pickle.dumps({"a": np.arange(4.0)[::2], "b": np.float32(2)}, protocol)
    old = new.replace(b"\x16numpy._core.multiarray", b"\x15numpy.core.multiarray").replace(
        b"numpy._core", b"numpy.core"
    )
    frame = old.find(b"\x95")
    if frame == 2:
        old = old[:3] + struct.pack("<Q", len(old) - 11) + old[11:]
    assert b"_core" not in old
    assert _same(_read(old), {"a": np.array([0.0, 2.0]), "b": 2.0})


class _Calls:
    """Pickles as a call of anything with anything."""

    def __init__(self, *reduced: Any) -> None:
        self._reduced = reduced

    def __reduce__(self) -> Any:
        return self._reduced


def _armed(marker: str) -> dict[str, bytes]:
    """Pickles that make the file ``marker`` when they are loaded by pickle itself."""
    command = f"touch {marker}"
    line = command.encode()
    python = f"open({marker!r}, 'w')"
    return {
        "os.system": pickle.dumps(_Calls(os.system, (command,)), 5),
        "os.system protocol 0": pickle.dumps(_Calls(os.system, (command,)), 0),
        "eval": pickle.dumps(_Calls(eval, (python,)), 2),
        "exec in a dict": pickle.dumps({"worker_ids": [_Calls(exec, (python,))]}, 5),
        "inst": b"(S'" + line + b"'\nios\nsystem\n.",
        "obj": b"(cos\nsystem\nS'" + line + b"'\no.",
        "newobj": b"\x80\x02csubprocess\nPopen\n(X" + struct.pack("<I", len(line)) + line + b"K\x00NNNNNNN\x88t\x81.",
        "dotted": b"\x80\x04\x8c\x05numpy\x8c\x0dcore.os.system\x93\x8c" + bytes([len(line)]) + line + b"\x85R.",
        "state of a reduced array": pickle.dumps(
            _Calls(np.ndarray, ((0,),), (1, (1,), np.dtype("O"), False, [_Calls(os.system, (command,))])), 2
        ),
        "object array": pickle.dumps(np.array([_Calls(os.system, (command,))], dtype=object), 5),
        "list items": pickle.dumps(_Calls(list, (), None, iter([_Calls(os.system, (command,))])), 4),
        "through getattr": b"cbuiltins\ngetattr\n(cos\n__dict__\nX\x06\x00\x00\x00systemtR(X"
        + struct.pack("<I", len(line))
        + line
        + b"tR.",
    }


@pytest.mark.parametrize("name", sorted(_armed("x")))
def test_an_armed_pickle_is_refused_and_runs_nothing(name: str, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    with pytest.raises(BadBody):
        _read(_armed(str(marker))[name])
    assert not marker.exists()


def test_the_armed_pickles_are_armed(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    pickle.loads(_armed(str(marker))["os.system"])
    assert marker.exists()


def _array_claim(shape: tuple[int, ...]) -> bytes:
    return pickle.dumps(np.zeros(2), 5).replace(b"K\x02\x85", b"J" + struct.pack("<i", shape[0]) + b"\x85")


_RECONSTRUCT = b"\x80\x02cnumpy._core.multiarray\n_reconstruct\n"

TRICKS = {
    "array of 8 GB from 16 bytes": _array_claim((10**9,)),
    "bytes of 1 TB": b"\x80\x04\x8e" + struct.pack("<Q", 1 << 40) + b"x.",
    "bytearray of 1 TB": b"\x80\x05\x96" + struct.pack("<Q", 1 << 40) + b"x.",
    "text of 1 TB": b"\x80\x04\x8d" + struct.pack("<Q", 1 << 40) + b"x.",
    "memo at 2**31": b"\x80\x02}r" + struct.pack("<I", 2**31 - 1) + b"0.",
    "memo at 2**40 by text": b"\x80\x02}p1099511627776\n.",
    "memo at a negative place": b"\x80\x02}p-5\n.",
    "frame of 1 TB, cut": b"\x80\x04\x95" + struct.pack("<Q", 1 << 40) + b"}",
    "laughs": b"\x80\x02](" + b"]q\x00" + b"".join(b"](h%ch%ce" % (i, i) + b"q%c" % (i + 1) for i in range(60)) + b"e.",
    "deep lists": b"\x80\x02" + b"](" * 100_000 + b"e" * 100_000 + b".",
    "deep tuples": b"\x80\x02)" + b"\x85" * 200_000 + b".",
    "deep tuples as a key": b"\x80\x02})" + b"\x85" * 200_000 + b"Ns.",
    "deep tuples as a key of DICT": b"\x80\x02()" + b"\x85" * 200_000 + b"Nd.",
    "deep tuples as a key from the memo": b"\x80\x02})" + b"\x85" * 200_000 + b"q\x000h\x00Ns.",
    "a stored key": b"\x80\x02)" + b"\x85" * 200_000 + b"q\x00\x85](h\x00}h\x00Nse\x86.",
    "a key whose hash never ends": b"\x80\x02})q\x00" + b"h\x00\x86q\x00" * 60 + b"Ns.",
    "list in itself": b"\x80\x02]q\x00h\x00a.",
    "dict in itself": b"\x80\x02}q\x00X\x01\x00\x00\x00ah\x00s.",
    "many values": b"\x80\x02](" + b"K\x00" * 300_000 + b"e.",
    "huge int": b"\x80\x02\x8b" + struct.pack("<i", 1 << 20) + b"\x7f" * (1 << 20) + b".",
    "huge text int": b"L" + b"9" * 5000 + b"L\n.",
    "negative length": b"\x80\x02\x8b" + struct.pack("<i", -5) + b"xxxxx.",
    "encode bomb": b"\x80\x02(c_codecs\nencode\nq\x00X"
    + struct.pack("<I", 1 << 20)
    + b"a" * (1 << 20)
    + b"X\x06\x00\x00\x00latin1\x86q\x01R"
    + b"h\x00h\x01R" * 5000
    + b"l.",
    "protocol 9": b"\x80\x09}.",
    "persistent id": b"Pmine\n.",
    "binary persistent id": b"K\x01Q.",
    "extension registry": b"\x80\x02\x82\x01.",
    "out of band buffer": b"\x80\x05\x97.",
    "set": pickle.dumps({1, 2}, 4),
    "ordered dict": pickle.dumps(OrderedDict(a=1), 4),
    "complex": pickle.dumps(1j, 4),
    "state of a dict": b"\x80\x02}}b.",
    "state of a list": b"\x80\x02]}b.",
    "state of a name": b"\x80\x02cnumpy\nndarray\n}b.",
    "no state of a name": b"\x80\x02cnumpy\nndarray\nNb.",
    "state of a maker": b"\x80\x02c_codecs\nencode\n}X\x05\x00\x00\x00_makeNsb.",
    "a bare name": b"\x80\x02cnumpy\nndarray\n.",
    "a bare dtype": pickle.dumps(np.dtype("f8"), 4),
    "numpy.ndarray called": b"\x80\x02cnumpy\nndarray\nK\x05\x85R.",
    "dtype of objects": b"\x80\x02cnumpy\ndtype\nX\x01\x00\x00\x00O\x85R.",
    "dtype without arguments": b"\x80\x02cnumpy\ndtype\n)R.",
    "dtype with a list": b"\x80\x02cnumpy\ndtype\n]R.",
    "dtype with an array as order": pickle.dumps(np.arange(3.0), 5).replace(b"\x8c\x01<", b"](K\x01e"),
    "frombuffer with rubbish": b"\x80\x02cnumpy._core.numeric\n_frombuffer\n(K\x01K\x02K\x03K\x04tR.",
    "reconstruct of another class": _RECONSTRUCT + b"(cnumpy\ndtype\nK\x00\x85C\x01btR.",
    "reconstruct without state": _RECONSTRUCT + b"(cnumpy\nndarray\nK\x00\x85C\x01btR.",
    "structured array": pickle.dumps(np.zeros(2, [("a", "f8"), ("b", "i4")]), 5),
    "text array": pickle.dumps(np.array(["a", "b"]), 5),
    "dates": pickle.dumps(np.array(["2020-01-01"], "M8[D]"), 5),
    "masked array": pickle.dumps(np.ma.masked_array([1.0, 2.0], [True, False]), 5),
    "encode with another codec": b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00aX\x05\x00\x00\x00rot13\x86R.",
    "reduce of text": b"\x80\x02X\x01\x00\x00\x00a)R.",
    "stack empty": b"\x80\x02.",
    "two values": b"\x80\x02NN.",
    "trailing bytes": b"\x80\x02N.N.",
    "no end": b"\x80\x02N",
    "mark as value": b"\x80\x02(.",
    "tuple over a mark": b"\x80\x02(N\x86.",
    "odd items": b"\x80\x02}(Nu.",
    "append to a dict": b"\x80\x02}Na.",
    "unknown memo": b"\x80\x02h\x07.",
    "int keys": pickle.dumps({0: {}}, 5),
    "not a pickle": b"worker_ids=0",
    "json": b'{"worker_ids": ["0"]}',
    "nothing but zeros": bytes(100),
}


@pytest.mark.parametrize("name", TRICKS)
def test_a_trick_is_refused_without_claiming_memory(name: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(BadBody):
        _read(TRICKS[name])
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown_kib < 200_000


def test_deep_nesting_is_refused_on_the_small_stack_of_a_thread() -> None:
    outcome: list[Exception] = []

    def read() -> None:
        try:
            _read(TRICKS["deep tuples as a key"])
        except BadBody as problem:
            outcome.append(problem)

    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
    assert len(outcome) == 1


def test_an_extension_code_that_this_process_knows_is_refused_too(tmp_path: Path) -> None:
    copyreg.add_extension("posix", "system", 77)
    try:
        with pytest.raises(BadBody, match="EXT1"):
            _read(b"\x80\x02\x82\x4d(X\x04\x00\x00\x00truetR.")
    finally:
        copyreg.remove_extension("posix", "system", 77)


def test_a_refusal_names_what_was_asked_for() -> None:
    with pytest.raises(BadBody, match=r"refers to posix\.system; only builtins and numpy arrays of numbers are read"):
        _read(pickle.dumps(_Calls(os.system, ("true",)), 4))


_PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@given(value=_PLAIN, protocol=st.sampled_from(PROTOCOLS))
@settings(max_examples=150, deadline=None)
def test_any_plain_value_comes_back(value: Any, protocol: int) -> None:
    assert _read(pickle.dumps(value, protocol)) == value or value is None


@given(body=st.binary(max_size=60))
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_a_value_or_a_refusal(body: bytes) -> None:
    for body_format in BodyFormat:
        try:
            read_body(body, body_format)
        except BadBody:
            continue


def test_mutated_pickles_are_a_value_or_a_refusal() -> None:
    dice = random.Random(7)
    seeds = [pickle.dumps(value, protocol) for value in HONEST for protocol in (0, 2, 4, 5)]
    seeds += [body for body in TRICKS.values() if len(body) < 2000]
    for _ in range(4000):
        body = bytearray(dice.choice(seeds))
        for _ in range(dice.randint(1, 6)):
            at = dice.randrange(len(body))
            body[at : at + dice.randint(0, 2)] = dice.randbytes(dice.randint(0, 2))
            body = body or bytearray(b".")
        try:
            _read(bytes(body))
        except BadBody:
            continue


def test_an_array_as_a_dict_is_decoded_in_every_language() -> None:
    raw = np.arange(3.0).tobytes()
    sent = {"0": {"type": "numpy_array", "dtype": "float64", "shape": [3], "data": base64.b64encode(raw).decode()}}
    for body_format, body in (
        (BodyFormat.PICKLE, pickle.dumps(sent, 5)),
        (BodyFormat.JSON, msgspec.json.encode(sent)),
        (BodyFormat.MSGPACK, msgspec.msgpack.encode(sent)),
    ):
        read = read_body(body, body_format)
        assert isinstance(read, dict)
        assert read["0"].tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize(
    "change", [{"dtype": "object"}, {"shape": [10**9]}, {"shape": [-1]}, {"data": "%%%"}, {"data": 3}, {"dtype": None}]
)
def test_a_dict_that_only_claims_to_be_an_array_is_refused(change: dict[str, Any]) -> None:
    sent = {"type": "numpy_array", "dtype": "float64", "shape": [1], "data": "AAAAAAAAAAA="}
    assert _same(read_body(msgspec.json.encode(sent), BodyFormat.JSON), np.zeros(1))
    with pytest.raises(BadBody, match="array"):
        read_body(msgspec.json.encode({**sent, **change}), BodyFormat.JSON)


def test_deep_json_and_msgpack_are_refused() -> None:
    with pytest.raises(BadBody):
        read_body(b"[" * 100_000 + b"]" * 100_000, BodyFormat.JSON)
    with pytest.raises(BadBody):
        read_body(b"\x91" * 100_000 + b"\xc0", BodyFormat.MSGPACK)


def test_a_pickle_is_read_from_its_bytes_alone() -> None:
    body = pickle.dumps({"worker_ids": ["0"]}, 5)
    assert _read(body) == pickle.load(io.BytesIO(body))


def test_names_of_types_from_strangers_are_not_kept() -> None:
    before = encoding._plain_dtype.cache_info().currsize
    for number in range(5):
        with pytest.raises(BadBody, match="dtype of numbers"):
            read_body(
                msgspec.json.encode({"type": "numpy_array", "dtype": f"{number}" * 100_000, "data": ""}),
                BodyFormat.JSON,
            )
    assert encoding._plain_dtype.cache_info().currsize == before

"""What is encoded, other decoders read: the msgpack package, and json with base64."""

import base64
import json
import struct
from collections.abc import Callable
from enum import StrEnum
from typing import Any

import msgpack
import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from urlab_wire import DecodeError, decode, encode
from urlab_wire.codec import looks_like_json
from urlab_wire.enums import Encoding

Trees = Callable[..., st.SearchStrategy[dict[str, Any]]]

quick = settings(max_examples=60, deadline=None, database=None)


def unpack(message: Any) -> Any:
    return msgpack.unpackb(encode(message), raw=False, strict_map_key=True)


def unjson(message: Any) -> Any:
    return json.loads(encode(message, Encoding.JSON), parse_constant=_no_constants)


def _no_constants(word: str) -> None:
    raise AssertionError(f"{word} is not JSON")


BINARY = [b"\x00\xff", bytearray(b"\x00\xff"), memoryview(b"\x00\xff")]
NUMPY = [
    (np.arange(3.0), [0.0, 1.0, 2.0]),
    (np.arange(4).reshape(2, 2), [[0, 1], [2, 3]]),
    (np.arange(6.0)[::2], [0.0, 2.0, 4.0]),
    (np.array(2.5), 2.5),
    (np.zeros(0), []),
    (np.array([True, False]), [True, False]),
    (np.float64(0.1), 0.1),
    (np.float32(0.5), 0.5),
    (np.int64(-7), -7),
    (np.uint8(255), 255),
    (np.bool_(True), True),
    (np.str_("word"), "word"),
]


class TestMsgpack:
    @given(number=st.integers(-(2**63), 2**64 - 1))
    @quick
    def test_integers_stay_integers(self, number: int) -> None:
        got = unpack({"n": number})["n"]
        assert type(got) is int
        assert got == number

    @given(number=st.floats())
    @quick
    def test_floats_travel_as_float64_bit_for_bit(self, number: float) -> None:
        frame = encode({"x": number})
        assert frame == b"\x81\xa1x\xcb" + struct.pack(">d", number)
        assert struct.pack(">d", unpack({"x": number})["x"]) == struct.pack(">d", number)

    def test_a_whole_float_is_not_made_an_integer(self) -> None:
        assert type(unpack({"x": 2.0})["x"]) is float

    @pytest.mark.parametrize("blob", BINARY, ids=lambda blob: type(blob).__name__)
    def test_binary_travels_as_bin(self, blob: Any) -> None:
        assert encode({"b": blob}) == b"\x81\xa1b\xc4\x02\x00\xff"

    def test_the_model_travels_once(self) -> None:
        assert unpack({"mjb": b"model"}) == {"mjb": b"model"}

    @pytest.mark.parametrize(("value", "plain"), NUMPY)
    def test_numpy_values_travel_as_lists_and_numbers(self, value: Any, plain: Any) -> None:
        got = unpack({"v": value})["v"]
        assert got == plain
        assert type(got) is type(plain)

    def test_null_true_and_false_stay_what_they_are(self) -> None:
        message = {"nothing": None, "yes": True, "no": False}
        assert unpack(message) == message

    def test_entries_keep_their_order(self) -> None:
        assert list(unpack({"z": 1, "a": 2, "m": 3})) == ["z", "a", "m"]

    @given(data=st.data())
    @quick
    def test_any_tree_reads_back(self, trees: Trees, data: st.DataObject) -> None:
        tree = data.draw(trees())
        assert unpack(tree) == tree
        assert decode(encode(tree)) == tree

    @given(data=st.data())
    @quick
    def test_frames_of_another_encoder_are_read(self, trees: Trees, data: st.DataObject) -> None:
        tree = data.draw(trees())
        assert decode(msgpack.packb(tree)) == tree

    @pytest.mark.parametrize("depth", range(1, 14))
    @pytest.mark.parametrize("leaf", [1, 2.5, "word", b"\x00\xff", None, True, [{"a": b"\x01"}], {}], ids=repr)
    def test_every_kind_of_value_is_read_at_every_depth(self, depth: int, leaf: Any) -> None:
        tree: dict[str, Any] = {"leaf": leaf, "beside": 0.5}
        for _ in range(depth):
            tree = {"a": tree, "b": 1}
        assert decode(msgpack.packb(tree)) == tree

    @pytest.mark.parametrize("depth", range(1, 14))
    @pytest.mark.parametrize("strange", [{1: 2}, {b"a": 1}, {"a": msgpack.ExtType(5, b"x")}], ids=repr)
    def test_what_only_msgpack_can_say_is_refused_at_every_depth(self, depth: int, strange: Any) -> None:
        tree = strange
        for _ in range(depth):
            tree = {"a": tree, "b": 1}
        with pytest.raises(DecodeError, match="broken msgpack"):
            decode(msgpack.packb(tree))

    @given(numbers=st.lists(st.floats(width=32, allow_nan=False), max_size=4))
    @quick
    def test_float32_of_another_encoder_is_read(self, numbers: list[float]) -> None:
        assert decode(msgpack.packb({"x": numbers}, use_single_float=True)) == {"x": numbers}


class TestJson:
    def test_a_binary_entry_is_sent_in_base64_under_its_own_name(self) -> None:
        got = unjson({"data": b"\x00\xff", "width": 2})
        assert got == {"data_base64": base64.b64encode(b"\x00\xff").decode(), "width": 2}

    @pytest.mark.parametrize("blob", BINARY, ids=lambda blob: type(blob).__name__)
    def test_every_kind_of_binary_is_sent_in_base64(self, blob: Any) -> None:
        assert base64.b64decode(unjson({"b": blob})["b_base64"], validate=True) == b"\x00\xff"

    def test_the_model_comes_with_its_size(self) -> None:
        assert unjson({"mjb": b"model"}) == {"mjb_base64": "bW9kZWw=", "mjb_size": 5}

    def test_nested_binary_is_found_everywhere(self) -> None:
        got = unjson({"cameras": {"head": {"data": b"a"}}, "list": [{"data": b"b"}, b"c"]})
        assert got == {"cameras": {"head": {"data_base64": "YQ=="}}, "list": [{"data_base64": "Yg=="}, "Yw=="]}

    @given(number=st.floats(allow_nan=False, allow_infinity=False))
    @quick
    def test_finite_floats_read_back_bit_for_bit(self, number: float) -> None:
        got = unjson({"x": number})["x"]
        assert type(got) is float
        assert struct.pack(">d", got) == struct.pack(">d", number)

    @pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
    def test_floats_that_json_cannot_say_are_null(self, number: float) -> None:
        assert unjson({"x": number, "l": [number]}) == {"x": None, "l": [None]}

    @pytest.mark.parametrize(("value", "plain"), NUMPY)
    def test_numpy_values_travel_as_lists_and_numbers(self, value: Any, plain: Any) -> None:
        assert unjson({"v": value}) == {"v": plain}

    @given(data=st.data())
    @quick
    def test_any_tree_without_binary_reads_back(self, trees: Trees, data: st.DataObject) -> None:
        tree = data.draw(trees(binary=False))
        assert unjson(tree) == tree
        assert decode(encode(tree, Encoding.JSON)) == tree


class Word(StrEnum):
    RAW = "raw"


class Named(msgspec.Struct, omit_defaults=True):
    """A message as a struct: one renamed field, one that is not set."""

    mode: Word
    blob: bytes
    pose: Any
    from_: int = msgspec.field(name="from")
    absent: str | None = None


@pytest.mark.parametrize("read", [unpack, unjson], ids=["msgpack", "json"])
def test_structs_and_enums_travel_as_maps_and_words(read: Callable[[Any], Any]) -> None:
    got = read(Named(mode=Word.RAW, blob=b"a", pose=np.ones(2), from_=1))
    blob = {"blob": b"a"} if read is unpack else {"blob_base64": "YQ=="}
    assert got == {"mode": "raw", "pose": [1.0, 1.0], "from": 1} | blob


@pytest.mark.parametrize("encoding", Encoding)
def test_what_cannot_travel_is_named(encoding: Encoding) -> None:
    with pytest.raises(TypeError, match="object cannot be sent over the wire"):
        encode({"v": object()}, encoding)


@pytest.mark.parametrize("frame", [b"{}", b" {}", b"\t{}", b"\r{}", b"\n {}", b"{", b" "])
def test_a_brace_or_white_space_announces_json(frame: bytes) -> None:
    assert looks_like_json(frame)


@pytest.mark.parametrize("first", [*range(0x80, 0x90), 0xDE, 0xDF], ids=hex)
def test_no_msgpack_map_is_taken_for_json(first: int) -> None:
    assert not looks_like_json(bytes([first]))


def test_white_space_around_json_is_skipped() -> None:
    assert decode(b' \t\r\n{ "op" :\n"meta" }\r\n ') == {"op": "meta"}

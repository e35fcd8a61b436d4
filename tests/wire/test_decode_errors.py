"""Whatever arrives, `decode` gives a map or raises `DecodeError`: nothing else, and quickly."""

import struct
from collections.abc import Callable
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from urlab_wire import DecodeError, decode

Trees = Callable[..., st.SearchStrategy[dict[str, Any]]]

fuzz = settings(max_examples=300, deadline=None, database=None)

DEEP = 100_000
TIMESTAMP = b"\xc7\x0c\xff"  # ext 8, 12 bytes, type -1: nanoseconds and seconds follow

BROKEN = {
    "empty": b"",
    "msgpack cut short": b"\x82\xa1a\x01",
    "a map that claims four billion entries": b"\xdf\xff\xff\xff\xff",
    "an array that claims four billion items": b"\x81\xa1a\xdd\xff\xff\xff\xff",
    "binary that claims four gigabytes": b"\x81\xa1a\xc6\xff\xff\xff\xff",
    "the byte that msgpack never uses": b"\xc1",
    "bytes after msgpack": b"\x81\xa1a\x01\x00",
    "two msgpack maps": b"\x80\x80",
    "a msgpack string that is not UTF-8": b"\x81\xa1a\xa1\xff",
    "a msgpack key that is not UTF-8": b"\x81\xa1\xff\x01",
    "msgpack arrays nested too deeply": b"\x91" * DEEP,
    "msgpack maps nested too deeply": b"\x81\xa1a" * DEEP,
    "an integer key": b"\x81\x01\x02",
    "a float key": b"\x81\xcb" + struct.pack(">d", 1.0) + b"\x02",
    "a null key": b"\x81\xc0\x02",
    "a binary key": b"\x81\xc4\x01a\x02",
    "an array as key": b"\x81\x91\x01\x02",
    "an array of maps as key": b"\x81\x91\x80\x02",
    "a map as key": b"\x81\x80\x02",
    "an integer key in a nested map": b"\x81\xa1a\x81\xa1b\x81\x01\x02",
    "an extension type": b"\x81\xa1a\xd4\x05\x00",
    "an extension type in a nested map": b"\x81\xa1a\x81\xa1b\xd4\x05\x00",
    "a timestamp": b"\x81\xa1a\xd6\xff\x00\x00\x00\x00",
    "a timestamp of year 10000": b"\x81\xa1a" + TIMESTAMP + struct.pack(">Iq", 0, 253_402_300_800),
    "a timestamp out of range": b"\x81\xa1a" + TIMESTAMP + struct.pack(">Iq", 0, 2**62),
    "msgpack null": b"\xc0",
    "a msgpack array": b"\x92\x01\x02",
    "a msgpack string": b"\xa4meta",
    "JSON cut short": b'{"op":',
    "white space only": b" \t\r\n",
    "bytes after JSON": b"{}x",
    "two JSON objects": b"{}{}",
    "a trailing comma": b'{"a":1,}',
    "single quotes": b"{'a':1}",
    "a JSON number key": b"{1:2}",
    "a JSON string that is not UTF-8": b'{"a":"\xff"}',
    "half a surrogate pair": b'{"a":"\\ud800"}',
    "NaN": b'{"a":NaN}',
    "a number beyond float64": b'{"a":1e400}',
    "a JSON integer of 5000 digits": b'{"a":' + b"9" * 5000 + b"}",
    "JSON objects nested too deeply": b'{"a":' * DEEP,
    "JSON arrays nested too deeply": b'{"a":' + b"[" * DEEP,
    "a JSON array after white space": b" [1]",
    "a JSON array": b"[1]",
    "JSON null": b"null",
    "JSON after a byte order mark": b"\xef\xbb\xbf{}",
    "UTF-16": '{"op":"meta"}'.encode("utf-16-le"),
    "an HTTP request": b"GET / HTTP/1.1\r\n\r\n",
}


@pytest.mark.parametrize("frame", BROKEN.values(), ids=list(BROKEN))
def test_a_broken_frame_is_a_decode_error(frame: bytes) -> None:
    with pytest.raises(DecodeError) as refused:
        decode(frame)
    assert str(refused.value)


def test_the_message_says_what_the_top_level_is() -> None:
    with pytest.raises(DecodeError, match="top level is list, not a map"):
        decode(b"\x91\x01")


def test_the_message_of_a_strange_entry_stays_short() -> None:
    frame = b"\x81\xda\xff\xff" + b"k" * 0xFFFF + b"\xd4\x05\x00"
    with pytest.raises(DecodeError, match="extension type") as refused:
        decode(frame)
    assert len(str(refused.value)) < 200


def test_nesting_of_any_sane_depth_is_read() -> None:
    frame = b"\x81\xa1a" * 200 + b"\x80"
    assert decode(frame) == msgpack.unpackb(frame)


def assert_map_or_decode_error(frame: bytes) -> None:
    try:
        tree = decode(frame)
    except DecodeError:
        return
    assert_only_string_keys(tree)


def assert_only_string_keys(tree: dict[str, Any]) -> None:
    assert all(type(key) is str for key in tree)
    for value in tree.values():
        if isinstance(value, dict):
            assert_only_string_keys(value)


@given(frame=st.binary(max_size=300))
@fuzz
def test_arbitrary_bytes(frame: bytes) -> None:
    assert_map_or_decode_error(frame)


@pytest.mark.parametrize("opening", [b"\x81\xa1a", b"\x81\xa1a\x91", b"\x81", b"\x8f", b'{"a":', b'{"a":[', b'{"'])
@given(rest=st.binary(max_size=60))
@settings(fuzz, max_examples=150)
def test_arbitrary_bytes_after_a_sound_beginning(opening: bytes, rest: bytes) -> None:
    assert_map_or_decode_error(opening + rest)


@given(text=st.text(alphabet='{}[]":,\\u0123456789eE+-.truefalsn \n\x00é', max_size=60))
@fuzz
def test_text_that_resembles_json(text: str) -> None:
    assert_map_or_decode_error(b"{" + text.encode())


@given(data=st.data())
@settings(fuzz, max_examples=100)
def test_sound_frames_with_one_stretch_of_bytes_replaced(trees: Trees, data: st.DataObject) -> None:
    frame = msgpack.packb(data.draw(trees()))
    begin = data.draw(st.integers(0, len(frame)))
    end = data.draw(st.integers(begin, min(begin + 4, len(frame))))
    assert_map_or_decode_error(frame[:begin] + data.draw(st.binary(max_size=4)) + frame[end:])

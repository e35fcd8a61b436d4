"""Large replies decode to what they say, whatever of them is the same as before."""

import random
from typing import Any

import pytest

from urlab_client.transports.repeated_blocks import RepeatedBlocks
from urlab_wire.codec import DecodeError, decode, encode


def reply(still: int, moving: int, time: float, *, op: str = "step_ok", first: float = 0.0, **extras: Any) -> bytes:
    free = {f"box{i}": {"xpos": [time] * 3, "xquat": [1.0, 0.0, 0.0, 0.0], "qpos": [time] * 7} for i in range(moving)}
    fixed = {f"wall{i}": {"xpos": [float(i), first, 0.5], "xquat": [1.0, 0.0, 0.0, 0.0]} for i in range(still)}
    some = dict(list(free.items())[: moving // 2])
    return encode({"op": op, "time": time, "entities": {**some, **fixed, **free}, **extras})


def same(decoder: RepeatedBlocks, frame: bytes) -> bool:
    expected, found = decode(frame), decoder.decode(frame)
    return found == expected and list(found["entities"]) == list(expected["entities"])


@pytest.mark.parametrize(("still", "moving"), [(2000, 0), (2000, 3), (70, 40), (20, 20), (0, 300), (70000, 2)])
def test_every_reply_is_what_it_would_be_alone(still: int, moving: int) -> None:
    decoder = RepeatedBlocks()
    assert all(same(decoder, reply(still, moving, float(number))) for number in range(3 if still > 0xFFFF else 5))


def test_what_stands_still_is_decoded_once() -> None:
    decoder = RepeatedBlocks()
    replies = [decoder.decode(reply(500, 4, float(number)))["entities"] for number in range(3)]
    assert replies[1]["wall7"] is replies[2]["wall7"]
    assert replies[1]["box0"] != replies[2]["box0"]


def test_other_ops_further_fields_and_another_scene_come_between() -> None:
    decoder = RepeatedBlocks()
    frames = [
        reply(300, 2, 1.0), reply(300, 2, 2.0), reply(300, 2, 3.0, warnings=["hot"]), reply(300, 2, 0.0, op="reset_ok"),
        reply(300, 2, 4.0), reply(400, 1, 5.0), reply(400, 1, 6.0), encode({"op": "error", "message": "x" * 20000}),
        reply(400, 1, 7.0, first=9.0), reply(400, 1, 8.0, first=9.0),
    ]  # fmt: skip
    for frame in frames:
        assert decoder.decode(frame) == decode(frame)


def test_bodies_that_move_after_all_are_told_where_they_are() -> None:
    decoder, rng = RepeatedBlocks(), random.Random(3)
    blocks = {f"b{i}": {"xpos": [float(i), 0.0, 0.0], "xquat": [1.0, 0.0, 0.0, 0.0]} for i in range(300)}
    for _ in range(40):
        for name in rng.sample(sorted(blocks), 2):
            blocks[name] = {**blocks[name], "xpos": [rng.random(), 0.0, 0.0]}
        assert same(decoder, encode({"op": "step_ok", "entities": blocks}))


def test_a_broken_frame_is_refused_as_ever() -> None:
    decoder = RepeatedBlocks()
    frame = reply(300, 2, 1.0)
    decoder.decode(frame)
    with pytest.raises(DecodeError):
        decoder.decode(frame[:-5])
    assert same(decoder, frame)

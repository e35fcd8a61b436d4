"""Hostile requests: any op of the catalogue with anything in its fields, as msgpack or JSON, or spoilt afterwards.

Number n of a seed is always the same message, but for the session's id and the paths that the caller fills in.
"""

import json
import math
import random
import sys
import types
import typing
from functools import cache
from typing import Any

import msgpack
import msgspec

from urlab_wire import CATALOGUE

sys.setrecursionlimit(10_000)

NAMES = (
    "arm", "arm_0", "walker", "walker_0", "crate", "crate_0", "goal", "slab", "upper", "elbow", "hip", "lift", "eye",
    "", "live", "/", "..", "a/b", "\0", "\u202e", "\U0001f916", "e\u0301" * 200, "x" * 300, "x" * 5000, "%s%n{}", "<b>",
    "'\";--", "arena", "heap", "bomb", "home", "mid", "nothing", "\ud800",
)  # fmt: skip
WORDS = (
    "direct", "puppet", "live", "ui", "zmq", "raw", "full", "sync", "latest", "json", "msgpack", "actor_name",
    "actor_id", "kp", "timestep", "gravity", "state", "time", "all", "standard", "minimal", "lit", "wireframe",
    "rgb", "depth",
)  # fmt: skip
PATHS = (
    "arena", "solo", "/Game/Levels/arena", "/Game/URLab//etc/passwd", "/Game/URLab/../../etc/passwd", "../x",
    "/etc/passwd", "/dev/zero", "/proc/self/mem", "recording", "kept.json", "x/y/z.json", "~", "file:///etc/passwd",
    "a\0b", "/", ".", "/proc/self/root/etc/hostname", "/Game/Levels/no", "crate.xml", "/tmp",
)  # fmt: skip
NUMBERS = (
    0, 1, -1, 2, 7, 64, 255, 1000, 2**31, -(2**31), 2**53, 2**63 - 1, -(2**63), 2**64 - 1, 0.5, -0.0, 1e-320, 1e308,
    -1e308, math.nan, math.inf, -math.inf, 1e20, 3.7,
)  # fmt: skip
KEYS = (*NAMES[:14], *WORDS, "ctrl", "ctrl_map", "xfrc_applied", "control_mode", "integrator", "body1", "qpos", "root")

HEAVY = {
    "import_xml": 0.03, "begin_pie": 0.05, "spawn_actor": 0.15, "spawn_grid": 0.03, "add_quick_convert": 0.05,
    "viewport_screenshot": 0.03, "duplicate_actor": 0.3, "load_level": 0.2, "hello": 0.3, "create_level": 0.2,
    "stop_pie": 0.1, "recording_save": 0.3, "save_level": 0.2, "blueprint_picture": 0.03, "upload_asset": 0.3,
}  # fmt: skip
"""Ops that take long when they are served are drawn less often, so that the time is spent on many requests."""

PICTURES = ("viewport_screenshot", "blueprint_picture")
READING = tuple(name for name, spec in CATALOGUE.items() if spec.reads and name not in ("hello", *PICTURES))


def message(chance: random.Random, ops: tuple[str, ...] | None = None) -> dict[str, Any]:
    """Fields of a request, without a session: mostly of the declared types, some of them anything."""
    op = chance.choice(ops) if ops else _any_op(chance)
    fields: dict[str, Any] = {"op": op}
    wildness = chance.choice((0.0, 0.1, 0.5, 1.0))
    for field in msgspec.structs.fields(CATALOGUE[op].request):
        if field.name != "session_id" and (field.required or chance.random() < 0.4):
            is_wild = chance.random() < wildness
            fields[field.encode_name] = anything(chance) if is_wild else _typed(chance, field.type, field.encode_name)
    if chance.random() < 0.1:
        fields[chance.choice(KEYS)] = anything(chance)
    if chance.random() < 0.02:
        fields["op"] = chance.choice((op.upper(), "", "no_such_op", "op" * 1000, 7, None, [op], "hello_ok", "error"))
    if op == "step" and isinstance(fields.get("n_steps"), int | float) and chance.random() < 0.99:
        fields["n_steps"] = chance.choice((1, 2, 5, 0, -1, 1.5))  # the largest take the 4.5 s that a step may take
    return fields


def frame(chance: random.Random, session_id: str | None, ops: tuple[str, ...] | None = None) -> bytes:
    """One hostile request: usually decodable, sometimes with spoilt bytes, sometimes none at all."""
    kind = chance.random()
    if kind < 0.05:
        return chance.randbytes(chance.choice((0, 1, 3, 20, 200, 2000)))
    fields = message(chance, ops)
    if chance.random() < 0.97:
        fields["session_id"] = session_id
    if chance.random() < 0.1:
        fields["request_id"] = chance.choice((1, 2, "a", "", "x" * 5000, -1, 2**64 - 1, [], None, 1.5))
    encoded = in_json(fields) if chance.random() < 0.3 else in_msgpack(fields)
    if kind > 0.9:
        return spoil(chance, encoded)
    return encoded


def spoil(chance: random.Random, data: bytes) -> bytes:
    """Change, cut, repeat or insert some bytes."""
    spoilt = bytearray(data)
    for _ in range(chance.randrange(1, 4)):
        place = chance.randrange(len(spoilt) + 1)
        how = chance.randrange(5)
        if how == 0 and place < len(spoilt):
            spoilt[place] = chance.randrange(256)
        elif how == 1:
            del spoilt[place:]
        elif how == 2:
            spoilt[place:place] = chance.randbytes(chance.randrange(1, 9))
        elif how == 3:
            del spoilt[place : place + chance.randrange(1, 9)]
        else:
            spoilt += spoilt[place : place + 200]
    return bytes(spoilt)


def anything(chance: random.Random, depth: int = 0) -> Any:
    """A value of any type."""
    kind = chance.randrange(13 if depth < 4 else 9)
    if kind < 3:
        return number(chance)
    if kind < 6:
        return chance.choice((chance.choice(NAMES), chance.choice(WORDS), chance.choice(PATHS)))
    if kind == 6:
        return chance.choice((None, True, False))
    if kind == 7:
        return chance.randbytes(chance.choice((0, 1, 8, 100)))
    if kind == 8:
        return chance.choice(("", [], {}, [[]], [None], "9" * 400))
    if kind in (9, 10):
        return [anything(chance, depth + 1) for _ in range(chance.choice((0, 1, 2, 3, 4, 7, 30)))]
    if kind == 11:
        return {chance.choice(KEYS): anything(chance, depth + 1) for _ in range(chance.randrange(4))}
    return nested(chance.choice((5, 60, 500)), chance.random() < 0.5)


def nested(depth: int, as_list: bool) -> Any:
    """A list in a list in a list, or a map."""
    value: Any = 1
    for _ in range(depth):
        value = [value] if as_list else {"a": value}
    return value


def number(chance: random.Random) -> float:
    """An extreme, or a usual one."""
    return chance.choice(
        (chance.choice(NUMBERS), chance.uniform(-2, 2), chance.randrange(-5, 100), chance.gauss(0, 1e6))
    )


def _typed(chance: random.Random, kind: Any, name: str) -> Any:
    origin = typing.get_origin(kind)
    if origin is typing.Annotated:
        return _typed(chance, typing.get_args(kind)[0], name)
    if origin in (types.UnionType, typing.Union):
        return _typed(chance, chance.choice([one for one in typing.get_args(kind) if one is not types.NoneType]), name)
    if kind is str:
        return chance.choice(PATHS if "path" in name or name == "blueprint" else (*NAMES[:13], *WORDS))
    if kind in (int, float):
        return number(chance) if chance.random() < 0.5 else chance.randrange(0, 4)
    if kind is bool:
        return chance.random() < 0.5
    if kind is bytes:
        return chance.randbytes(chance.choice((0, 10, 1000)))
    if origin in (list, tuple):
        inner = (typing.get_args(kind) or (float,))[0]
        return [_typed(chance, inner, name) for _ in range(chance.choice((0, 1, 2, 3, 4, 6, 7)))]
    if origin is dict or kind is dict:
        inner = (typing.get_args(kind) or (str, Any))[1]
        return {chance.choice(KEYS): _typed(chance, inner, name) for _ in range(chance.randrange(3))}
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        fields = msgspec.structs.fields(kind)
        return {one.encode_name: _typed(chance, one.type, one.name) for one in fields if chance.random() < 0.5}
    return anything(chance)


@cache
def _weights() -> tuple[list[str], list[float]]:
    return list(CATALOGUE), [HEAVY.get(name, 1.0) for name in CATALOGUE]


def _any_op(chance: random.Random) -> str:
    names, weights = _weights()
    return chance.choices(names, weights)[0]


def in_msgpack(value: Any) -> bytes:
    """Encoded, whatever is in it; as JSON where msgpack cannot say it."""
    try:
        packed: bytes = msgpack.packb(value, unicode_errors="surrogatepass")
    except (OverflowError, ValueError):  # too large a number, or too deep
        return in_json(value)
    return packed


def in_json(value: Any) -> bytes:
    """Encoded, whatever is in it; binary as text."""
    return json.dumps(_without_binary(value)).encode()


def _without_binary(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {key: _without_binary(one) for key, one in value.items()}
    return [_without_binary(one) for one in value] if isinstance(value, list) else value


def decode(reply: bytes) -> Any:
    """A reply, whichever encoding it has."""
    return json.loads(reply) if reply[:1] == b"{" else msgpack.unpackb(reply, strict_map_key=False)

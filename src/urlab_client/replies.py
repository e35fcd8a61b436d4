"""Replies as the types of the contract, whichever server sent them.

Our server's replies have every field and are converted in one pass. Other servers, and other versions of ours, may
leave fields out, say null, or send whole numbers as floats: what they left out becomes empty, and what this client does
not know is passed over.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from urlab_client.errors import TRANSPORT_ERROR, URLabRPCError
from urlab_wire.codec import Tree
from urlab_wire.envelope import Reply

AnyReply = TypeVar("AnyReply", bound=Reply)


def read_reply(kind: type[AnyReply], reply: Tree, absent: Mapping[str, Any] | None = None) -> AnyReply:
    """A reply map as its type. ``absent`` holds what a field means, by wire name, where the reply lacks it.

    Raises `URLabRPCError` when a value cannot be what its field holds.
    """
    try:
        return msgspec.convert(reply, kind)
    except msgspec.ValidationError:
        told = {name: value for name, value in reply.items() if value is not None}
        filled = _filled(_type_of(kind), {**(absent or {}), **told})
    try:
        return msgspec.convert(filled, kind, strict=False)
    except msgspec.ValidationError as wrong:
        raise URLabRPCError(TRANSPORT_ERROR, f"the reply cannot be read: {wrong}") from wrong


_type_of = cache(inspect.type_info)


def _filled(kind: inspect.Type, value: Any) -> Any:
    """A value of a reply, with everything in it that its type requires."""
    if value is None:
        return _empty(kind)
    match kind:
        case inspect.StructType(fields=fields) if isinstance(value, Mapping):
            wanted = [one for one in fields if one.required or value.get(one.encode_name) is not None]
            return {one.encode_name: _filled(one.type, value.get(one.encode_name)) for one in wanted}
        case inspect.ListType(item_type=item) if isinstance(value, list):
            return [_filled(item, one) for one in value]
        case inspect.DictType(value_type=item) if isinstance(value, Mapping):
            return {name: _filled(item, one) for name, one in value.items()}
        case inspect.UnionType(types=arms):
            (*others, last) = [arm for arm in arms if not isinstance(arm, inspect.NoneType)]
            return value if others else _filled(last, value)
    return value


def _empty(kind: inspect.Type) -> Any:
    """What stands for a value that a reply lacks: nothing, zero, an empty text."""
    match kind:
        case inspect.StructType():
            return _filled(kind, {})
        case inspect.TupleType(item_types=items):
            return [_empty(item) for item in items]
        case inspect.UnionType() | inspect.AnyType():
            return None
    return _EMPTY[type(kind)]


_EMPTY: dict[type[inspect.Type], Any] = {
    inspect.StrType: "",
    inspect.IntType: 0,
    inspect.FloatType: 0.0,
    inspect.BoolType: False,
    inspect.BytesType: b"",
    inspect.ListType: [],
    inspect.DictType: {},
}

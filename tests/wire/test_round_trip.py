"""Every request and reply of the catalogue survives the wire, as decoders that are not ours read it."""

import base64
import json
from collections.abc import Callable
from typing import Any

import msgpack
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from urlab_wire import CATALOGUE, OpSpec, encode
from urlab_wire.enums import Encoding

InstancesOf = Callable[[type], st.SearchStrategy[Any]]

every_op = pytest.mark.parametrize("spec", CATALOGUE.values(), ids=list(CATALOGUE))
few = settings(max_examples=4, deadline=None, database=None)


def with_binary(tree: Any) -> Any:
    """What the JSON stands for: entries X_base64 are binary X again."""
    if isinstance(tree, list):
        return [with_binary(item) for item in tree]
    if not isinstance(tree, dict):
        return tree
    return dict(_entry(key, value) for key, value in tree.items() if key != "mjb_size")


def _entry(key: str, value: Any) -> tuple[str, Any]:
    if key.endswith("_base64"):
        return key.removesuffix("_base64"), base64.b64decode(value, validate=True)
    return key, with_binary(value)


def over_msgpack(message: msgspec.Struct) -> Any:
    return msgpack.unpackb(encode(message), raw=False, strict_map_key=True)


def over_json(message: msgspec.Struct) -> Any:
    return with_binary(json.loads(encode(message, Encoding.JSON)))


def assert_travels(message: msgspec.Struct, op: str) -> None:
    """It comes back as it was sent, over either encoding, and fields that are not set do not travel."""
    fields = msgspec.structs.fields(type(message))
    sent = {one.encode_name for one in fields if one.required or getattr(message, one.name) is not None}
    assert set(over_msgpack(message)) == {"op"} | sent
    for tree in (over_msgpack(message), over_json(message)):
        assert tree["op"] == op
        assert msgspec.convert(tree, type(message)) == message


@every_op
@given(data=st.data())
@few
def test_requests_and_replies_come_back_as_they_were_sent(
    spec: OpSpec, instances_of: InstancesOf, data: st.DataObject
) -> None:
    assert_travels(data.draw(instances_of(spec.request)), spec.name)
    assert_travels(data.draw(instances_of(spec.reply)), spec.reply_op)

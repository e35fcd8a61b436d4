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


@every_op
@given(data=st.data())
@few
def test_a_request_comes_back_as_it_was_sent(spec: OpSpec, instances_of: InstancesOf, data: st.DataObject) -> None:
    request = data.draw(instances_of(spec.request))
    for tree in (over_msgpack(request), over_json(request)):
        assert tree["op"] == spec.name
        assert msgspec.convert(tree, spec.request) == request


@every_op
@given(data=st.data())
@few
def test_a_reply_comes_back_as_it_was_sent(spec: OpSpec, instances_of: InstancesOf, data: st.DataObject) -> None:
    reply = data.draw(instances_of(spec.reply))
    for tree in (over_msgpack(reply), over_json(reply)):
        assert tree["op"] == spec.reply_op
        assert msgspec.convert(tree, spec.reply) == reply


@every_op
@given(data=st.data())
@few
def test_fields_that_are_not_set_do_not_travel(spec: OpSpec, instances_of: InstancesOf, data: st.DataObject) -> None:
    for struct in (spec.request, spec.reply):
        message = data.draw(instances_of(struct))
        named = {field.encode_name: getattr(message, field.name) for field in msgspec.structs.fields(struct)}
        required = {field.encode_name for field in msgspec.structs.fields(struct) if field.required}
        expected = {name for name, value in named.items() if name in required or value is not None}
        assert set(over_msgpack(message)) == {"op"} | expected

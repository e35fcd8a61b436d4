"""A strategy for any wire type, built from what msgspec knows about it."""

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import strategies as st
from msgspec import inspect

MAX_ITEMS = 3


def plain_trees(*, binary: bool = True) -> st.SearchStrategy[Any]:
    """What a field of type Any may hold; binary sits in maps only, where JSON has a name for it."""
    leaves = st.none() | st.booleans() | _integers() | _floats() | st.text(max_size=8)
    in_maps = leaves | st.binary(max_size=8) if binary else leaves
    return st.recursive(
        leaves,
        lambda nested: st.lists(nested, max_size=MAX_ITEMS) | _maps(nested | in_maps),
        max_leaves=8,
    )


def _integers() -> st.SearchStrategy[int]:
    return st.integers(-(2**63), 2**64 - 1)


def _floats() -> st.SearchStrategy[float]:
    return st.floats(allow_nan=False, allow_infinity=False)


def _names() -> st.SearchStrategy[str]:
    """Keys that no binary entry turns into under JSON."""
    return st.text(max_size=8).filter(lambda name: not name.endswith("_base64") and name != "mjb_size")


def _maps(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(_names(), values, max_size=MAX_ITEMS)


def _strategy(kind: inspect.Type, within: tuple[type, ...] = ()) -> st.SearchStrategy[Any]:
    """Values of a type; a struct that holds structs of its own kind, ``within`` itself, holds none of them there."""
    match kind:
        case inspect.StructType():
            return _instances(kind, (*within, kind.cls))
        case inspect.UnionType(types=arms):
            return st.one_of(*(_strategy(arm, within) for arm in arms))
        case inspect.ListType(item_type=inspect.StructType(cls=cls)) if cls in within:
            return st.just([])
        case inspect.ListType(item_type=item):
            return st.lists(_strategy(item, within), max_size=MAX_ITEMS)
        case inspect.TupleType(item_types=items):
            return st.tuples(*(_strategy(item, within) for item in items))
        case inspect.DictType(value_type=value):
            return _maps(_strategy(value, within))
    return _LEAVES[type(kind)]


def _instances(kind: inspect.StructType, within: tuple[type, ...]) -> st.SearchStrategy[Any]:
    required = {field.name: _strategy(field.type, within) for field in kind.fields if field.required}
    optional = {field.name: _strategy(field.type, within) for field in kind.fields if not field.required}
    fields = st.fixed_dictionaries(required, optional=optional)
    return fields.map(lambda values: kind.cls(**values))


_LEAVES: dict[type[inspect.Type], st.SearchStrategy[Any]] = {
    inspect.AnyType: plain_trees(),
    inspect.BoolType: st.booleans(),
    inspect.BytesType: st.binary(max_size=16),
    inspect.FloatType: _floats(),
    inspect.IntType: _integers(),
    inspect.NoneType: st.none(),
    inspect.StrType: st.text(max_size=8),
}


@pytest.fixture(scope="session")
def instances_of() -> Callable[[type], st.SearchStrategy[Any]]:
    """Maps a struct type to a strategy for its instances."""
    return cache(lambda struct: _strategy(inspect.type_info(struct)))


@pytest.fixture(scope="session")
def trees() -> Callable[..., st.SearchStrategy[dict[str, Any]]]:
    """A strategy for whole messages: maps of anything plain, with or without binary."""
    return cache(lambda *, binary=True: _maps(plain_trees(binary=binary)))

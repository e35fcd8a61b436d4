"""Tables of TOML as types: every refusal names file, line and field."""

from enum import StrEnum
from typing import Literal

import msgspec
import pytest

from urlab.errors import ImportFailed
from urlab.toml_tables import TomlTable


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Wheel(msgspec.Struct, forbid_unknown_fields=True):
    radius: float
    side: Literal["left", "right"] = "left"
    colour: Colour = Colour.RED


class Cart(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    wheels: list[Wheel] = []
    spare: Wheel | None = None


GOOD = """
name = "cart"

[[wheels]]
radius = 0.1

[[wheels]]
radius = 0.2
side = "right"
colour = "blue"

[spare]
radius = 0.3
"""


def table(text: str) -> TomlTable:
    return TomlTable.parse(text, source="cart.toml", error=ImportFailed)


def test_a_document_becomes_a_struct() -> None:
    cart = table(GOOD).convert(Cart)
    assert cart == Cart("cart", [Wheel(0.1), Wheel(0.2, "right", Colour.BLUE)], Wheel(0.3))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('name = "cart"', "", "cart.toml: name: is missing"),
        ("radius = 0.2", "", "cart.toml:7: wheels[1].radius: is missing"),
        ("radius = 0.2", 'radius = "big"', "cart.toml:8: wheels[1].radius: expected a number, got text"),
        ('side = "right"', 'side = "rihgt"', "cart.toml:9: wheels[1].side: is 'rihgt', expected one of left, right"),
        ('"blue"', '"bleu"', "cart.toml:10: wheels[1].colour: is 'bleu', expected one of red, blue (did you mean"),
        ("radius = 0.3", "radios = 0.3", "cart.toml:13: spare.radios: unknown key (did you mean 'radius'?)"),
        ("[spare]", "[[spare]]", "cart.toml:12: spare: expected a table, got a list"),
        ("[spare]", "[spair]", "cart.toml:12: spair: unknown key (did you mean 'spare'?); allowed: name, wheels"),
        ("= 0.3", "=", "cart.toml:13:9: not TOML: "),
    ],
)
def test_a_wrong_value_is_named_with_its_line_and_what_is_allowed(old: str, new: str, said: str) -> None:
    text = GOOD.replace(old, new, 1)
    if "radios" in new:
        text += "radius = 1.0\n"
    with pytest.raises(ImportFailed) as refused:
        table(text).convert(Cart)
    assert refused.value.message.startswith(said)


def test_a_tag_chooses_the_type() -> None:
    kinds = {"wheel": Wheel, "cart": Cart}

    class Tagged(msgspec.Struct, tag_field="kind", tag="big"):
        size: int

    chosen = table('kind = "big"\nsize = 3').convert_tagged("kind", {"big": Tagged})
    assert chosen == Tagged(3)
    with pytest.raises(ImportFailed, match=r"cart\.toml:1: kind: is 'wheal', expected one of wheel, cart \(did you"):
        table('kind = "wheal"').convert_tagged("kind", kinds)
    with pytest.raises(ImportFailed, match=r"cart\.toml: kind: is missing, expected one of wheel, cart"):
        table("").convert_tagged("kind", kinds)


def test_keys_of_two_types_are_told_apart() -> None:
    wheel, cart = table('radius = 1.0\nname = "n"').split(Wheel, Cart)
    assert (dict(wheel.content), dict(cart.content)) == ({"radius": 1.0}, {"name": "n"})
    with pytest.raises(ImportFailed, match=r"cart\.toml:2: seats: unknown key; allowed: radius, side, colour, name"):
        table("radius = 1.0\nseats = 2").split(Wheel, Cart)


def test_lines_are_found_in_arrays_within_arrays() -> None:
    text = "[[a]]\n[[a.b]]\nx = 1\n[[a]]\n[[a.b]]\nx = 2\n[[a.b]]\nx = 3\n"
    rows = table(text).tables("a")[1].tables("b")[1]
    assert str(rows.problem("is wrong", "x")) == "cart.toml:8: a[1].b[1].x: is wrong"

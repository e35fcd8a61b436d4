"""Distributions as data: what is refused, and that a draw depends on the seed and its own names alone."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from urlab.errors import BadValue
from urlab.scene.randomisation import check, draw, parse_randomisation
from urlab_wire.ops.stepping import ModelChange


class Bodies:
    """Three bodies with a mass, a pose and a colour."""

    values = {"mass": [2.0], "pos": [1.0, 2.0, 3.0], "quat": [0.0, 0.0, 1.0, 0.0], "rgba": [0.5, 0.5, 0.5, 1.0]}

    def names(self, kind: str, field: str) -> Sequence[str]:
        self.width(kind, "", field)
        return ("cube", "finger_left", "finger_right")

    def find(self, kind: str, name: str, field: str) -> str:
        if kind == "texture":
            return {"wood": "hall_wood", "steel": "hall_steel"}[name]
        if name not in self.names(kind, field):
            raise BadValue(f"there is no {kind} {name!r}; there are: cube")
        return name

    def width(self, kind: str, name: str, field: str) -> tuple[int, int]:
        if kind != "push" and field not in self.values:
            raise BadValue(f"no {field}")
        most = len(self.values.get(field, ()))
        return (3 if field == "rgba" else most), most

    def value(self, kind: str, name: str, field: str) -> list[float]:
        return self.values[field]

    def limits(self, kind: str, name: str, field: str) -> tuple[float, float]:
        return (0.0, 1.0) if field == "rgba" else (-np.inf, np.inf)


def entry(**fields: Any) -> dict[str, Any]:
    return {"kind": "body", "name": "cube", "field": "mass", "distribution": "uniform", "low": 1, "high": 2} | fields


def drawn(seed: int, **table: dict[str, Any]) -> list[ModelChange]:
    entries = parse_randomisation(table)
    check(entries, Bodies())
    return draw(entries, seed, Bodies())


def test_the_same_seed_gives_the_same_and_another_gives_another() -> None:
    assert drawn(7, mass=entry()) == drawn(7, mass=entry())
    assert drawn(7, mass=entry()) != drawn(8, mass=entry())
    assert drawn(-1, mass=entry()) != drawn(1, mass=entry())


def test_a_draw_does_not_depend_on_other_entries_or_their_order() -> None:
    alone = drawn(7, mass=entry())
    more = drawn(7, place=entry(field="pos"), mass=entry(), fingers=entry(name="finger_*"))
    assert [one for one in more if (one.name, one.field) == ("cube", "mass")] == alone
    assert [one.name for one in more] == ["cube", "cube", "finger_left", "finger_right"]


def test_elements_of_a_pattern_differ_unless_the_draw_is_shared() -> None:
    left, right = drawn(7, fingers=entry(name="finger_*"))
    assert left.value != right.value
    left, right = drawn(7, fingers=entry(name="finger_*", shared=True))
    assert left.value == right.value
    (again,) = drawn(7, fingers=entry(name="finger_left", shared=True))
    assert again.value == left.value


@pytest.mark.parametrize(("fields", "low", "high", "mean"), [
    ({}, 1, 2, 1.5),
    ({"distribution": "log_uniform", "low": 0.1, "high": 10}, 0.1, 10, 9.9 / np.log(100)),
    ({"distribution": "choice", "values": [1, 3], "weights": [3, 1], "low": None, "high": None}, 1, 3, 1.5),
    ({"distribution": "normal", "mean": 5, "std": 0.5, "low": 4, "high": 6}, 4, 6, 5),
])  # fmt: skip
def test_draws_follow_their_distribution(fields: dict[str, Any], low: float, high: float, mean: float) -> None:
    table = {key: value for key, value in entry(**fields).items() if value is not None}
    values = np.array([drawn(seed, mass=table)[0].value[0] for seed in range(300)])
    assert values.min() >= low
    assert values.max() <= high
    assert abs(values.mean() - mean) < 4 * values.std() / np.sqrt(len(values))


def test_what_was_compiled_is_scaled_added_to_or_replaced() -> None:
    (factor,) = drawn(3, mass=entry())
    (scaled,) = drawn(3, mass=entry(apply="scale"))
    (added,) = drawn(3, mass=entry(apply="add"))
    assert scaled.value == [2 * factor.value[0]]
    assert added.value == [2 + factor.value[0]]
    (place,) = drawn(3, place=entry(field="pos", low=[0, 0, 0], high=[0.1, 0.2, 0], apply="add"))
    assert place.value[2] == 3
    assert 1 < place.value[0] < 1.1


def test_colours_stay_colours() -> None:
    (colour,) = drawn(3, paint=entry(field="rgba", low=[3, -3, 0.5], high=[3, -3, 0.5]))
    assert colour.value == [1, 0, 0.5]


def test_rotations_are_unit_quaternions_within_their_angle() -> None:
    turn = {"kind": "body", "name": "cube", "field": "quat", "distribution": "rotation", "max_angle_deg": 10}
    for seed in range(50):
        (one,) = drawn(seed, turn=turn)
        assert np.isclose(np.linalg.norm(one.value), 1)
        assert one.value[0] >= np.cos(np.radians(5))
        (added,) = drawn(seed, turn={**turn, "apply": "add"})
        assert added.value[2] >= np.cos(np.radians(5))


def test_a_push_is_drawn_with_its_times() -> None:
    push = entry(kind="push", field="force", low=[0, 0, 5], high=[0, 0, 5], count=3, within_s=[1, 2], duration_s=0.1)
    (one,) = drawn(3, shove=push)
    assert len(one.value) == 3
    begins = [row[0] for row in one.value]
    assert begins == sorted(begins)
    for begin, end, *force in one.value:
        assert 1 <= begin <= 2
        assert np.isclose(end - begin, 0.1)
        assert force == [0, 0, 5]


@pytest.mark.parametrize(("fields", "words"), [
    ({"distribution": "gaussian"}, "choice, log_uniform, normal, rotation, uniform"),
    ({"lo": 1}, "lo.*has: distribution"),
    ({"low": 3}, "low 3.0 is above high 2.0"),
    ({"low": "a"}, "low"),
    ({"low": float("nan")}, "finite"),
    ({"low": [1, 2]}, "lengths|takes 1"),
    ({"name": "sphere"}, "there are: cube"),
    ({"name": "thumb*"}, "fits 'thumb"),
    ({"field": "colour"}, "no colour"),
    ({"apply": "multiply"}, "apply"),
    ({"count": 3}, "for pushes"),
    ({"distribution": "log_uniform", "low": 0}, "above zero"),
    ({"kind": "push", "field": "force"}, "count, within_s and duration_s"),
])  # fmt: skip
def test_a_wrong_entry_is_refused_by_name(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(BadValue, match=f"'wrong'.*({words})"):
        drawn(1, fine=entry(name="finger_left"), wrong=entry(**fields))


def test_two_entries_for_the_same_are_refused() -> None:
    with pytest.raises(BadValue, match="'one' and 'two' both draw mass of body 'finger_left'"):
        drawn(1, one=entry(name="finger_left"), two=entry(name="finger_*"))


def test_a_texture_is_one_of_those_that_are_named() -> None:
    class Materials(Bodies):
        values = {"texture": [0.0]}

    paint = {"kind": "material", "name": "cube", "field": "texture", "distribution": "choice"}
    entries = parse_randomisation({"look": {**paint, "values": ["wood", "steel"], "weights": [1, 3]}})
    check(entries, Materials())
    found = [draw(entries, seed, Materials())[0].value for seed in range(40)]
    assert set(found) == {"hall_wood", "hall_steel"}
    assert found.count("hall_steel") > found.count("hall_wood")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"values": [1, 2]}, "texture is the name of one: a choice among names"),
        ({"values": ["wood", 2]}, "texture is the name of one: a choice among names"),
        ({"values": ["wood"], "apply": "scale"}, "which is set"),
        ({"values": ["wood"], "kind": "body", "field": "mass"}, "the values of mass are numbers, not names"),
        ({"distribution": "uniform", "low": 0, "high": 1}, "texture is the name of one: a choice among names"),
    ],
)
def test_names_are_for_textures_and_textures_have_names(fields: dict[str, Any], words: str) -> None:
    paint = {"kind": "material", "name": "cube", "field": "texture", "distribution": "choice"}
    with pytest.raises(BadValue, match=words):
        parse_randomisation({"look": {**paint, **fields}})

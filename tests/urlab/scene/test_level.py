"""Level files: what they say, and what is wrong with those that cannot be read."""

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from urlab.errors import LoadLevelFailed
from urlab.geometry import Pose
from urlab.robots import level_names, level_path
from urlab.scene.actor import Actor
from urlab.scene.level import Level, collide, legal_name, parse_level, read_level, unique_name

FULL = """
version = 1
name = "lab"

[options]
timestep = 0.001
gravity = [0, 0, -1.62]

[[actors]]
blueprint = "panda"
name = "panda"
actor_id = "arm"
location = [1, 2, 0.5]
rotation_quat = [0, 0, 2, 0]
keyframe = "home"

[[actors]]
blueprint = "models/box.xml"
name = "box"
"""
calm = settings(deadline=None, derandomize=True)
HEAD = 'version = 1\nname = "l"\n'


def actor(name: str, more: str = "") -> str:
    return f'[[actors]]\nblueprint = "b"\nname = "{name}"\n{more}\n'


def refused(text: str) -> str:
    with pytest.raises(LoadLevelFailed) as failed:
        parse_level(text, source="l.toml")
    return failed.value.message


def test_a_level_says_what_exists() -> None:
    level = parse_level(FULL, source="lab.toml", folder=Path("/levels"))
    assert level == Level(
        "lab",
        (
            Actor("panda", "panda", "arm", Pose((1, 2, 0.5), (0, 0, 0, 1)), "home"),
            Actor("box", "/levels/models/box.xml"),
        ),
        {"timestep": 0.001, "gravity": [0, 0, -1.62]},
    )
    assert level.actor("box") == level.actors[1]
    assert level.actor("arm") is None


def test_model_files_are_relative_to_the_level(tmp_path: Path) -> None:
    path = tmp_path / "lab.toml"
    path.write_text(FULL)
    assert read_level(path).actors[1].blueprint == str(tmp_path / "models" / "box.xml")
    absolute = FULL.replace("models/box.xml", "/far/box.URDF")
    assert parse_level(absolute, source="l", folder=tmp_path).actors[1].blueprint == "/far/box.URDF"
    assert parse_level(FULL, source="l").actors[1].blueprint == "models/box.xml"


def test_an_empty_level_is_a_level() -> None:
    assert parse_level(HEAD, source="l.toml") == Level("l")


@pytest.mark.parametrize("name", level_names())
def test_shipped_levels_can_be_read(name: str) -> None:
    assert read_level(level_path(name)).name == name


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("version = ", "Invalid value (at end of document)"),
        (HEAD + "x = \n", "Invalid value (at line 3, column 5)"),
        ('name = "l"', "Object missing required field `version`"),
        ("version = 1", "Object missing required field `name`"),
        ('version = 2\nname = "l"', "version 2 is not 1, which this server reads"),
        ('version = "1"\nname = "l"', "Expected `int`, got `str` - at `$.version`"),
        (HEAD + "robots = 3", "Object contains unknown field `robots`"),
        (HEAD + actor("a", "colour = 3"), "Object contains unknown field `colour` - at `$.actors[0]`"),
        (HEAD + '[[actors]]\nname = "a"', "Object missing required field `blueprint` - at `$.actors[0]`"),
        (HEAD + actor("a", "location = [1, 2]"), "Expected `array` of length 3, got 2 - at `$.actors[0].location`"),
        (HEAD + actor("a", 'location = [1, 2, "x"]'), "Expected `float`, got `str` - at `$.actors[0].location[2]`"),
        (HEAD + actor("a", "location = [1, 2, nan]"), "actor 'a': location: (1.0, 2.0, nan) is nowhere"),
        (HEAD + actor("a", "location = [1, -inf, 0]"), "actor 'a': location: (1.0, -inf, 0.0) is nowhere"),
        (
            HEAD + actor("a", "rotation_quat = [0, 0, 0, 0]"),
            "actor 'a': rotation_quat: a quaternion of length 0 is no rotation",
        ),
        (
            HEAD + actor("a", "rotation_quat = [0, 0, nan, 0]"),
            "actor 'a': rotation_quat: a quaternion of length nan is no rotation",
        ),
        (HEAD + actor("a b"), "actor name 'a b' is not legal; 'a_b' is"),
        (HEAD + actor(""), "actor name '' is not legal; 'actor' is"),
        (HEAD + actor("world"), "actor name 'world' is not legal; 'world-1' is"),
        (HEAD + actor("a") + actor("a"), "two actors are named 'a'"),
        (
            HEAD + actor("a") + actor("a_b"),
            "the actor names 'a' and 'a_b' collide: use a hyphen instead of the underscore",
        ),
        (
            HEAD + actor("a_b_c") + actor("a_b"),
            "the actor names 'a_b' and 'a_b_c' collide: use a hyphen instead of the underscore",
        ),
        (HEAD + actor("a", 'actor_id = "i"') + actor("b", 'actor_id = "i"'), "two actors have the actor_id 'i'"),
    ],
)
def test_a_level_that_cannot_be_used_says_why(text: str, words: str) -> None:
    assert refused(text) == f"l.toml: {words}"


@pytest.mark.parametrize(
    "value", ["9" * 5000, "[" * 5000, "2024-02-31"], ids=["endless number", "endless list", "no date"]
)
def test_a_level_that_the_parser_chokes_on_is_refused_as_well(value: str) -> None:
    assert refused(f"{HEAD}x = {value}\n").startswith("l.toml: ")


def test_a_level_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    with pytest.raises(LoadLevelFailed, match=r"level .*gone\.toml cannot be read: .*No such file"):
        read_level(tmp_path / "gone.toml")
    (tmp_path / "latin.toml").write_bytes(b'name = "\xe9"')
    with pytest.raises(LoadLevelFailed, match=r"latin\.toml cannot be read: .*utf-8"):
        read_level(tmp_path / "latin.toml")
    with pytest.raises(LoadLevelFailed, match="cannot be read"):
        read_level(tmp_path)


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        ("panda", "panda"), ("my arm", "my_arm"), ("a__b", "a_b"), ("_a_", "a"), ("r2-d2.v1", "r2-d2.v1"),
        ("", "actor"), ("!!!", "actor"), ("naïve", "na_ve"), ("a/b\\c", "a_b_c"), ("world", "world-1"),
        ("worlds", "worlds"),
    ],
)  # fmt: skip
def test_a_name_is_made_legal(wanted: str, name: str) -> None:
    assert legal_name(wanted) == name
    assert legal_name(name) == name


@pytest.mark.parametrize(
    ("wanted", "taken", "name"),
    [
        ("box", [], "box"),
        ("box", ["box"], "box-2"),
        ("box", ["box", "box-2", "box-3"], "box-4"),
        ("box", ["box-2"], "box"),
        ("box", ["boxes", "bo"], "box"),
        ("my_arm", ["my"], "my-arm"),
        ("my_arm", ["my", "my-arm"], "my-arm-2"),
        ("my", ["my_arm"], "my-2"),
        ("my_arm", ["my_arm"], "my-arm"),
        ("my arm", ["other"], "my_arm"),
    ],
)
def test_a_taken_name_gets_a_number(wanted: str, taken: list[str], name: str) -> None:
    assert unique_name(wanted, taken) == name


words = st.text("ab_-2 ", max_size=6)


@calm
@given(words, st.lists(words.map(legal_name), max_size=8))
def test_a_new_name_is_legal_and_collides_with_none(wanted: str, taken: list[str]) -> None:
    name = unique_name(wanted, taken)
    assert name == legal_name(name)
    assert not any(f"{name}_".startswith(f"{other}_") or f"{other}_".startswith(f"{name}_") for other in taken)


@calm
@given(st.lists(words.map(legal_name), max_size=6))
def test_a_level_is_refused_exactly_when_two_names_collide(names: list[str]) -> None:
    clash = any(collide(a, b) for i, a in enumerate(names) for b in names[:i])
    text = HEAD + "".join(map(actor, names))
    if clash:
        assert "collide" in refused(text) or "two actors are named" in refused(text)
    else:
        assert [one.name for one in parse_level(text, source="l").actors] == names


@calm
@given(st.tuples(*[st.floats(-1, 1)] * 4).filter(lambda q: math.hypot(*q) > 1e-3))
def test_rotations_are_read_as_xyzw_and_normalised(quat_xyzw: tuple[float, float, float, float]) -> None:
    text = HEAD + actor("a", f"rotation_quat = {[format(x, 'f') for x in quat_xyzw]}".replace("'", ""))
    w, *_ = parse_level(text, source="l").actors[0].pose.quat_wxyz
    assert w == pytest.approx(quat_xyzw[3] / math.hypot(*quat_xyzw), abs=1e-3)

"""Level files: what they say, and what is wrong with those that cannot be read."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from urlab.errors import LoadLevelFailed
from urlab.geometry import Pose, normalised, wxyz_from_euler_deg
from urlab.robots import level_names, level_path
from urlab.scene.level import Actor, Level, Light, QuickConvert
from urlab.scene.level_file import level_text, parse_level, read_level
from urlab.scene.names import legal_name
from urlab_wire.enums import LightKind

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
words = st.text("ab_-2 ", max_size=6)
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
        ("version = ", ":1: not TOML: Invalid value (at end of document)"),
        (HEAD + "x = \n", ":3:5: not TOML: Invalid value"),
        ('name = "l"', ": version: is missing"),
        ("version = 1", ": name: is missing"),
        ('version = 2\nname = "l"', "version 2 is not 1, which this server reads"),
        ('version = "1"\nname = "l"', ":1: version: expected a whole number, got text"),
        (
            HEAD + "robots = 3",
            ":3: robots: unknown key; allowed: version, name, manager, options, randomize, actors, lights",
        ),
        (
            HEAD + actor("a", "colour = 3"),
            (
                ":6: actors[0].colour: unknown key; allowed: blueprint, name, actor_id, location, rotation_quat, "
                "scale, keyframe, tags, config, quick_convert"
            ),
        ),
        (HEAD + '[[actors]]\nname = "a"', ":3: actors[0].blueprint: is missing"),
        (HEAD + actor("a", "location = [1, 2]"), ":6: actors[0].location: expected a list of length 3, got 2"),
        (HEAD + actor("a", 'location = [1, 2, "x"]'), ":6: actors[0].location[2]: expected a number, got text"),
        (HEAD + actor("a", "location = [1, 2, nan]"), "actor 'a': location must be finite, but is [1.0, 2.0, nan]"),
        (HEAD + actor("a", "location = [1, -inf, 0]"), "actor 'a': location must be finite, but is [1.0, -inf, 0.0]"),
        (
            HEAD + actor("a", "rotation_quat = [0, 0, 0, 0]"),
            "actor 'a': rotation_quat: a quaternion of length 0 is no rotation",
        ),
        (
            HEAD + actor("a", "rotation_quat = [0, 0, nan, 0]"),
            "actor 'a': rotation_quat: a quaternion of length nan is no rotation",
        ),
        (
            HEAD + actor("a", "quick_convert = { friction = [1, -1, 1] }"),
            "actor 'a': friction must not be negative, but is [1.0, -1.0, 1.0]",
        ),
        (
            HEAD + actor("a", "quick_convert = { friction = [1, nan, 1] }"),
            "actor 'a': friction must be finite, but is [1.0, nan, 1.0]",
        ),
        (
            HEAD + actor("a", "quick_convert = { coacd_threshold = 5 }"),
            "actor 'a': coacd_threshold is from 0.01 to 1.0, not 5.0",
        ),
        (
            HEAD + actor("a", "quick_convert = { static = true, driven = true }"),
            "actor 'a': a body is static or driven, not both",
        ),
        (HEAD + actor("a", "scale = [1, 0, 1]"), "actor 'a': scale must be above 0, but is [1.0, 0.0, 1.0]"),
        (
            HEAD + '[[lights]]\nname = "sun"\nintensity = -5',
            "light 'sun': intensity is at least 0, and color is in 0..1",
        ),
        (
            HEAD + '[[lights]]\nname = "sun"\ncolor = [255, 0, 0]',
            "light 'sun': intensity is at least 0, and color is in 0..1",
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
    assert refused(text) == f"l.toml{words}" if words.startswith(":") else f"l.toml: {words}"


@pytest.mark.parametrize(
    "value", ["9" * 5000, "[" * 5000, "2024-02-31"], ids=["endless number", "endless list", "no date"]
)
def test_a_level_that_the_parser_chokes_on_is_refused_as_well(value: str) -> None:
    assert refused(f"{HEAD}x = {value}\n").startswith("l.toml:")


def test_a_level_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    with pytest.raises(LoadLevelFailed, match=r"level .*gone\.toml cannot be read: .*No such file"):
        read_level(tmp_path / "gone.toml")
    (tmp_path / "latin.toml").write_bytes(b'name = "\xe9"')
    with pytest.raises(LoadLevelFailed, match=r"latin\.toml cannot be read: .*utf-8"):
        read_level(tmp_path / "latin.toml")
    with pytest.raises(LoadLevelFailed, match="cannot be read"):
        read_level(tmp_path)


@calm
@given(st.lists(words.map(legal_name), max_size=6))
def test_a_level_is_refused_exactly_when_two_names_collide(names: list[str]) -> None:
    pairs = [(f"{a}_", f"{b}_") for i, a in enumerate(names) for b in names[:i]]
    clash = any(a.startswith(b) or b.startswith(a) for a, b in pairs)
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


numbers = st.floats(-1e6, 1e6)
vectors = st.tuples(numbers, numbers, numbers)
factors = st.tuples(*[st.floats(1e-3, 1e3)] * 3)
poses = st.builds(
    lambda pos, quat: Pose(pos, normalised(quat)),
    vectors,
    st.tuples(*[st.floats(-1, 1)] * 4).filter(lambda q: math.hypot(*q) > 1e-3),
)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
configs = st.dictionaries(
    texts,
    st.recursive(st.booleans() | st.integers(-9, 9) | numbers | texts, lambda one: st.lists(one, max_size=3)),
    max_size=3,
)
actors = st.builds(
    Actor,
    name=st.just("a"),
    blueprint=texts.filter(lambda word: "." not in word),
    actor_id=texts,
    pose=poses,
    keyframe=texts,
    scale=factors,
    tags=st.lists(texts, max_size=3).map(tuple),
    config=configs,
    quick_convert=st.none()
    | st.builds(QuickConvert, st.booleans(), st.booleans(), st.floats(0.01, 1), st.just(False), factors),
)
lights = st.builds(
    lambda kind, euler, intensity, where: Light(
        "sun", kind, "", Pose(where, wxyz_from_euler_deg(euler)), euler, intensity, (0.5, 1.0, 0.0)
    ),
    st.sampled_from(LightKind),
    vectors,
    st.floats(0, 1e5),
    vectors,
)


@calm
@given(texts, st.lists(actors, max_size=2), st.lists(lights, max_size=1), st.booleans(), configs)
def test_a_level_that_is_written_is_read_back_to_the_last_bit(
    name: str, actors: list[Actor], lights: list[Light], manager: bool, options: dict[str, object]
) -> None:
    named = tuple(
        replace(one, name=f"a-{i}", actor_id=one.actor_id and f"{one.actor_id}{i}") for i, one in enumerate(actors)
    )
    level = Level(name, named, options, tuple(lights), manager)
    assert parse_level(level_text(level), source="l.toml") == level


def test_a_written_level_is_pleasant_to_read() -> None:
    level = Level(
        "lab",
        (Actor("panda", "panda", "arm", Pose((0.5, 0.0, 0.4)), "home", config={"twist": False}),),
        {"timestep": 0.001},
        (Light("sun", rotation_euler=(0.0, 60.0, 0.0), pose=Pose(quat_wxyz=wxyz_from_euler_deg((0.0, 60.0, 0.0)))),),
    )
    assert level_text(level).splitlines() == [
        "version = 1", 'name = "lab"',
        "", "[options]", "timestep = 0.001",
        "", "[[actors]]", 'blueprint = "panda"', 'name = "panda"', 'actor_id = "arm"', "location = [0.5, 0.0, 0.4]",
        'keyframe = "home"', "config = { twist = false }",
        "", "[[lights]]", 'name = "sun"', "rotation_euler = [0.0, 60.0, 0.0]",
    ]  # fmt: skip


def test_entries_of_a_randomisation_are_kept_and_a_wrong_one_is_named() -> None:
    entry = """[randomize."light mass"]
        kind = "body"
        name = "*"
        field = "mass"
        distribution = "choice"
        values = [1, 2.5]\n"""
    level = parse_level(HEAD + entry, source="l.toml")
    assert level.randomize["light mass"]["values"] == [1, 2.5]
    assert parse_level(level_text(level), source="again") == level
    with pytest.raises(LoadLevelFailed, match="entry 'light mass': distribution is one of choice"):
        parse_level(HEAD + entry.replace("choice", "dice"), source="l.toml")

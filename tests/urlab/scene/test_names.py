import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from urlab.scene.names import ActorNames, legal_name

calm = settings(deadline=None, derandomize=True)


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
        ("my_arm", ["my_arm"], "my_arm-2"),
        ("my_arm", ["my_arm", "my_arm-2"], "my_arm-3"),
        ("my arm", ["other"], "my_arm"),
    ],
)
def test_a_taken_name_gets_a_number(wanted: str, taken: list[str], name: str) -> None:
    assert ActorNames(taken).take_unique(wanted) == name


words = st.text("ab_-2 ", max_size=6)


@calm
@given(words, st.lists(words.map(legal_name), max_size=8))
def test_a_new_name_is_legal_and_collides_with_none(wanted: str, taken: list[str]) -> None:
    name = ActorNames(taken).take_unique(wanted)
    assert name == legal_name(name)
    assert not any(f"{name}_".startswith(f"{other}_") or f"{other}_".startswith(f"{name}_") for other in taken)


@calm
@given(st.lists(words, max_size=12))
def test_names_that_are_taken_one_after_the_other_never_collide(wanted: list[str]) -> None:
    names = ActorNames()
    taken = [names.take_unique(word) for word in wanted]
    for i, name in enumerate(taken):
        for other in taken[:i]:
            assert not f"{name}_".startswith(f"{other}_")
            assert not f"{other}_".startswith(f"{name}_")


@calm
@given(words.map(legal_name), st.lists(words.map(legal_name), max_size=8))
def test_the_rival_of_a_name_is_one_that_collides_with_it(name: str, taken: list[str]) -> None:
    rivals = [other for other in taken if f"{name}_".startswith(f"{other}_") or f"{other}_".startswith(f"{name}_")]
    rival = ActorNames(taken).rival(name)
    assert rival in rivals if rivals else rival is None

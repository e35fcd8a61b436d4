"""Physics options: every one can be set and read, and nothing bad gets in."""

import math
from typing import Any

import mujoco
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from urlab.errors import BadValue, DimMismatch
from urlab.physics.options import apply_options, check_options, read_options
from urlab_wire.ops.runtime import OPTION_FIELDS

MULTICCD = int(mujoco.mjtDisableBit.mjDSBL_MULTICCD)
SLEEP = int(mujoco.mjtEnableBit.mjENBL_SLEEP)
GRAVITY = int(mujoco.mjtDisableBit.mjDSBL_GRAVITY)
ENERGY = int(mujoco.mjtEnableBit.mjENBL_ENERGY)

VALUES: dict[str, Any] = {
    "timestep": 0.0015, "gravity": [0.5, 0.0, -1.62], "wind": [1.0, 2.0, 3.0], "magnetic": [0.0, 0.1, 0.2],
    "density": 1.2, "viscosity": 0.00002, "impratio": 10.0, "tolerance": 1e-9, "iterations": 33, "ls_iterations": 22,
    "noslip_iterations": 4, "noslip_tolerance": 1e-5, "ccd_iterations": 44, "ccd_tolerance": 1e-4,
    "sleep_tolerance": 0.01, "integrator": "implicitfast", "cone": "elliptic", "solver": "cg",
    "enable_multiccd": False, "enable_sleep": True,
    "disableflags": GRAVITY, "enableflags": ENERGY,
}  # fmt: skip


def applied(patch: dict[str, Any], option: Any = None) -> dict[str, Any]:
    option = mujoco.MjOption() if option is None else option
    apply_options(option, check_options(patch))
    return read_options(option)


def test_every_option_has_a_value_here() -> None:
    assert set(VALUES) == set(OPTION_FIELDS) - {"num_worker_threads"}


@pytest.mark.parametrize("name", VALUES)
def test_every_option_is_read_as_it_was_set(name: str) -> None:
    assert applied({name: VALUES[name]})[name] == VALUES[name]


@pytest.mark.parametrize("name", VALUES)
def test_an_option_changes_only_itself(name: str) -> None:
    masks = {"enable_multiccd": {"disableflags"}, "enable_sleep": {"enableflags"}}
    before, after = applied({}), applied({name: VALUES[name]})
    assert {field for field in before if before[field] != after[field]} == {name} | masks.get(name, set())


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("integrator", ["Euler", "RK4", "implicit", "implicitfast"]),
        ("cone", ["pyramidal", "elliptic"]),
        ("solver", ["PGS", "CG", "Newton"]),
    ],
)
def test_every_word_is_mujocos_own_in_any_case(name: str, words: list[str]) -> None:
    for word in words:
        xml = f'<mujoco><option {name}="{word}"/></mujoco>'
        number = getattr(mujoco.MjModel.from_xml_string(xml).opt, name)
        for spelling in (word, word.lower(), word.upper()):
            assert check_options({name: spelling})[name] == number
        assert applied({name: word})[name] == word.lower()


def test_options_can_be_set_in_a_spec_as_well() -> None:
    spec = mujoco.MjSpec()
    assert applied(VALUES, spec.option) == read_options(spec.compile().opt)


def test_options_that_are_null_stay() -> None:
    assert check_options(dict.fromkeys(VALUES)) == {}


def test_a_patch_with_one_mistake_changes_nothing() -> None:
    option = mujoco.MjOption()
    before = read_options(option)
    with pytest.raises(BadValue, match="option density"):
        apply_options(option, check_options({**VALUES, "density": "thick"}))
    assert read_options(option) == before


def test_flags_are_their_bits() -> None:
    both = applied({"enable_multiccd": False, "enable_sleep": True})
    assert (both["disableflags"], both["enableflags"]) == (MULTICCD, SLEEP)
    option = mujoco.MjOption()
    option.disableflags, option.enableflags = MULTICCD | GRAVITY, SLEEP | ENERGY
    neither = applied({"enable_multiccd": True, "enable_sleep": False}, option)
    assert (neither["disableflags"], neither["enableflags"]) == (GRAVITY, ENERGY)


def test_named_flags_win_over_masks_in_whatever_order() -> None:
    masks = {"disableflags": GRAVITY | MULTICCD, "enableflags": ENERGY}
    flags = {"enable_multiccd": True, "enable_sleep": True}
    assert applied(masks | flags) == applied(flags | masks)
    assert applied(masks | flags)["disableflags"] == GRAVITY
    assert applied(masks | flags)["enableflags"] == ENERGY | SLEEP


def test_whole_numbers_may_be_written_with_a_point() -> None:
    assert check_options({"iterations": 7.0, "num_worker_threads": 2.0}) == {"iterations": 7, "num_worker_threads": 2}


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        ({"speed": 1}, "there is no option 'speed'; there are: ccd_iterations, .*wind"),
        ({"timestep": 0}, "option timestep must be above zero, but is 0"),
        ({"timestep": -0.1}, "option timestep must not be negative, but is -0.1"),
        ({"timestep": math.nan}, "option timestep must be finite, but is nan"),
        ({"timestep": 10**400}, "option timestep must be finite"),
        ({"timestep": "1"}, "option timestep must be a finite number, not '1'"),
        ({"timestep": True}, "option timestep must be a finite number, not True"),
        ({"density": -1}, "option density must not be negative"),
        ({"iterations": 1.5}, "option iterations must be a whole number from 0 to 10000, not 1.5"),
        ({"iterations": 2**31}, "option iterations must be a whole number"),
        ({"disableflags": -1}, "option disableflags must be a whole number"),
        ({"gravity": 9.81}, "option gravity must be a list of three numbers, not 9.81"),
        ({"gravity": [0, 0, math.inf]}, "option gravity must be finite, but is inf"),
        ({"gravity": [0, 0, 10**400]}, "option gravity must be finite"),
        ({"gravity": [0, 0, None]}, "option gravity must be a finite number, not None"),
        ({"enable_sleep": 1}, "option enable_sleep must be true or false, not 1"),
        ({"integrator": "verlet"}, "option integrator must be one of euler, implicit, implicitfast, rk4, not 'verlet'"),
        ({"integrator": 2}, "option integrator must be one of"),
        ({"cone": []}, r"option cone must be one of elliptic, pyramidal, not \[\]"),
    ],
)
def test_a_bad_value_is_named(patch: dict[str, Any], words: str) -> None:
    with pytest.raises(BadValue, match=words):
        check_options(patch)


@pytest.mark.parametrize("vector", [[], [1], [1, 2, 3, 4]])
def test_a_vector_of_another_length_is_a_mismatch(vector: list[float]) -> None:
    with pytest.raises(DimMismatch, match=f"option wind must have 3 numbers, but has {len(vector)}"):
        check_options({"wind": vector})


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.binary(max_size=3)
garbage = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
)


@settings(deadline=None, derandomize=True)
@given(st.dictionaries(st.sampled_from(OPTION_FIELDS) | st.text(max_size=4), garbage, max_size=4))
def test_garbage_is_refused_or_can_be_applied(patch: dict[str, Any]) -> None:
    option = mujoco.MjOption()
    try:
        checked = check_options(patch)
    except (BadValue, DimMismatch):
        return
    apply_options(option, checked)
    assert all(math.isfinite(number) for number in (option.timestep, *option.gravity, option.impratio))

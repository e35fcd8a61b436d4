"""Switching between the modes, in three vocabularies."""

from typing import Any

import pytest

from urlab_wire.enums import StepMode

WORDS = {
    "live": "live", "streaming": "live", "auto": "live", "direct": "direct", "puppet": "puppet",
    "freerun": "freerun", "stepped": "stepped", "statepushed": "statepushed", "DIRECT": "direct",
}  # fmt: skip


@pytest.mark.parametrize(("asked", "answered"), WORDS.items())
def test_a_mode_is_answered_in_the_callers_vocabulary(wire: Any, asked: str, answered: str) -> None:
    later = answered in ("freerun", "stepped", "statepushed")
    reply = wire.ok("set_mode", mode=asked)
    assert reply["previous_mode"] == ("stepped" if later else "direct")
    assert reply["current_mode"] == answered


@pytest.mark.parametrize(("first", "second"), [("stepped", "direct"), ("statepushed", "puppet"), ("freerun", "live")])
def test_the_later_words_mean_the_same_modes(wire: Any, first: str, second: str) -> None:
    wire.ok("set_mode", mode=first)
    assert wire.ok("set_mode", mode=second)["previous_mode"] == second


@pytest.mark.parametrize("mode", ["warp", "live ", "d" * 500])
def test_an_unknown_mode_is_told_which_exist(wire: Any, world: Any, mode: str) -> None:
    before = world()
    reply = wire.ask("set_mode", mode=mode)
    assert reply["code"] == "bad_mode"
    assert all(word in reply["message"] for word in WORDS if word.islower())
    assert world() == before


@pytest.mark.parametrize("mode", [None, ""])
def test_a_mode_is_needed(wire: Any, mode: Any) -> None:
    assert wire.refused("set_mode", mode=mode) == "missing_field"


def test_the_state_goes_on_from_mode_to_mode(wire: Any, engine: Any) -> None:
    time = wire.ok("step", n_steps=10)["time"]
    wire.ok("set_mode", mode="puppet")
    assert wire.ok("step")["time"] == time
    wire.ok("set_mode", mode="direct")
    assert wire.ok("step")["time"] == pytest.approx(time + 0.002)


@pytest.mark.parametrize("pinned", ["live", "direct", "puppet"])
def test_a_pinned_mode_cannot_be_switched(make_server: Any, connect: Any, pinned: str) -> None:
    server = make_server(step_mode=StepMode(pinned))
    wire = connect(server)
    wire.hello()
    for fields in ({"mode": "live"}, {"mode": pinned}, {}, {"mode": "warp"}):
        reply = wire.ask("set_mode", **fields)
        assert reply["code"] == "mode_locked_by_server"
        assert f"--step-mode {pinned}" in reply["message"]
    assert server.play.manager.mode == pinned
    wire.ok("begin_pie", level_path="solo")
    assert server.play.manager.mode == pinned

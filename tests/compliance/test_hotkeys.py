"""The table of hotkeys, on a running scene, through an operator's client."""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from urlab_client import InProcessTransport, URLabClient
from urlab_client.hotkeys import DRIVE_M_S, HOTKEYS, TURN_RAD_S, TWIST_KEYS, Hotkeys, hotkey_help


@pytest.fixture
def operator(server: Any, wire: Any) -> Iterator[URLabClient]:
    """Beside the client that drives; live and paused."""
    wire.ok("set_paused", paused=True)
    wire.ok("set_mode", mode="live")
    client = URLabClient(transport=InProcessTransport(server.dispatcher.handle), operator=True, camera_streams=False)
    with contextlib.closing(client):
        client.discover()
        yield client


@pytest.fixture
def hotkeys(operator: URLabClient) -> Hotkeys:
    return Hotkeys(operator, "walker")


def test_every_key_means_one_thing_and_is_listed() -> None:
    keys = [one.key for one in (*HOTKEYS, *TWIST_KEYS)]
    assert len(keys) == len(set(keys))
    assert [line.partition(": ")[0] for line in hotkey_help()] == keys


@pytest.mark.parametrize("key", [one.key for one in (*HOTKEYS, *TWIST_KEYS)])
def test_every_key_does_something_and_says_what(hotkeys: Hotkeys, key: str) -> None:
    assert hotkeys.press(key)


def test_another_key_means_nothing(hotkeys: Hotkeys) -> None:
    assert hotkeys.press("Z") is None


def test_space_pauses_and_goes_on(hotkeys: Hotkeys, operator: URLabClient) -> None:
    assert hotkeys.press("space") == "goes on"
    assert operator.sim.status().paused is False
    assert hotkeys.press("space") == "paused"
    assert operator.sim.status().paused is True


def test_single_steps_move_time_by_the_timestep_and_space_goes_on_from_there(
    hotkeys: Hotkeys, operator: URLabClient, engine: Any
) -> None:
    before = engine().data.time
    hotkeys.press(".")
    hotkeys.press(">")
    assert engine().data.time == pytest.approx(before + 11 * engine().model.opt.timestep)
    assert hotkeys.press("space") == "goes on"
    status = operator.sim.status()
    assert (status.mode, status.paused) == ("live", False)


def test_in_the_mode_of_a_driver_nothing_is_paused(hotkeys: Hotkeys, wire: Any) -> None:
    wire.ok("set_mode", mode="puppet")
    assert "puppet" in (hotkeys.press("space") or "")
    assert "puppet" in (hotkeys.press(".") or "")


def test_the_pace_is_halved_and_doubled(hotkeys: Hotkeys, operator: URLabClient) -> None:
    assert hotkeys.press("-") == "50 % of real time"
    assert hotkeys.press("-") == "25 % of real time"
    assert hotkeys.press("+") == "50 % of real time"
    assert operator.sim.status().speed_percent == 50.0


def test_twist_keys_drive_the_chosen_robot(hotkeys: Hotkeys, wire: Any) -> None:
    hotkeys.press("w")
    assert wire.ok("step")["per_articulation"]["walker"]["twist"]["linear"] == [DRIVE_M_S, 0.0, 0.0]
    hotkeys.press("e")
    assert wire.ok("step")["per_articulation"]["walker"]["twist"]["angular"] == [0.0, 0.0, -TURN_RAD_S]
    hotkeys.press("x")
    assert wire.ok("step")["per_articulation"]["walker"]["twist"]["angular"] == [0.0, 0.0, 0.0]


def test_an_overlay_goes_on_and_off(hotkeys: Hotkeys, operator: URLabClient) -> None:
    operator.viewport.set_overlays(contacts=False)
    assert hotkeys.press("c") == "contacts in the viewport: on"
    assert operator.viewport.set_overlays()["contacts"] is True
    assert hotkeys.press("c") == "contacts in the viewport: off"
    assert operator.viewport.set_overlays()["contacts"] is False

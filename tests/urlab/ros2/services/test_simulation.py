"""The simulation as a whole: paused, stepped, played, stopped, reset, and its driver stays."""

from typing import Any

import mujoco
import numpy as np
import pytest

from urlab_client import URLabClient, URLabRPCError

UNSUPPORTED, OK, _, _, FAILED = range(5)
STOPPED, PLAYING, PAUSED, QUITTING = range(4)


def test_the_simulation_is_paused_stepped_and_played_while_its_driver_stays(server: Any, every_graph: Any) -> None:
    with URLabClient("tcp://127.0.0.1", step_port=server.port, camera_streams=False) as driver:
        driver.discover()
        assert every_graph.state() == PLAYING
        assert every_graph.set_state(PAUSED).result == OK
        assert every_graph.state() == PAUSED
        model, before = server.truth()
        every_graph.ok("step_simulation", steps=130)
        _, after = server.truth()
        mujoco.mj_step(model, before, nstep=130)
        assert after.time == pytest.approx(before.time)
        assert np.array_equal(after.qpos, before.qpos)
        assert driver.step()["time"] == after.time
        assert every_graph.set_state(PLAYING).result == OK
        assert driver.sim.status().paused is False


def test_a_simulation_that_plays_is_not_stepped(graph: Any) -> None:
    code, told = graph.refused("step_simulation", steps=1)
    assert code == FAILED
    assert "pause it first" in told


def test_no_steps_are_none(server: Any, graph: Any) -> None:
    graph.set_state(PAUSED)
    before = server.truth()[1].time
    graph.ok("step_simulation", steps=0)
    assert server.truth()[1].time == before


def test_in_direct_mode_it_counts_as_paused_and_can_be_stepped_but_not_played(graph: Any, driver: URLabClient) -> None:
    before = driver.step(n_steps=3)
    assert graph.state() == PAUSED
    graph.ok("step_simulation", steps=4)
    reply = driver.step()
    assert reply["step"] - before["step"] == 5
    assert reply["time"] == pytest.approx(before["time"] + 5 * 0.002)
    told = graph.set_state(PLAYING)
    assert told.result == 102
    assert "direct mode" in told.error_message
    assert driver.sim.status().mode == "direct"


def test_in_puppet_mode_it_is_not_stepped(graph: Any, driver: URLabClient) -> None:
    driver.runtime.set_mode("puppet")
    code, told = graph.refused("step_simulation", steps=1)
    assert (code, "puppet" in told) == (FAILED, True)


def test_a_state_that_is_there_already_or_cannot_be_is_told(graph: Any) -> None:
    assert graph.set_state(PLAYING).result == 101
    quitting = graph.set_state(QUITTING)
    assert quitting.result == UNSUPPORTED
    assert "urlab serve" in quitting.error_message
    assert graph.set_state(4).result == 103
    assert graph.state() == PLAYING


def test_it_is_stopped_and_begins_paused_at_its_start(server: Any, graph: Any) -> None:
    assert graph.set_state(STOPPED).result == OK
    assert graph.state() == STOPPED
    assert not server.play.is_playing
    assert set(graph.entities()) == set(server.places)
    assert graph.numbers(graph.where("crate").pose.position) == server.places["crate"]
    assert graph.set_state(PAUSED).result == OK
    _, data = server.truth()
    assert (data.time, graph.state()) == (0, PAUSED)
    graph.set_state(STOPPED)
    assert graph.set_state(PLAYING).result == OK
    assert graph.state() == PLAYING


def test_a_play_that_is_begun_from_ros_keeps_the_driver_s_mode(graph: Any, driver: URLabClient) -> None:
    graph.set_state(STOPPED)
    with pytest.raises(URLabRPCError, match="no simulation is running"):
        driver.step()
    begun = graph.set_state(PLAYING)
    assert (begun.result, "direct" in begun.error_message) == (OK, True)
    assert driver.step(n_steps=2)["time"] == pytest.approx(0.004)


@pytest.mark.parametrize(
    ("scope", "time_back", "state_back"), [(0, 1, 1), (255, 1, 1), (3, 1, 1), (1, 1, 0), (2, 0, 1), (4, 0, 0)]
)
def test_a_reset_resets_what_it_says(
    server: Any, graph: Any, driver: URLabClient, scope: int, time_back: bool, state_back: bool
) -> None:
    driver.step(n_steps=50)
    before = server.truth()[1]
    graph.ok("reset_simulation", scope=scope)
    model, after = server.truth()
    assert after.time == (0 if time_back else before.time)
    start = model.qpos0[int(model.joint("crate_free").qposadr[0]) + 2]
    assert after.joint("crate_free").qpos[2] == (start if state_back else before.joint("crate_free").qpos[2])
    assert driver.step()["time"] == pytest.approx(after.time + 0.002)


def test_a_reset_of_unknown_scope_is_refused(graph: Any) -> None:
    code, told = graph.refused("reset_simulation", scope=9)
    assert (code, "255" in told) == (UNSUPPORTED, True)

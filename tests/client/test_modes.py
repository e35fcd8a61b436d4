"""Step modes, and the life of a client, against the real server in this process."""

import gc
import logging
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from urlab.app import Server
from urlab.config import Ports, ServerConfig
from urlab_client import InProcessTransport, StepMode, URLabClient, URLabModeWarning
from urlab_wire.enums import StepMode as Mode

BALL = """
<mujoco model="ball">
  <option timestep="0.01"/>
  <worldbody>
    <geom type="plane" size="5 5 .1"/>
    <body name="trunk" pos="0 0 .3">
      <freejoint name="root"/><geom size=".1"/>
      <body name="leg"><joint name="hip" axis="0 1 0"/><geom type="capsule" size=".02" fromto="0 0 0 .2 0 0"/></body>
    </body>
  </worldbody>
  <actuator><motor name="hip" joint="hip"/></actuator>
</mujoco>
"""

Connect = Callable[..., URLabClient]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Starts servers in this process that play the ball; options are those of `ServerConfig`."""
    model = tmp_path / "ball.xml"
    model.write_text(BALL)
    made: list[Server] = []

    def start(**options: Any) -> Server:
        server = Server(replace(ServerConfig(), project=tmp_path / "project", **options), [model])
        made.append(server)
        server.begin(Mode.LIVE)
        return server

    yield start
    for server in made:
        server.close()


@pytest.fixture
def connect(serve: Callable[..., Server]) -> Iterator[Connect]:
    """Makes clients of one server that have discovered it."""
    servers: list[Server] = []
    made: list[URLabClient] = []

    def join(*, server: Server | None = None, **options: Any) -> URLabClient:
        if server is not None or not servers:
            servers.append(server or serve())
        client = URLabClient(transport=InProcessTransport(servers[-1].dispatcher.handle), **options)
        made.append(client)
        client.discover()
        return client

    yield join
    for client in made:
        client.close()


def mode_of(client: URLabClient) -> str | None:
    return client.sim.status().mode


def test_a_client_that_asks_for_live_gets_live_from_a_server_that_was_left_in_direct(connect: Connect) -> None:
    forgotten = connect(step_mode="direct")
    assert mode_of(forgotten) == "direct"
    client = connect(step_mode="live")
    assert (client.step_mode, mode_of(client)) == (StepMode.LIVE, "live")
    before = client.step()["time"]
    while client.step()["time"] == before:
        pass


def test_an_auto_client_takes_the_mode_in_force_and_reports_it(connect: Connect) -> None:
    connect(step_mode="direct")
    client = connect()
    assert client.step_mode is StepMode.DIRECT
    time_s = client.sim_time
    assert client.step(3)["time"] == pytest.approx(time_s + 0.03)


@pytest.mark.parametrize(("found", "asked"), [("live", "direct"), ("live", "puppet"), ("direct", "live")])
def test_closing_gives_back_the_mode_that_was_found(connect: Connect, found: str, asked: str) -> None:
    watcher = connect(operator=True)
    watcher.runtime.set_mode(found)
    with connect(step_mode=asked):
        assert mode_of(watcher) == asked
    assert mode_of(watcher) == found


def test_closing_leaves_a_mode_alone_that_was_in_force_already(connect: Connect) -> None:
    watcher = connect(operator=True)
    watcher.runtime.set_mode("direct")
    connect(step_mode="direct").close()
    assert mode_of(watcher) == "direct"


def test_a_mode_that_the_caller_switched_to_is_given_back_too(connect: Connect) -> None:
    watcher = connect(operator=True)
    with connect() as client:
        client.runtime.set_mode("direct")
        client.runtime.set_mode("puppet")
    assert mode_of(watcher) == "live"


@pytest.mark.parametrize(("asked", "kept"), [("live", "live"), ("auto", "direct"), ("puppet", "puppet")])
def test_a_client_whose_session_was_taken_over_leaves_the_mode_to_its_successor(
    connect: Connect, asked: str, kept: str
) -> None:
    former = connect(step_mode="direct")
    latter = connect(step_mode=asked)
    former.close()
    assert (mode_of(latter), latter.step_mode) == (kept, kept)
    before = latter.step()["time"]
    while latter.step()["time"] == before:
        assert kept == "live", "a step moves time in the other modes"


def test_a_pinned_server_warns_in_words_and_in_the_log(
    connect: Connect, serve: Callable[..., Server], caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.warns(URLabModeWarning, match="is in live mode, and this client asked for direct"):
        client = connect(server=serve(step_mode=Mode.LIVE), step_mode="direct")
    assert client.step_mode is StepMode.LIVE
    assert "asked for direct" in caplog.text
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        connect(step_mode="live")


def test_a_client_that_does_not_ask_is_warned_of_another_mode(connect: Connect) -> None:
    with pytest.warns(URLabModeWarning, match="asked for direct: auto_promote_step_mode is False"):
        connect(step_mode="direct", auto_promote_step_mode=False)


def test_a_start_in_another_mode_is_for_this_play_only(connect: Connect) -> None:
    client = connect(step_mode="direct")
    client.sim.stop()
    client.sim.start(step_mode="live")
    assert (client.step_mode, mode_of(client)) == (StepMode.LIVE, "live")
    client.sim.stop()
    client.sim.start()
    assert (client.step_mode, mode_of(client)) == (StepMode.DIRECT, "direct")


@pytest.mark.parametrize("mode", ["direct", "puppet"])
def test_after_discover_the_state_is_the_servers_after_the_switch(connect: Connect, mode: str) -> None:
    runner = connect(step_mode="live")
    while runner.step()["step"] < 5:
        pass
    client = connect(step_mode=mode)
    assert client.step_count == 0
    seen = client.sim_time, client.data.qpos.tolist(), client.data.time
    looker = connect(observer=True)
    assert seen == (looker.sim_time, looker.data.qpos.tolist(), looker.sim_time)
    assert client.step(1)["step"] == 1


def test_after_discover_in_live_nothing_has_been_stepped_yet(connect: Connect) -> None:
    connect(step_mode="live")
    assert connect(step_mode="live").step_count == 0


def test_a_puppets_robots_stand_where_its_data_says_after_a_step(connect: Connect) -> None:
    client = connect(step_mode="puppet")
    ball = client.articulations["ball"]
    for _ in range(3):
        client.step(1)
        assert np.array_equal(ball.root_pos_w, client.data.qpos[:3])
        assert np.array_equal(client.data.body("ball_trunk").xpos, client.data.qpos[:3])
    client.data.qpos[2] = 0.7
    client.step(0)
    assert ball.root_pos_w[2] == 0.7


def test_a_puppet_that_is_looked_at_steps_as_a_plain_loop(connect: Connect) -> None:
    client = connect(step_mode="puppet")
    client.reset()
    plain = mujoco.MjData(client.model)
    client.data.qvel[:] = plain.qvel[:] = 0.3
    for _ in range(200):
        client.step(1)
        assert client.articulations["ball"].root_pos_w is not None
        mujoco.mj_step(client.model, plain)
    assert plain.ncon > 0
    assert np.array_equal(client.data.qpos, plain.qpos)
    assert np.array_equal(client.data.qvel, plain.qvel)


def test_the_latest_state_of_a_live_simulation_needs_no_step(connect: Connect) -> None:
    client = connect(step_mode="live")
    first = client.latest_state
    assert first is not None
    assert len(first.per_articulation["ball"].qpos) == 8
    while True:
        newer = client.latest_state
        assert newer is not None
        if newer.time > first.time:
            break
    client.runtime.set_mode("direct")
    assert client.latest_state is None


def test_the_latest_state_comes_from_the_stream_where_there_is_one(serve: Callable[..., Server]) -> None:
    server = serve(ports=Ports.any(), shm=False)
    server.open_sockets()
    base, _, port = str(server.endpoints()["step"]).rpartition(":")
    with URLabClient(base, step_port=int(port), step_mode="live") as client:
        client.discover()
        times: set[float] = set()
        while len(times) < 3:
            state = client.latest_state
            times |= set() if state is None else {state.time}
        assert client._state_msg_count >= 3


def threads() -> set[str]:
    return {one.name for one in threading.enumerate() if one.name.startswith("urlab-")}


def test_a_client_that_is_dropped_ends_its_threads_and_gives_its_mode_back(
    serve: Callable[..., Server], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    server = serve(ports=Ports.any(), shm=False)
    server.open_sockets()
    base, _, port = str(server.endpoints()["step"]).rpartition(":")
    watcher = URLabClient(base, step_port=int(port), operator=True, step_mode="direct")
    watcher.discover()
    before = set(threading.enumerate())
    watcher.runtime.set_mode("direct")
    client: URLabClient | None = URLabClient(base, step_port=int(port), step_mode="live")
    assert client is not None
    client.discover()
    assert not set(threading.enumerate()) <= before
    del client
    while mode_of(watcher) != "direct":
        gc.collect()
    watcher.close()
    while threads() & {"urlab-leave", "urlab-states", "urlab-cameras"}:
        pass


def test_a_cell_that_is_run_again_leaves_no_thread_of_the_old_client(
    serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "ps1", "In [1]: ", raising=False)  # as notebooks do
    server = serve(ports=Ports.any(), shm=False)
    server.open_sockets()
    base, _, port = str(server.endpoints()["step"]).rpartition(":")
    gc.collect()
    gc.disable()  # Python's collector may come by late: nothing here waits for it
    try:
        counts = set()
        for _ in range(4):
            client = URLabClient(base, step_port=int(port), step_mode="live")
            client.discover()
            while (count := [one.name for one in threading.enumerate()].count("urlab-states")) > 1:
                pass  # its end is waited for a second only
            counts.add(count)
        client.close()
        assert counts == {1}
    finally:
        gc.enable()


def test_an_embedded_server_ends_with_its_dropped_client(tmp_path: Path) -> None:
    import urlab

    model = tmp_path / "ball.xml"
    model.write_text(BALL)
    before = set(threading.enumerate())
    for _ in range(3):
        client = urlab.launch(model, project=tmp_path / "project")
        client.step()
    del client
    while not set(threading.enumerate()) <= before:
        gc.collect()

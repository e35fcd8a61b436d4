"""A client that stays with a real server, whose process is killed, hangs, comes back and plays other levels."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from urlab.child_process import ServerProcess
from urlab_client import PIEState, URLabClient, URLabRPCError, URLabTimeoutError
from urlab_client.following import ServerFollower

PATIENCE_MS = 4000
MODEL = """<mujoco model="{name}"><worldbody><body name="base"><joint name="hinge"/><geom size=".1"/></body></worldbody>
  <actuator><motor name="motor" joint="hinge"/></actuator></mujoco>"""


class Restartable:
    """A server with the levels ``arm`` and ``post``, which comes back to the port that it had."""

    def __init__(self, project: Path, step_port: int) -> None:
        self.port = step_port
        self._options = ("--project", str(project), "--step-port", str(step_port), "--no-camera-streams")
        self.start("arm")

    def start(self, level: str) -> None:
        self._running = ServerProcess(level, *self._options)

    @property
    def pid(self) -> int:
        return self._running.pid

    def kill(self) -> None:
        self._running.kill()
        self._running.stop()

    def restart(self, level: str) -> None:
        self.kill()
        self.start(level)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, lasting_port: Callable[[], int]) -> Iterator[Restartable]:
    project = tmp_path_factory.mktemp("project")
    (project / "Levels").mkdir()
    for name in ("arm", "post"):
        (project / "Levels" / f"{name}.xml").write_text(MODEL.format(name=name))
        actor = f'[[actors]]\nblueprint = "{name}.xml"\nname = "{name}"\nactor_id = "{name}_0"'
        (project / "Levels" / f"{name}.toml").write_text(f'version = 1\nname = "{name}"\n{actor}\n')
    server = Restartable(project, lasting_port())
    yield server
    server.kill()


def client_of(server: Restartable, *, observer: bool) -> URLabClient:
    return URLabClient(
        "tcp://127.0.0.1", step_port=server.port, observer=observer, operator=not observer, step_mode="direct",
        camera_streams=False, rcv_timeout_ms=PATIENCE_MS,
    )  # fmt: skip


@pytest.fixture
def follower(server: Restartable) -> Iterator[ServerFollower[URLabClient]]:
    follower = ServerFollower(client_of(server, observer=True))
    yield follower
    follower.close()


@pytest.fixture
def operator(server: Restartable) -> Iterator[ServerFollower[URLabClient]]:
    operator = ServerFollower(client_of(server, observer=False))
    yield operator
    operator.close()


Follower = ServerFollower[URLabClient]


def test_the_session_is_opened_once_it_is_needed_and_then_kept(follower: Follower) -> None:
    assert follower.handshakes == 0
    sessions = {follower.call(lambda client: client.session_id) for _ in range(3)}
    assert len(sessions) == follower.handshakes == 1
    assert follower.poll().state is PIEState.READY
    assert (follower.handshakes, follower.interruptions) == (1, 0)
    assert list(follower.client.articulations) == ["arm"]


def test_a_refusal_of_the_server_is_the_caller_s_and_changes_nothing(follower: Follower) -> None:
    follower.poll()
    with pytest.raises(URLabRPCError, match="observer"):
        follower.call(lambda client: client.sim.stop())
    assert follower.poll().state is PIEState.READY
    assert (follower.handshakes, follower.interruptions) == (1, 0)


def test_another_level_is_shown_by_the_next_poll(follower: Follower, operator: Follower) -> None:
    follower.poll()
    operator.call(lambda client: client.sim.start(level_path="/Game/Levels/post"))
    assert str(follower.poll().level).endswith("post")
    assert list(follower.client.articulations) == ["post"]
    operator.call(lambda client: client.sim.stop())
    assert follower.poll().state is not PIEState.READY
    assert not follower.client.manager_present
    operator.call(lambda client: client.sim.start(level_path="/Game/Levels/arm"))
    follower.poll()
    assert list(follower.client.articulations) == ["arm"]
    assert follower.interruptions == 0


def test_a_scene_that_is_suspected_to_be_another_is_looked_at_again(follower: Follower) -> None:
    follower.poll()
    before = follower.client.articulations["arm"]
    follower.is_stale = True
    follower.poll()
    follower.poll()
    assert follower.handshakes == 2
    assert follower.client.articulations["arm"] is before


def test_a_server_that_hangs_and_goes_on_is_an_interruption(
    server: Restartable, follower: Follower, halt: Callable[[int], None]
) -> None:
    follower.poll()
    halt(server.pid)
    try:
        with pytest.raises(URLabTimeoutError):
            follower.poll()
    finally:
        os.kill(server.pid, signal.SIGCONT)
    assert follower.status is None
    assert follower.poll().state is PIEState.READY
    assert (follower.handshakes, follower.interruptions) == (2, 1)


def test_a_restart_between_two_calls_costs_a_session_and_no_call(server: Restartable, operator: Follower) -> None:
    assert operator.call(lambda client: list(client.articulations)) == ["arm"]
    server.restart("post")
    operator.call(lambda client: client.runtime.set_paused(True))
    assert operator.call(lambda client: list(client.articulations)) == ["post"]
    assert operator.handshakes == 2


def test_a_restart_between_two_polls_is_noticed(server: Restartable, follower: Follower) -> None:
    server.restart("post")
    follower.poll()
    server.restart("arm")
    assert str(follower.poll().level).endswith("arm")
    assert list(follower.client.articulations) == ["arm"]
    assert (follower.handshakes, follower.interruptions) == (2, 1)


def test_a_server_that_is_killed_is_missed_until_it_is_back(server: Restartable, follower: Follower) -> None:
    follower.poll()
    server.kill()
    for _ in range(2):
        with pytest.raises(URLabTimeoutError, match=r"no server listens|ended before it answered"):
            follower.poll()
        assert follower.status is None
    assert follower.interruptions == 1
    server.start("post")
    assert str(follower.poll().level).endswith("post")
    assert list(follower.client.articulations) == ["post"]
    assert follower.interruptions == 1


def test_a_server_that_was_never_there_is_no_interruption(server: Restartable, follower: Follower) -> None:
    server.kill()
    with pytest.raises(URLabTimeoutError):
        follower.poll()
    assert (follower.handshakes, follower.interruptions) == (0, 0)
    server.start("arm")
    assert follower.poll().state is PIEState.READY

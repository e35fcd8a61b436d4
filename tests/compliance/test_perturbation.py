"""Bodies that are pushed and dragged: against MuJoCo's own viewer, and until when they are held."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgpack
import mujoco
import numpy as np
import pytest
import zmq

from urlab.mujoco_versions import VERSION
from urlab_client.transports.shm_link import ShmLink


@pytest.fixture
def alone(wire: Any, plain: Any, engine: Any, full_state: Any) -> Any:
    """MuJoCo alone, in the state of the server."""
    alone = plain(wire.play("arena")["mjb"])
    mujoco.mj_setState(alone.model, alone.data, full_state(engine()), mujoco.mjtState.mjSTATE_INTEGRATION)
    alone.forward()
    return alone


def viewer_drag(alone: Any, body: str, point: list[float], active: int) -> Any:
    """What MuJoCo's viewer has when a user takes hold of a body there."""
    scene = mujoco.MjvScene(alone.model, 100)
    for camera in scene.camera:
        camera.frustum_near, camera.frustum_top, camera.frustum_bottom = 0.1, 0.1, -0.1
        camera.forward[:], camera.up[:] = [1, 0, 0], [0, 0, 1]
    drag = mujoco.MjvPerturb()
    drag.select, drag.active = alone.model.body(body).id, active
    drag.localpos[:] = point
    mujoco.mjv_initPerturb(alone.model, alone.data, scene, drag)
    return drag


def step_with(alone: Any, drags: list[Any], n_steps: int) -> None:
    for _ in range(n_steps):
        alone.data.ctrl[:] = 0
        for drag in drags:
            mujoco.mjv_applyPerturbForce(alone.model, alone.data, drag)
        mujoco.mj_step(alone.model, alone.data)


RAW = {"walker": {"control_mode": "raw"}}


@pytest.mark.parametrize("split", [[60], [1] * 60, [7, 53]], ids=str)
@pytest.mark.parametrize(("body", "point"), [("crate", [0.1, -0.05, 0.1]), ("arm_fore", [0.2, 0, 0])])
def test_a_drag_is_that_of_mujocos_viewer(
    wire: Any, alone: Any, engine: Any, body: str, point: list[float], split: list[int]
) -> None:
    drag = viewer_drag(alone, body, point, int(mujoco.mjtPertBit.mjPERT_TRANSLATE))
    drag.refselpos[:] += [0.3, 0.2, 0.6]
    wire.ok("perturb", body=body, point=point, target=drag.refselpos.tolist())
    for n_steps in split:
        wire.ok("step", n_steps=n_steps, per_articulation=RAW)
    step_with(alone, [drag], 60)
    assert np.allclose(engine().data.qpos, alone.data.qpos, rtol=0, atol=1e-9)
    assert np.allclose(engine().data.qvel, alone.data.qvel, rtol=0, atol=1e-7)


@pytest.mark.skipif(VERSION < (4,), reason="older viewers turn with another torque; here it is MuJoCo 4's everywhere")
def test_a_body_is_turned_as_in_mujocos_viewer(wire: Any, alone: Any, engine: Any) -> None:
    both = int(mujoco.mjtPertBit.mjPERT_TRANSLATE) | int(mujoco.mjtPertBit.mjPERT_ROTATE)
    drag = viewer_drag(alone, "crate", [0.1, 0, 0], both)
    drag.refselpos[:] += [0, 0, 0.5]
    drag.refquat[:] = [np.cos(0.4), 0, 0, np.sin(0.4)]
    place = {"target": drag.refselpos.tolist(), "target_quat": drag.refquat.tolist()}
    wire.ok("perturb", body="crate", point=[0.1, 0, 0], **place)
    wire.ok("step", n_steps=60, per_articulation=RAW)
    step_with(alone, [drag], 60)
    assert np.allclose(engine().data.qpos, alone.data.qpos, rtol=0, atol=1e-9)


def test_a_stiffer_spring_holds_a_body_closer_to_its_target(wire: Any) -> None:
    lowest = []
    for stiffness in (50, 5000):
        wire.ok("reset")
        wire.ok("perturb", body="crate", target=[2, 0, 1], stiffness=stiffness)
        lowest.append(wire.ok("step", n_steps=3000)["entities"]["crate"]["qpos"][2])
    assert lowest[0] == pytest.approx(1 - 9.81 / 50, abs=0.01)
    assert lowest[1] == pytest.approx(1 - 9.81 / 5000, abs=0.001)


def test_a_push_is_a_plain_loop_with_xfrc_applied(wire: Any, alone: Any, engine: Any, full_state: Any) -> None:
    wire.ok("perturb", body="crate", force=[1, 2, 30], torque=[0.1, 0, 0.2])
    wire.ok("perturb", body="arm_fore", force=[0, 0, 3])
    for n_steps in (1, 40):
        wire.ok("step", n_steps=n_steps, per_articulation=RAW)
    for body, wrench in (("crate", [1, 2, 30, 0.1, 0, 0.2]), ("arm_fore", [0, 0, 3, 0, 0, 0])):
        alone.data.xfrc_applied[alone.model.body(body).id] = wrench
    alone.step(41)
    alone.data.xfrc_applied[:] = 0
    assert np.array_equal(full_state(engine()), alone.state())


def test_a_force_at_a_point_turns_the_body(wire: Any) -> None:
    wire.ok("perturb", body="crate", force=[0, 0, 20], point=[0.1, 0, 0])
    assert wire.ok("step", n_steps=20)["entities"]["crate"]["qvel"][4] < -0.5


def test_without_a_perturbation_a_step_is_a_plain_loop_again(
    wire: Any, alone: Any, engine: Any, full_state: Any
) -> None:  # fmt: skip
    wire.ok("perturb", body="crate", target=[0, 0, 1])
    assert wire.ok("release_perturbation")["released"] == ["crate"]
    wire.ok("step", n_steps=100, per_articulation=RAW)
    alone.step(100)
    assert np.array_equal(full_state(engine()), alone.state())


def test_another_perturbation_of_a_body_replaces_the_first(wire: Any, server: Any) -> None:
    first = wire.ok("perturb", body="crate", force=[0, 0, 100])
    second = wire.ok("perturb", body="crate", force=[0, 0, 0])
    assert second["version"] > first["version"]
    assert [one.body for one in server.play.manager.perturbations] == ["crate"]
    assert abs(wire.ok("step", n_steps=20)["entities"]["crate"]["qvel"][2]) < 0.1


def test_one_body_of_several_is_released(wire: Any, server: Any) -> None:
    for body in ("crate", "walker_trunk", "fore"):
        wire.ok("perturb", body=body, force=[0, 0, 1])
    assert wire.ok("release_perturbation", body="trunk")["released"] == ["walker_trunk"]
    assert wire.ok("release_perturbation", body="trunk")["released"] == []
    assert [one.body for one in server.play.manager.perturbations] == ["crate", "arm_fore"]


def test_a_reset_lets_go_and_a_reset_of_the_time_alone_does_not(wire: Any, server: Any) -> None:
    wire.ok("perturb", body="crate", force=[0, 0, 1])
    wire.ok("reset", scope="time")
    assert len(server.play.manager.perturbations) == 1
    wire.ok("reset")
    assert server.play.manager.perturbations == ()


def test_what_a_session_holds_is_released_when_it_ends(wire: Any, stranger: Any, server: Any) -> None:
    stranger.hello(operator=True)
    stranger.ok("perturb", body="crate", force=[0, 0, 1])
    wire.ok("perturb", body="walker_trunk", force=[0, 0, 1])
    wire.hello()
    assert [one.body for one in server.play.manager.perturbations] == ["crate"]
    assert stranger.ok("release_perturbation")["released"] == ["crate"]


def until_free(server: Any) -> None:
    """The server notices on a thread of its own that a client is gone; nothing tells when."""
    deadline_s = time.monotonic() + 20
    while server.play.manager.perturbations:
        assert time.monotonic() < deadline_s, "the body is still held"
        time.sleep(0.001)


@contextlib.contextmanager
def connection(server: Any) -> Iterator[Callable[..., Any]]:
    """Asks over a connection that is lost at the end, without a word."""
    with zmq.Context() as context, context.socket(zmq.REQ) as socket:
        socket.setsockopt(zmq.LINGER, 0)
        socket.connect(server.endpoints()["step"])

        def ask(**message: Any) -> Any:
            socket.send(msgpack.packb(message))
            reply = msgpack.unpackb(socket.recv())
            assert reply["op"] == f"{message['op']}_ok", reply
            return reply

        yield ask


@pytest.mark.parametrize("hello", [{}, {"operator": True}], ids=["driver", "operator"])
def test_a_client_whose_connection_is_lost_lets_go(wire: Any, server: Any, hello: dict[str, bool]) -> None:
    with connection(server) as ask:
        session_id = ask(op="hello", **hello)["session_id"]
        ask(op="perturb", session_id=session_id, body="crate", **PUSH)
        assert [one.body for one in server.play.manager.perturbations] == ["crate"]
    until_free(server)


def test_a_client_that_has_taken_hold_over_another_connection_keeps_it(wire: Any, server: Any) -> None:
    with connection(server) as newer:
        with connection(server) as older:
            push = {"op": "perturb", "session_id": older(op="hello", operator=True)["session_id"], **PUSH}
            older(body="crate", **push)
            newer(body="crate", **push)
            before = server._rpc.queues()["connections"]
        deadline_s = time.monotonic() + 20
        while server._rpc.queues()["connections"] == before:
            assert time.monotonic() < deadline_s, "the server did not notice"
        assert [one.body for one in server.play.manager.perturbations] == ["crate"]
    until_free(server)


@pytest.mark.parametrize("another_comes", [True, False])
def test_a_client_that_leaves_shared_memory_lets_go(
    make_server: Any, monkeypatch: pytest.MonkeyPatch, another_comes: bool
) -> None:
    monkeypatch.setattr("urlab.transport.shm.server._RESTORE_S", 1e9 if another_comes else 0.01)
    server = make_server()
    session_id = msgpack.unpackb(server.dispatcher.handle(msgpack.packb({"op": "hello"})))["session_id"]
    link = ShmLink(server.shm_folder, "here")
    push = {"op": "perturb", "session_id": session_id, "body": "crate", "force": [0, 0, 1]}
    assert msgpack.unpackb(link.ask(msgpack.packb(push), timeout_s=20))["op"] == "perturb_ok"
    assert len(server.play.manager.perturbations) == 1
    link.close()
    if another_comes:
        link = ShmLink(server.shm_folder, "here")
        link.ask(msgpack.packb({"op": "pie_status", "session_id": session_id}), timeout_s=20)
        link.close()
    until_free(server)


def test_a_session_without_a_body_releases_its_own_only(wire: Any, stranger: Any) -> None:
    stranger.hello(operator=True)
    wire.ok("perturb", body="crate", force=[0, 0, 1])
    assert stranger.ok("release_perturbation")["released"] == []
    assert stranger.ok("release_perturbation", body="crate")["released"] == ["crate"]


WRONG = [
    ({"body": "robot", "force": [0, 0, 1]}, "unknown_body", "crate"),
    ({"body": "slab", "force": [0, 0, 1]}, "bad_value", "fixed to the world"),
    ({"body": "base", "force": [0, 0, 1]}, "bad_value", "fixed to the world"),
    ({"body": "goal", "force": [0, 0, 1]}, "bad_value", "set_mocap_pose"),
    ({"body": "crate"}, "missing_field", "target"),
    ({"body": "crate", "point": [0, 0, 0]}, "missing_field", "target"),
    ({"body": "crate", "force": [0, 0, 1], "target": [0, 0, 1]}, "bad_value", "not both"),
    ({"body": "crate", "force": [0, 1]}, "dim_mismatch", "force"),
    ({"body": "crate", "target": [0, 0, float("nan")]}, "bad_value", "target"),
    ({"body": "crate", "target_quat": [0, 0, 0, 0]}, "bad_value", "target_quat"),
    ({"body": "crate", "target": [0, 0, 1], "stiffness": 0}, "bad_value", "stiffness"),
    ({"body": "crate", "force": [0, 0, 1], "stiffness": 5}, "bad_value", "a push has none"),
    ({"body": "crate", "torque": [0, 0, 1], "point": [0, 0, 1]}, "bad_value", "point"),
]


@pytest.mark.parametrize(("asked", "code", "told"), WRONG, ids=str)
def test_a_wrong_perturbation_is_refused(wire: Any, server: Any, asked: Any, code: str, told: str) -> None:
    reply = wire.ask("perturb", **asked)
    assert (reply["op"], reply["code"]) == ("error", code)
    assert told in reply["message"]
    assert server.play.manager.perturbations == ()


def test_releasing_an_unknown_body_is_refused(wire: Any) -> None:
    assert wire.refused("release_perturbation", body="robot") == "unknown_body"


def test_a_body_is_taken_hold_of_while_a_long_step_runs(wire: Any, stranger: Any, engine: Any) -> None:
    """Without waiting for the end of the window: it acts from the next sub-step on."""
    stranger.hello(operator=True)
    replies: list[Any] = []

    def ask_from_another_thread() -> None:
        if engine().data.time > 0.02 and not replies:
            thread = threading.Thread(target=lambda: replies.append(stranger.ok("perturb", body="crate", **PUSH)))
            thread.start()
            thread.join(10)

    engine().post_step.append(ask_from_another_thread)
    assert wire.ok("step", n_steps=50)["entities"]["crate"]["qvel"][2] > 10
    assert replies[0]["body"] == "crate"


PUSH = {"force": [0, 0, 1000]}

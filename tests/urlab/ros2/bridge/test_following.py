"""Which topics there are, and how they follow a server that comes, goes and changes."""

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq

from urlab.ros2.bridge import Bridge, BridgeSettings
from urlab.ros2.qos import LATCHED
from urlab_client import URLabClient
from urlab_wire.codec import encode
from urlab_wire.ops.stepping import split_s

PATIENCE_S = 30.0
JOINT = "sensor_msgs/msg/JointState"
QUICK: Any = {"poll_s": 0.1, "timeout_ms": 300}
"""How often the bridge asks the server, and for how long it waits."""


def stamped(message: Any, seconds: float) -> bool:
    return (message.header.stamp.sec, message.header.stamp.nanosec) == split_s(seconds)


def test_with_one_robot_there_are_plain_names_too(shared_bridge: Any):
    _, graph, _ = shared_bridge
    for name in ("joint_states", "odom", "imu", "sensor_data", "robot_description"):
        assert {f"/{name}", f"/rover/{name}"} <= graph.topics
    assert {"/camera/image_raw", "/camera/camera_info", "/camera/image_raw/compressed"} <= graph.topics
    assert {"/control", "/rover/control", "/cmd_vel"} <= {topic for topic, heard in graph.heard.items() if heard}


def test_with_two_robots_there_are_none(serve: Any, bridged: Any, graph: Any):
    bridged(serve("duo"))
    assert {"/rover/joint_states", "/post/joint_states", "/tf", "/clock"} <= graph.topics
    assert not {"/joint_states", "/camera/image_raw", "/robot_description"} & graph.topics
    assert not graph.heard["/joint_command"]
    assert graph.heard["/post/joint_command"]


def test_robots_and_cameras_may_be_chosen(serve: Any, bridged: Any, graph: Any, caplog: pytest.LogCaptureFixture):
    bridged(serve("duo"), robots=("post", "dog"), cameras=())
    assert {"/post/joint_states", "/joint_states"} <= graph.topics
    assert not [topic for topic in graph.topics if topic.startswith("/rover") or "camera" in topic]
    assert "there is no robot 'dog' to bridge; there are: rover, post" in caplog.text


def test_a_late_joiner_hears_the_description(shared_bridge: Any):
    _, graph, _ = shared_bridge
    description = graph.ear("/robot_description", "std_msgs/msg/String", LATCHED)
    assert "<robot" in description.first().data
    assert "turn" in description.first().data
    still = graph.ear("/tf_static", "tf2_msgs/msg/TFMessage", LATCHED)
    assert "rover/eye_optical_frame" in {one.child_frame_id for one in still.first().transforms}


def test_another_level_brings_other_topics(server: Any, driver: URLabClient, bridged: Any, graph: Any, wait_until: Any):
    bridged(server)
    driver.sim.start(level_path="/Game/Levels/yard")
    wait_until(lambda: "/post/joint_states" in graph.topics)
    assert not [topic for topic in graph.topics if topic.startswith("/rover")]
    assert not graph.heard["/rover/control"]
    joints = graph.ear("/joint_states", JOINT)
    assert joints.after(0).name == ["swing"]


def test_a_play_that_stops_is_waited_for(
    server: Any, driver: URLabClient, bridged: Any, graph: Any, caplog: pytest.LogCaptureFixture, wait_until: Any
):
    bridge = bridged(server)
    offered = set(graph.offered)
    driver.sim.stop()
    wait_until(lambda: not bridge.is_ready)
    assert bridge.problem == "the server plays nothing"
    driver.sim.start()
    wait_until(lambda: bridge.is_ready)
    joints = graph.ear("/rover/joint_states", JOINT)
    driver.step()
    joints.after(0)
    assert set(graph.offered) == offered
    assert caplog.text.count("waiting: the server plays nothing") == 1


def test_a_reset_keeps_topics_streams_and_session(server: Any, driver: URLabClient, bridged: Any, graph: Any):
    joints = graph.ear("/rover/joint_states", JOINT)
    bridge = bridged(server)
    listening = {one.ident for one in threading.enumerate()}
    offered = set(graph.offered)
    for _ in range(5):
        driver.step(n_steps=20)
        driver.reset()
        driver.step()
    _, data = server.truth()
    joints.first(lambda one: stamped(one, data.time))
    assert bridge.is_ready
    assert set(graph.offered) == offered
    assert listening <= {one.ident for one in threading.enumerate()}


def test_a_server_that_is_restarted_is_found_again(serve: Any, ports: Any, bridged: Any, graph: Any, wait_until: Any):
    server = serve(ports=ports)
    bridge = bridged(server)
    server.close()
    wait_until(lambda: not bridge.is_ready)
    serve("duo", ports=ports)
    wait_until(lambda: bridge.is_ready and "/post/joint_states" in graph.topics)
    graph.ear("/rover/joint_states", JOINT).after(0)


def test_a_server_that_was_restarted_between_two_looks_is_said_to_be_back(
    serve: Any, ports: Any, run: Any, graph: Any, wait_until: Any, caplog: pytest.LogCaptureFixture
):
    caplog.set_level("INFO", "urlab.ros2")
    server = serve(ports=ports)
    bridge = run(graph, BridgeSettings(step_port=server.port, poll_s=3.0, timeout_ms=300))
    wait_until(lambda: bridge.is_ready)
    server.close()
    serve(ports=ports)
    wait_until(lambda: "the server is back" in caplog.text)
    graph.ear("/rover/joint_states", JOINT).after(0)


@contextlib.contextmanager
def refusing(port: int) -> Iterator[list[bytes]]:
    """A server that refuses every request, and keeps them."""
    received: list[bytes] = []
    refusal = encode({"op": "error", "code": "busy", "message": "not yet"})
    ending = threading.Event()
    with zmq.Context.instance().socket(zmq.REP) as socket:
        socket.setsockopt(zmq.LINGER, 0)
        socket.bind(f"tcp://127.0.0.1:{port}")

        def answer() -> None:
            while not ending.is_set():
                if socket.poll(20):
                    received.append(socket.recv())
                    socket.send(refusal)

        thread = threading.Thread(target=answer)
        thread.start()
        yield received
        ending.set()
        thread.join()


def test_a_server_that_is_not_there_yet_is_waited_for_and_that_is_said_once(
    serve: Any, ports: Any, run: Any, graph: Any, caplog: pytest.LogCaptureFixture, wait_until: Any
):
    bridge = run(graph, BridgeSettings(step_port=ports.step, **QUICK))
    wait_until(lambda: "no server listens" in caplog.text)
    assert not bridge.is_ready
    assert not graph.topics
    serve(ports=ports)
    wait_until(lambda: bridge.is_ready)
    assert caplog.text.count("no server listens") == 1  # one that is busy may be waited for after that
    graph.ear("/joint_states", JOINT).after(0)


def test_a_server_that_refuses_is_asked_again_and_that_is_said_once(
    run: Any, graph: Any, caplog: pytest.LogCaptureFixture, lasting_port: Any, wait_until: Any
):
    port = lasting_port()
    with refusing(port) as received:
        bridge = run(graph, BridgeSettings(step_port=port, **QUICK))
        wait_until(lambda: len(received) >= 3)
    assert sum("waiting:" in line and "not yet" in line for line in caplog.text.splitlines()) == 1
    assert "not yet" in str(bridge.problem)


def test_whoever_drives_is_not_disturbed(serve: Any, bridged: Any, graph: Any):
    server = serve()
    with URLabClient("tcp://127.0.0.1", step_port=server.port, step_mode="live", camera_streams=False) as policy:
        policy.discover()
        session = policy.session_id
        bridged(server)
        graph.ear("/rover/joint_states", JOINT).after(0)
        graph.ear("/rover/camera/eye/image_raw", "sensor_msgs/msg/Image").after(0)
        times = [policy.step()["time"] for _ in range(20)]
        assert policy.session_id == session
        assert policy.sim.status().mode == "live"
        assert times == sorted(times)


def test_many_plays_leave_nothing_behind(server: Any, driver: URLabClient, bridged: Any, graph: Any, wait_until: Any):
    bridge = bridged(server)
    pictures = [graph.ear(f"/{name}/image_raw", "sensor_msgs/msg/Image") for name in ("rover/camera/eye", "camera")]
    pictures[0].after(0)

    def play(level: str, topic: str) -> None:
        driver.sim.start(level_path=f"/Game/Levels/{level}")
        wait_until(lambda: bridge.is_ready and topic in graph.topics)

    play("yard", "/post/joint_states")
    play("lab", "/rover/joint_states")
    pictures[0].after()
    files, threads, sockets = used()
    for _ in range(2):
        play("yard", "/post/joint_states")
        play("lab", "/rover/joint_states")
    pictures[0].after()
    wait_until(lambda: used() <= (files + 2, threads, sockets))


def used() -> tuple[int, int, int]:
    names = [one.name for one in threading.enumerate()]
    return len(list(Path("/proc/self/fd").iterdir())), len(names), sum(name.startswith("urlab-ros2") for name in names)


def test_stopping_leaves_no_thread_and_no_topic(server: Any, graph: Any):
    before = {one.ident for one in threading.enumerate()}
    bridge = Bridge(graph, BridgeSettings(step_port=server.port))
    thread = threading.Thread(target=bridge.run)
    thread.start()
    graph.ear("/rover/camera/eye/image_raw", "sensor_msgs/msg/Image").after(0)
    bridge.stop()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    assert not graph.topics
    ours = [one.name for one in threading.enumerate() if one.name.startswith("urlab-ros2") and one.ident not in before]
    assert not ours
    assert not any(heard for topic, heard in graph.heard.items() if "command" in topic)

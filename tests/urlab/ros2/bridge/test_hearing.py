"""Commands from the graph: good ones reach the robot, bad ones are refused, logged and counted."""

import itertools
import logging
import math
import time
from collections.abc import Callable
from typing import Any

import pytest

from urlab.ros2 import messages
from urlab_client import URLabClient


def turned(server: Any) -> float:
    return float(server.truth()[1].qpos[7])


JOINT, ARRAY, TWIST = "sensor_msgs/msg/JointState", "std_msgs/msg/Float64MultiArray", "geometry_msgs/msg/Twist"


def is_connected(server: Any, graph: Any) -> bool:
    """Whether commands arrive: those of the first moments may be lost."""
    graph.say("/rover/control", ARRAY, data=[0.0])
    return received(server) > 0


def test_commands_move_the_robot(server: Any, bridged: Any, graph: Any, wait_until: Any):
    bridge = bridged(server)
    wait_until(lambda: is_connected(server, graph))
    graph.say("/rover/joint_command", JOINT, name=["turn"], position=[0.5])
    wait_until(lambda: turned(server) > 0.3)
    graph.say("/control", ARRAY, data=[-0.5])
    wait_until(lambda: turned(server) < -0.3)
    linear = messages.make("geometry_msgs/msg/Vector3", x=0.3)
    graph.say("/cmd_vel", TWIST, linear=linear, angular=messages.make("geometry_msgs/msg/Vector3", z=-0.2))
    twist = server.play.manager.articulations["rover"].twist
    wait_until(lambda: "0.3" in str(vars(twist)) and "-0.2" in str(vars(twist)))
    assert bridge.statistics()["/cmd_vel"].messages == 1
    assert bridge.statistics()["/cmd_vel"].refused == 0


RADIUS, HALF_TRACK = 0.1, 0.15


def test_a_twist_drives_a_robot_through_a_policy_that_follows_it(serve: Any, bridged: Any, graph: Any):
    """The server keeps a twist for a policy. This one turns it into speeds of two wheels, in live mode."""
    server = serve("track")
    bridged(server)
    with URLabClient("tcp://127.0.0.1", step_port=server.port, step_mode="live", camera_streams=False) as policy:
        policy.discover()
        cart = policy.articulations["cart"]

        def follow(reached: Callable[[], bool], **twist: Any) -> None:
            until_s = time.monotonic() + 60
            for number in itertools.count():
                if reached():
                    return
                assert time.monotonic() < until_s, f"it is at {cart.qpos_array}"
                if number % 50 == 0:  # those of the first moments may be lost
                    graph.say("/cart/cmd_vel", TWIST, **twist)
                vx, yaw_rate = cart.twist_linear[0], cart.twist_angular[2]
                cart.set_ctrl(
                    {"left": (vx - yaw_rate * HALF_TRACK) / RADIUS, "right": (vx + yaw_rate * HALF_TRACK) / RADIUS}
                )
                policy.step()

        assert abs(cart.qpos_array[0]) < 0.05
        follow(lambda: cart.qpos_array[0] > 0.4, linear=messages.make("geometry_msgs/msg/Vector3", x=0.8))
        assert abs(cart.qpos_array[1]) < 0.1, "straight on"
        follow(lambda: yaw(cart.qpos_array[3:7]) < -0.5, angular=messages.make("geometry_msgs/msg/Vector3", z=-1.5))


def yaw(quat_wxyz: Any) -> float:
    w, x, y, z = quat_wxyz
    return math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))


BAD = [
    ("/rover/joint_command", JOINT, {"name": ["turn"], "position": [math.nan]}, "finite"),
    ("/rover/joint_command", JOINT, {"name": ["turn"], "position": [0.1, 0.2]}, "2 numbers of position"),
    ("/rover/joint_command", JOINT, {"name": ["elbow"], "position": [0.5]}, "nothing drives 'elbow'"),
    ("/rover/joint_command", JOINT, {}, "names no joint"),
    ("/rover/control", ARRAY, {"data": [0.5, 0.5]}, "2 numbers"),
    ("/rover/control", ARRAY, {"data": [math.inf]}, "finite"),
    ("/rover/cmd_vel", TWIST, {"linear": messages.make("geometry_msgs/msg/Vector3", y=math.nan)}, "finite"),
]


def received(server: Any) -> int:
    return int(server.counters()["control"]["received"])


def is_settled(server: Any) -> bool:
    """Whether no command is on its way."""
    return received(server) == received(server)


def unchanged(server: Any) -> Any:
    robot = server.play.manager.articulations["rover"]
    return vars(robot.twist).copy(), received(server)


@pytest.mark.parametrize(("topic", "type_name", "fields", "why"), BAD, ids=[f"{one[0]} {one[3]}" for one in BAD])
def test_a_bad_command_is_refused_logged_and_counted(
    shared_bridge: Any,
    caplog: pytest.LogCaptureFixture,
    topic: str,
    type_name: str,
    fields: dict[str, Any],
    why: str,
    wait_until: Any,
):
    server, graph, bridge = shared_bridge
    if not received(server):
        wait_until(lambda: is_connected(server, graph))
        wait_until(lambda: is_settled(server))
    heard = received(server)
    graph.say(topic, type_name, **GOOD[topic])  # a good one in between: the first bad one of a series is logged
    wait_until(lambda: received(server) > heard)
    refused, before = bridge.statistics()[topic].refused, unchanged(server)
    graph.say(topic, type_name, **fields)
    assert bridge.statistics()[topic].refused == refused + 1
    told = [text for text in map(logging.LogRecord.getMessage, caplog.records) if topic in text]
    assert len(told) == 1
    assert why in told[0]
    assert unchanged(server) == before


GOOD: dict[str, dict[str, Any]] = {
    "/rover/joint_command": {"name": ["turn"], "position": [0.0]},
    "/rover/control": {"data": [0.0]},
    "/rover/cmd_vel": {},
}


def test_garbage_is_refused_and_a_flood_of_it_is_logged_sparingly(shared_bridge: Any, caplog: pytest.LogCaptureFixture):
    _, graph, bridge = shared_bridge
    graph.say("/control", ARRAY, data=[0.0])
    before = bridge.statistics()["/control"].refused
    for cdr in [b"", b"\0\1", b"\0\1\0\0" + b"\xff" * 40] * 50:
        graph.utter("/control", cdr)
    assert bridge.statistics()["/control"].refused == before + 150
    assert 1 <= len([one for one in caplog.records if "/control" in one.getMessage()]) <= 2

"""The backend on rclpy: what it says where ROS 2 or a package is missing; its services, where ROS 2 is sourced.

What it does like every other backend is in test_backend.py.
"""

import importlib
import importlib.util
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from urlab.ros2 import messages
from urlab.ros2.backend import Backend, BackendError
from urlab.ros2.qos import RELIABLE
from urlab.ros2.rclpy_backend import RclpyBackend, interface_class

STRING, SET_BOOL = "std_msgs/msg/String", "std_srvs/srv/SetBool"
HAS_ROS = importlib.util.find_spec("rclpy") is not None
needs_ros = pytest.mark.skipif(not HAS_ROS, reason="ROS 2 is not installed, or not sourced")


@pytest.mark.skipif(HAS_ROS, reason="ROS 2 is installed")
def test_without_ros_the_error_says_what_to_do() -> None:
    with pytest.raises(ImportError, match=r"source /opt/ros/<distro>/setup.bash, or use --backend dds"):
        RclpyBackend()


def test_a_type_that_this_ros_lacks_is_named_with_its_package() -> None:
    with pytest.raises(BackendError, match=r"no nowhere_msgs/msg/Thing .* apt install ros-\$ROS_DISTRO-nowhere-msgs"):
        interface_class("nowhere_msgs/msg/Thing")


@pytest.fixture
def backend(domain: int) -> Iterator[Backend]:
    backend = RclpyBackend(domain=domain)
    yield backend
    backend.close()


class Caller:
    """Another node, which calls /enable."""

    def __init__(self, domain: int) -> None:
        rclpy = importlib.import_module("rclpy")
        self._kind = importlib.import_module("std_srvs.srv").SetBool
        self._context = rclpy.context.Context()
        rclpy.init(args=[], context=self._context, domain_id=domain)
        self._node = rclpy.create_node("caller", context=self._context)
        self._executor = rclpy.executors.MultiThreadedExecutor(1, context=self._context)
        self._executor.add_node(self._node)
        self._client = self._node.create_client(self._kind, "/enable")

    def sees_it(self) -> bool:
        return bool(self._client.service_is_ready())

    def call(self, data: bool, patience_s: float = 5.0) -> Any:
        """The response; None when none came."""
        future = self._client.call_async(self._kind.Request(data=data))
        self._executor.spin_until_future_complete(future, timeout_sec=patience_s)
        return future.result() if future.done() else None

    def close(self) -> None:
        self._executor.shutdown()
        self._node.destroy_node()
        self._context.try_shutdown()


@pytest.fixture
def caller(backend: Backend, domain: int) -> Iterator[Caller]:
    caller = Caller(domain)
    yield caller
    caller.close()


def enable(request: bytes) -> memoryview:
    messages.register(SET_BOOL, "bool data\n---\nbool success\nstring message\n")
    asked = messages.deserialise(request, f"{SET_BOOL}_Request")
    if not asked.data:
        raise RuntimeError("never")
    response = messages.make(f"{SET_BOOL}_Response", success=True, message="done")
    return messages.serialise(response, f"{SET_BOOL}_Response")


@needs_ros
def test_requests_are_served_and_one_that_fails_gets_no_reply(
    backend: Backend, caller: Caller, caplog: pytest.LogCaptureFixture, wait_until: Callable[..., None]
) -> None:
    backend.service("/enable", SET_BOOL, enable)
    wait_until(caller.sees_it)
    assert caller.call(False, patience_s=0.2) is None
    response = caller.call(True)
    assert (response.success, response.message) == (True, "done")
    wait_until(lambda: "never" in caplog.text)


@needs_ros
def test_a_slow_request_does_not_delay_messages(
    backend: Backend, caller: Caller, wait_until: Callable[..., None]
) -> None:
    heard: list[bytes] = []
    backend.subscription("/chat", STRING, RELIABLE, heard.append)
    publisher = backend.publisher("/chat", STRING, RELIABLE)
    wait_until(lambda: publisher.subscribers == 1)

    def slow(request: bytes) -> memoryview:
        publisher.publish(messages.serialise(messages.make(STRING, data="meanwhile"), STRING))
        wait_until(lambda: heard)
        return enable(request)

    backend.service("/enable", SET_BOOL, slow)
    wait_until(caller.sees_it)
    assert caller.call(True).success


@needs_ros
def test_a_closed_service_is_withdrawn(backend: Backend, caller: Caller, wait_until: Callable[..., None]) -> None:
    service = backend.service("/enable", SET_BOOL, enable)
    wait_until(caller.sees_it)
    service.close()
    service.close()
    wait_until(lambda: not caller.sees_it())

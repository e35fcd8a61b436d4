"""What every backend does alike: the one on DDS, and the one on rclpy where ROS 2 is sourced."""

import importlib.util
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from urlab.ros2 import messages
from urlab.ros2.backend import Backend, BackendError
from urlab.ros2.dds import DdsBackend
from urlab.ros2.qos import LATCHED, RELIABLE, Qos
from urlab.ros2.rclpy_backend import RclpyBackend

STRING, SET_BOOL = "std_msgs/msg/String", "std_srvs/srv/SetBool"
HAS_ROS = importlib.util.find_spec("rclpy") is not None
BEST_EFFORT = Qos(reliable=False, transient_local=False, depth=5)
ROS = pytest.param("rclpy", marks=pytest.mark.skipif(not HAS_ROS, reason="ROS 2 is not installed, or not sourced"))

Join = Callable[..., Backend]


@pytest.fixture
def joined(domain: int) -> Iterator[Callable[[type], Join]]:
    """Makes backends in one domain, which end with the test."""
    made: list[Backend] = []

    def of(kind: Any) -> Join:
        def join(node: str = "urlab") -> Backend:
            made.append(kind(domain=domain, node=node))
            return made[-1]

        return join

    yield of
    for backend in made:
        backend.close()


@pytest.fixture(params=["dds", ROS])
def join(request: pytest.FixtureRequest, joined: Any) -> Join:
    made: Join = joined(DdsBackend if request.param == "dds" else RclpyBackend)
    return made


def said(text: str) -> bytes:
    return bytes(messages.serialise(messages.make(STRING, data=text), STRING))


def texts(heard: list[bytes]) -> list[str]:
    return [messages.deserialise(cdr, STRING).data for cdr in heard]


def test_one_node_hears_what_another_says(join: Join, wait_until: Any) -> None:
    heard: list[bytes] = []
    kept = join("listener").subscription("/chat", STRING, RELIABLE, heard.append)
    publisher = join("talker").publisher("/chat", STRING, RELIABLE)
    wait_until(lambda: publisher.subscribers == 1)
    publisher.publish(said("bytes"))
    publisher.publish(memoryview(said("a view")))
    wait_until(lambda: len(heard) == 2)
    assert texts(heard) == ["bytes", "a view"]
    assert all(type(cdr) is bytes for cdr in heard)
    kept.close()
    wait_until(lambda: publisher.subscribers == 0)


def test_a_late_joiner_hears_what_is_latched(join: Join, wait_until: Any) -> None:
    backend = join()
    publisher = backend.publisher("/robot_description", STRING, LATCHED)
    publisher.publish(said("old"))
    publisher.publish(said("new"))
    heard: list[bytes] = []
    backend.subscription("/robot_description", STRING, LATCHED, heard.append)
    wait_until(lambda: heard)
    assert texts(heard) == ["new"]


@pytest.mark.parametrize(("asked", "count"), [(BEST_EFFORT, 1), (RELIABLE, 0), (LATCHED, 0)])
def test_a_reader_that_asks_for_more_than_is_offered_is_no_match(
    join: Join, wait_until: Any, asked: Qos, count: int
) -> None:
    backend = join()
    heard: list[bytes] = []
    modest: list[bytes] = []
    backend.subscription("/scan", STRING, asked, heard.append)
    backend.subscription("/scan", STRING, BEST_EFFORT, modest.append)
    publisher = backend.publisher("/scan", STRING, BEST_EFFORT)
    wait_until(lambda: publisher.subscribers == 1 + count)
    publisher.publish(said("a"))
    wait_until(lambda: len(modest) == 1 and len(heard) == count)


def test_a_message_that_is_not_taken_is_logged_and_the_next_one_comes(
    join: Join, wait_until: Any, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[bytes] = []

    def picky(cdr: bytes) -> None:
        if texts([cdr]) == ["bad"]:
            raise RuntimeError("I do not like it")
        heard.append(cdr)

    backend = join()
    backend.subscription("/chat", STRING, RELIABLE, picky)
    publisher = backend.publisher("/chat", STRING, RELIABLE)
    wait_until(lambda: publisher.subscribers == 1)
    publisher.publish(said("bad"))
    publisher.publish(said("good"))
    wait_until(lambda: heard)
    assert texts(heard) == ["good"]
    assert "/chat: a message of" in caplog.text
    assert "I do not like it" in caplog.text


def test_closing_a_subscription_waits_for_the_message_under_way(join: Join, wait_until: Any) -> None:
    begun, finish, done = threading.Event(), threading.Event(), threading.Event()

    def slow(_cdr: bytes) -> None:
        begun.set()
        assert finish.wait(10)
        done.set()

    backend = join()
    subscription = backend.subscription("/chat", STRING, RELIABLE, slow)
    publisher = backend.publisher("/chat", STRING, RELIABLE)
    wait_until(lambda: publisher.subscribers == 1)
    publisher.publish(said("a"))
    assert begun.wait(10)
    seen: list[bool] = []
    closing = threading.Thread(target=lambda: (subscription.close(), seen.append(done.is_set())))
    closing.start()
    finish.set()
    closing.join()
    assert seen == [True]


def test_a_closed_backend_is_silent(join: Join) -> None:
    backend = join()
    publisher = backend.publisher("/chat", STRING, RELIABLE)
    subscription = backend.subscription("/chat", STRING, RELIABLE, print)
    backend.close()
    backend.close()
    publisher.publish(said("into the void"))
    assert publisher.subscribers == 0
    publisher.close()
    subscription.close()
    with pytest.raises(BackendError, match=f"the {'DDS' if backend.name == 'dds' else 'rclpy'} backend is closed"):
        backend.publisher("/chat", STRING, RELIABLE)


def test_a_closed_backend_leaves_no_thread(join: Join, wait_until: Any) -> None:
    before = set(threading.enumerate())
    backend = join()
    assert set(threading.enumerate()) > before
    backend.close()
    wait_until(lambda: set(threading.enumerate()) <= before)


def test_an_illegal_name_is_refused(join: Join) -> None:
    backend = join()
    for refused in (
        lambda: backend.publisher("/panda-2", STRING, RELIABLE),
        lambda: backend.subscription("chat", STRING, RELIABLE, print),
        lambda: backend.service("/a__b", SET_BOOL, bytes),
    ):
        with pytest.raises(ValueError, match="not a ROS name"):
            refused()

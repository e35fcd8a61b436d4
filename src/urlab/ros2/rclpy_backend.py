"""The backend on rclpy, for where ROS 2 is installed: every RMW, services included.

rclpy is not on PyPI; it is there after ``source /opt/ros/<distro>/setup.bash``, and is imported when a backend is made.
Messages stay bytes: they are published serialised and subscribed to raw. Only services have to be taken apart and put
together, as rclpy has no raw ones.

What has been tried: rclpy can be had neither from PyPI nor from Debian, so where the tests usually run they cover only
what needs none of it. Where ROS 2 is sourced, ``tests/urlab/ros2/test_rclpy_backend.py`` runs against it.
"""

import importlib
import logging
import threading
from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakSet

from urlab.ros2.backend import BackendError, OnMessage, Publisher, Serve, Subscription
from urlab.ros2.names import checked
from urlab.ros2.qos import Qos

log = logging.getLogger("urlab.ros2")

_THREADS = 2
"""One for messages, one for requests."""

_Held = TypeVar("_Held", bound=Subscription)


class RclpyBackend:
    """A node of rclpy with a context and an executor of its own; see `urlab.ros2.backend.Backend`.

    How long a stalled reliable reader may hold up ``publish`` is the RMW's affair here.
    """

    name = "rclpy"

    def __init__(self, *, domain: int | None = None, node: str = "urlab") -> None:
        """``domain`` wins over ``ROS_DOMAIN_ID``."""
        rclpy = _rclpy()
        self._context = rclpy.context.Context()
        rclpy.init(args=[], context=self._context, domain_id=domain)
        self._node = rclpy.create_node(node, context=self._context, start_parameter_services=False)
        self._messages = rclpy.callback_groups.MutuallyExclusiveCallbackGroup()
        self._requests = rclpy.callback_groups.MutuallyExclusiveCallbackGroup()
        self._executor = rclpy.executors.MultiThreadedExecutor(num_threads=_THREADS, context=self._context)
        self._executor.add_node(self._node)
        self._held: WeakSet[Subscription] = WeakSet()
        self._lock = threading.Lock()
        self._open = True
        self._thread = threading.Thread(target=self._spin, name="urlab-ros2-rclpy", daemon=True)
        self._thread.start()

    def publisher(self, topic: str, type_name: str, qos: Qos) -> Publisher:
        """Offer a topic."""
        made = self._create(self._node.create_publisher, interface_class(type_name), checked(topic), _profile(qos))
        return self._hold(_RclpyPublisher(made, self._node.destroy_publisher))

    def subscription(self, topic: str, type_name: str, qos: Qos, on_message: OnMessage) -> Subscription:
        """Subscribe to a topic."""
        called = _RclpySubscription(topic, on_message)
        places = interface_class(type_name), checked(topic), called.take, _profile(qos)
        made = self._create(self._node.create_subscription, *places, callback_group=self._messages, raw=True)
        return self._hold(called.until(lambda: self._node.destroy_subscription(made)))

    def service(self, name: str, type_name: str, serve: Serve) -> Subscription:
        """Serve requests of every client that the RMW in use can talk to."""
        kind = interface_class(type_name)
        called = _RclpyService(name, kind, serve)
        made = self._create(
            self._node.create_service, kind, checked(name), called.answer, callback_group=self._requests
        )
        return self._hold(called.until(lambda: self._node.destroy_service(made)))

    def close(self) -> None:
        """End the node, its executor and its context."""
        with self._lock:
            if not self._open:
                return
            self._open = False
        for held in list(self._held):
            held.close()
        self._executor.shutdown()
        self._thread.join()
        self._node.destroy_node()
        self._context.try_shutdown()

    def _create(self, create: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        with self._lock:
            if not self._open:
                raise BackendError("the rclpy backend is closed")
            return create(*args, **kwargs)

    def _hold(self, held: _Held) -> _Held:
        """Remember to close it, if it is still in use then."""
        self._held.add(held)
        return held

    def _spin(self) -> None:
        """Run callbacks until closed. What a service raises comes out here; then its client gets no reply."""
        while self._open and self._context.ok():
            try:
                self._executor.spin_once()
            except Exception:
                if self._open and self._context.ok():
                    log.exception("a request was not served")


class _RclpyPublisher:
    """A publisher of rclpy; its handle must not be touched once it is destroyed."""

    def __init__(self, publisher: Any, destroy: Callable[[Any], object]) -> None:
        self._publisher = publisher
        self._destroy = destroy
        self._lock = threading.Lock()
        self._open = True

    def publish(self, cdr: bytes | memoryview) -> None:
        with self._lock:
            if self._open:
                self._publisher.publish(bytes(cdr))

    @property
    def subscribers(self) -> int:
        with self._lock:
            return int(self._publisher.get_subscription_count()) if self._open else 0

    def close(self) -> None:
        with self._lock:
            was_open, self._open = self._open, False
            if was_open:
                self._destroy(self._publisher)


class _Closing:
    """Something that is called back until it is closed."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._destroy: Callable[[], object] = _noop
        self._open = True
        # Held during a call, so that closing waits for it; it is re-entrant for a call that closes.
        self._lock = threading.RLock()

    def until(self: "_ClosingT", destroy: Callable[[], object]) -> "_ClosingT":
        """Destroy that when it is closed."""
        self._destroy = destroy
        return self

    def close(self) -> None:
        with self._lock:
            was_open, self._open = self._open, False
            if was_open:
                self._destroy()


_ClosingT = TypeVar("_ClosingT", bound=_Closing)


class _RclpySubscription(_Closing):
    """Hands messages to a function."""

    def __init__(self, topic: str, on_message: OnMessage) -> None:
        super().__init__(topic)
        self._on_message = on_message

    def take(self, cdr: bytes) -> None:
        with self._lock:
            if not self._open:
                return
            try:
                self._on_message(cdr)
            except Exception:
                log.exception("%s: a message of %d bytes was not taken", self._name, len(cdr))


class _RclpyService(_Closing):
    """Hands requests to a function, and its replies back."""

    def __init__(self, name: str, kind: Any, serve: Serve) -> None:
        super().__init__(name)
        self._serve = serve
        self._kind = kind
        self._serialization = importlib.import_module("rclpy.serialization")

    def answer(self, request: Any, _response: Any) -> Any:
        with self._lock:
            if not self._open:
                raise BackendError(f"{self._name} is closed")
            reply = self._serve(self._serialization.serialize_message(request))
            return self._serialization.deserialize_message(bytes(reply), self._kind.Response)


def _noop() -> None:
    """For what is not created yet."""


def _rclpy() -> Any:
    try:
        rclpy = importlib.import_module("rclpy")
        for part in ("context", "callback_groups", "executors", "qos"):
            importlib.import_module(f"rclpy.{part}")
    except ImportError as missing:
        raise ImportError(
            f"the rclpy backend needs ROS 2 ({missing}): source /opt/ros/<distro>/setup.bash, or use --backend dds"
        ) from missing
    return rclpy


def interface_class(type_name: str) -> Any:
    """The Python class of a message or service type; `BackendError` names the package that this ROS lacks."""
    package, kind, name = type_name.split("/")
    try:
        return getattr(importlib.import_module(f"{package}.{kind}"), name)
    except (ImportError, AttributeError) as missing:
        package_name = f"ros-$ROS_DISTRO-{package.replace('_', '-')}"
        raise BackendError(
            f"this ROS has no {type_name} ({missing}); its package is {package}: apt install {package_name}"
        ) from missing


def _profile(qos: Qos) -> Any:
    kinds = importlib.import_module("rclpy.qos")
    return kinds.QoSProfile(
        history=kinds.HistoryPolicy.KEEP_LAST,
        depth=qos.depth,
        reliability=kinds.ReliabilityPolicy.RELIABLE if qos.reliable else kinds.ReliabilityPolicy.BEST_EFFORT,
        durability=kinds.DurabilityPolicy.TRANSIENT_LOCAL if qos.transient_local else kinds.DurabilityPolicy.VOLATILE,
    )

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
from typing import Any
from weakref import WeakSet

from urlab.ros2.backend import BackendError, OnMessage, Publisher, Serve, Subscription
from urlab.ros2.names import checked
from urlab.ros2.qos import Qos

log = logging.getLogger("urlab.ros2")

_THREADS = 2
"""One for messages, one for requests."""


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
        publisher = _RclpyPublisher(made)
        publisher.destroy = lambda: self._node.destroy_publisher(made)
        self._held.add(publisher)
        return publisher

    def subscription(self, topic: str, type_name: str, qos: Qos, on_message: OnMessage) -> Subscription:
        """Subscribe to a topic."""
        subscription = _Closable()

        def take(cdr: bytes) -> None:
            with subscription.lock:
                if not subscription.is_open:
                    return
                try:
                    on_message(cdr)
                except Exception:
                    log.exception("%s: a message of %d bytes was not taken", topic, len(cdr))

        places = interface_class(type_name), checked(topic), take, _profile(qos)
        made = self._create(self._node.create_subscription, *places, callback_group=self._messages, raw=True)
        subscription.destroy = lambda: self._node.destroy_subscription(made)
        self._held.add(subscription)
        return subscription

    def service(self, name: str, type_name: str, serve: Serve) -> Subscription:
        """Serve requests of every client that the RMW in use can talk to."""
        kind, cdr = interface_class(type_name), importlib.import_module("rclpy.serialization")
        service = _Closable()

        def answer(request: Any, _response: Any) -> Any:
            with service.lock:
                if not service.is_open:
                    raise BackendError(f"{name} is closed")
                reply = serve(cdr.serialize_message(request))
                return cdr.deserialize_message(bytes(reply), kind.Response)

        made = self._create(self._node.create_service, kind, checked(name), answer, callback_group=self._requests)
        service.destroy = lambda: self._node.destroy_service(made)
        self._held.add(service)
        return service

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

    def _spin(self) -> None:
        """Run callbacks until closed. What a service raises comes out here; then its client gets no reply."""
        while self._open and self._context.ok():
            try:
                self._executor.spin_once()
            except Exception:
                if self._open and self._context.ok():
                    log.exception("a request was not served")


class _Closable:
    """Something of rclpy that is used until it is closed, and then destroyed once.

    ``lock`` is held while it is used, so that closing waits for that; it is re-entrant for a callback that closes.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.is_open = True
        self.destroy: Callable[[], object] = lambda: None

    def close(self) -> None:
        with self.lock:
            was_open, self.is_open = self.is_open, False
            if was_open:
                self.destroy()


class _RclpyPublisher(_Closable):
    """A publisher of rclpy; its handle must not be touched once it is destroyed."""

    def __init__(self, publisher: Any) -> None:
        super().__init__()
        self._publisher = publisher

    def publish(self, cdr: bytes | memoryview) -> None:
        with self.lock:
            if self.is_open:
                self._publisher.publish(bytes(cdr))

    @property
    def subscribers(self) -> int:
        with self.lock:
            return int(self._publisher.get_subscription_count()) if self.is_open else 0


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

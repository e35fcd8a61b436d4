"""A stand-in for rclpy, for machines without ROS: the part of its API that the backend uses, within one process.

It is as strict as rclpy where a mistake would show only there: types of arguments, handles that are used after they
were destroyed, callback groups, and an executor whose ``spin_once`` raises what a callback raised.
"""

import enum
import inspect
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import ModuleType, SimpleNamespace
from typing import Any

from urlab.ros2 import messages, simulation_messages

_changed = threading.Condition(threading.RLock())
"""Held by whoever looks at or changes the graph; notified of every change."""
_nodes: dict[int, list["Node"]] = {}


class InvalidHandle(Exception):
    """Something was used after it was destroyed."""


class HistoryPolicy(enum.IntEnum):
    KEEP_LAST = 1


class ReliabilityPolicy(enum.IntEnum):
    RELIABLE = 1
    BEST_EFFORT = 2


class DurabilityPolicy(enum.IntEnum):
    TRANSIENT_LOCAL = 1
    VOLATILE = 2


class QoSProfile:
    def __init__(
        self, *, history: HistoryPolicy, depth: int, reliability: ReliabilityPolicy, durability: DurabilityPolicy
    ) -> None:
        self.history, self.depth = HistoryPolicy(history), int(depth)
        self.reliability, self.durability = ReliabilityPolicy(reliability), DurabilityPolicy(durability)

    def serves(self, asked: "QoSProfile") -> bool:
        return self.reliability <= asked.reliability and self.durability <= asked.durability


class Context:
    def __init__(self) -> None:
        self._ok, self.domain_id = False, 0

    def init(self, domain_id: int | None) -> None:
        assert not self._ok, "Context.init() must only be called once"
        self._ok, self.domain_id = True, domain_id or 0

    def ok(self) -> bool:
        return self._ok

    def try_shutdown(self) -> None:
        self._ok = False


class MutuallyExclusiveCallbackGroup:
    def __init__(self) -> None:
        self.busy = False


class _Entity:
    def __init__(self, name: str, group: MutuallyExclusiveCallbackGroup) -> None:
        self.name, self.group, self.alive, self.waiting = name, group, True, deque[Any]()

    def check(self) -> None:
        if not self.alive:
            raise InvalidHandle(self.name)

    def execute(self, item: Any) -> None:
        raise NotImplementedError


class Publisher(_Entity):
    def __init__(self, node: "Node", msg_type: type, topic: str, qos: QoSProfile) -> None:
        super().__init__(topic, node.default_callback_group)
        self.msg_type, self.qos, self._node = msg_type, qos, node
        self.sent: deque[bytes] = deque(maxlen=qos.depth)

    def publish(self, msg: Any) -> None:
        with _changed:
            self.check()
            if not isinstance(msg, self.msg_type | bytes):
                raise TypeError(f"Expected {self.msg_type}, got {type(msg)}")
            cdr = msg if isinstance(msg, bytes) else serialize_message(msg)
            self.sent.append(cdr)
            for subscription in self.matched():
                subscription.waiting.append(cdr)
            _changed.notify_all()

    def get_subscription_count(self) -> int:
        with _changed:
            self.check()
            return len(list(self.matched()))

    def matched(self) -> Iterator["Subscription"]:
        for node in _nodes[self._node.context.domain_id]:
            for one in node.subscriptions:
                if (one.name, one.msg_type) == (self.name, self.msg_type) and self.qos.serves(one.qos):
                    yield one


class Subscription(_Entity):
    def __init__(self, msg_type: type, topic: str, callback: Any, qos: QoSProfile, group: Any, raw: bool) -> None:
        super().__init__(topic, group)
        if len(inspect.signature(callback).parameters) != 1:
            raise RuntimeError("Subscription.__init__(): callback should be either be callable with one argument")
        self.msg_type, self.qos, self.callback, self.raw = msg_type, qos, callback, raw
        self.waiting = deque[Any](maxlen=qos.depth)

    def execute(self, item: bytes) -> None:
        self.callback(item if self.raw else deserialize_message(item, self.msg_type))


class Service(_Entity):
    def __init__(self, srv_type: Any, name: str, callback: Any, group: Any) -> None:
        super().__init__(name, group)
        self.srv_type, self.callback = srv_type, callback

    def execute(self, item: tuple[Any, "Future[Any]"]) -> None:
        request, reply = item
        response = self.callback(request, self.srv_type.Response())
        if not isinstance(response, self.srv_type.Response):
            raise TypeError
        with _changed:
            self.check()
            reply.set_result(response)


class Client:
    def __init__(self, node: "Node", srv_type: Any, name: str) -> None:
        self._node, self._srv_type, self._name = node, srv_type, name

    def _servers(self) -> list[Service]:
        nodes = _nodes[self._node.context.domain_id]
        return [one for node in nodes for one in node.services if one.name == self._name]

    def service_is_ready(self) -> bool:
        with _changed:
            return bool(self._servers())

    def call_async(self, request: Any) -> "Future[Any]":
        if not isinstance(request, self._srv_type.Request):
            raise TypeError
        reply: Future[Any] = Future()
        with _changed:
            for server in self._servers():
                server.waiting.append((request, reply))
            _changed.notify_all()
        return reply


class Node:
    def __init__(self, node_name: str, *, context: Context, start_parameter_services: bool = True) -> None:
        assert context.ok(), "cannot create a node in a context that is not initialised"
        self.name, self.context = node_name, context
        self.default_callback_group = MutuallyExclusiveCallbackGroup()
        self.publishers: list[Publisher] = []
        self.subscriptions: list[Subscription] = []
        self.services: list[Service] = []
        with _changed:
            _nodes.setdefault(context.domain_id, []).append(self)

    def create_publisher(self, msg_type: type, topic: str, qos_profile: QoSProfile) -> Publisher:
        assert isinstance(qos_profile, QoSProfile)
        with _changed:
            self.publishers.append(Publisher(self, msg_type, topic, qos_profile))
            return self.publishers[-1]

    def create_subscription(
        self, msg_type: type, topic: str, callback: Any, qos_profile: QoSProfile, *, callback_group: Any, raw: bool
    ) -> Subscription:
        assert isinstance(qos_profile, QoSProfile)
        with _changed:
            made = Subscription(msg_type, topic, callback, qos_profile, callback_group, raw)
            self.subscriptions.append(made)
            if qos_profile.durability == DurabilityPolicy.TRANSIENT_LOCAL:
                writers = [one for node in _nodes[self.context.domain_id] for one in node.publishers]
                made.waiting.extend(cdr for one in writers if made in one.matched() for cdr in one.sent)
            _changed.notify_all()
            return made

    def create_service(self, srv_type: Any, srv_name: str, callback: Any, *, callback_group: Any) -> Service:
        with _changed:
            self.services.append(Service(srv_type, srv_name, callback, callback_group))
            _changed.notify_all()
            return self.services[-1]

    def create_client(self, srv_type: Any, srv_name: str) -> Client:
        return Client(self, srv_type, srv_name)

    def destroy_publisher(self, publisher: Publisher) -> bool:
        return self._destroy(self.publishers, publisher)

    def destroy_subscription(self, subscription: Subscription) -> bool:
        return self._destroy(self.subscriptions, subscription)

    def destroy_service(self, service: Service) -> bool:
        return self._destroy(self.services, service)

    def destroy_node(self) -> None:
        with _changed:
            _nodes[self.context.domain_id].remove(self)

    @staticmethod
    def _destroy(held: list[Any], entity: Any) -> bool:
        with _changed:
            held.remove(entity)
            entity.alive = False
            return True


class MultiThreadedExecutor:
    def __init__(self, num_threads: int, *, context: Context) -> None:
        self._context, self._nodes, self._is_shutdown = context, list[Node](), False
        self._pool = ThreadPoolExecutor(num_threads)
        self._futures: list[Future[None]] = []

    def add_node(self, node: Node) -> None:
        self._nodes.append(node)

    def spin_once(self, timeout_sec: float | None = None) -> None:
        """Begin one callback that is ready; raise what an earlier one raised."""
        with _changed:
            _changed.wait_for(lambda: self._is_shutdown or self._done() or self._ready(), timeout_sec)
            ready = None if self._is_shutdown else self._ready()
            if ready is not None:
                ready.group.busy = True
                self._futures.append(self._pool.submit(self._run, ready, ready.waiting.popleft()))
                self._futures[-1].add_done_callback(_notify)
            done = self._done()
        for future in done:
            self._futures.remove(future)
            future.result()

    def shutdown(self, timeout_sec: float | None = None) -> bool:
        with _changed:
            self._is_shutdown = True
            _changed.notify_all()
        self._pool.shutdown()
        return True

    def spin_until_future_complete(self, future: "Future[Any]", timeout_sec: float) -> None:
        """Clients need no spinning here: their replies are put into the future."""
        with _changed:
            _changed.wait_for(future.done, timeout_sec)

    def _done(self) -> list["Future[None]"]:
        return [future for future in self._futures if future.done()]

    def _ready(self) -> _Entity | None:
        entities = (one for node in self._nodes for one in [*node.subscriptions, *node.services])
        return next((one for one in entities if one.waiting and not one.group.busy), None)

    def _run(self, entity: _Entity, item: Any) -> None:
        try:
            entity.execute(item)
        finally:
            with _changed:
                entity.group.busy = False


def _notify(_done: "Future[None]") -> None:
    with _changed:
        _changed.notify_all()


def init(*, args: list[str] | None = None, context: Context, domain_id: int | None = None) -> None:
    context.init(domain_id)


def serialize_message(message: Any) -> bytes:
    return bytes(messages.serialise(message, message.__msgtype__))


def deserialize_message(serialized_message: bytes, message_type: Any) -> Any:
    assert isinstance(serialized_message, bytes)
    plain: Any = messages.deserialise(serialized_message, message_type.__msgtype__)
    return message_type(**_fields(plain))


def _fields(message: Any) -> dict[str, Any]:
    return {name: value for name, value in vars(message).items() if name != "__msgtype__"}


def _service(name: str) -> Any:
    def made(half: str) -> type:
        type_name = f"{name}_{half}"
        base = messages.typestore.types[type_name]
        return type(half, (base,), {"__init__": lambda self, **fields: _fill(self, base, type_name, fields)})

    return SimpleNamespace(Request=made("Request"), Response=made("Response"))


def _fill(message: Any, base: type, type_name: str, fields: dict[str, Any]) -> None:
    base.__init__(message, **_fields(messages.make(type_name, **fields)))


def modules() -> dict[str, ModuleType]:
    """What to put into ``sys.modules``: rclpy, and the packages of messages that the tests use."""
    messages.register("std_srvs/srv/SetBool", "bool data\n---\nbool success\nstring message\n")
    contents: dict[str, dict[str, Callable[..., Any] | type]] = {
        "rclpy": {"init": init, "create_node": Node},
        "rclpy.context": {"Context": Context},
        "rclpy.callback_groups": {"MutuallyExclusiveCallbackGroup": MutuallyExclusiveCallbackGroup},
        "rclpy.executors": {"MultiThreadedExecutor": MultiThreadedExecutor},
        "rclpy.qos": {kind.__name__: kind for kind in (QoSProfile, HistoryPolicy, ReliabilityPolicy, DurabilityPolicy)},
        "rclpy.serialization": {
            "serialize_message": serialize_message,
            "deserialize_message": deserialize_message,
        },
        "std_msgs": {},
        "std_msgs.msg": {"String": messages.typestore.types["std_msgs/msg/String"]},
        "std_srvs": {},
        "std_srvs.srv": {"SetBool": _service("std_srvs/srv/SetBool")},
        simulation_messages.PACKAGE: {},
        f"{simulation_messages.PACKAGE}.srv": {
            name.rpartition("/")[2]: _service(name)
            for name in simulation_messages.definitions(simulation_messages.GENERATION)
            if "/srv/" in name
        },
    }
    made = {name: ModuleType(name) for name in contents}
    for name, members in contents.items():
        vars(made[name]).update(members)
        package, _, part = name.rpartition(".")
        if package:
            setattr(made[package], part, made[name])
    assert not made.keys() & sys.modules.keys()
    return made

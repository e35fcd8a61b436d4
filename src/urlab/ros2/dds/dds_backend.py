"""The backend on plain DDS."""

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar
from weakref import WeakSet

from urlab.ros2.backend import BackendError, OnMessage, Publisher, Serve, Subscription
from urlab.ros2.dds import settings
from urlab.ros2.dds.dispatcher import Dispatcher
from urlab.ros2.dds.domain import join_domain, leave_domain
from urlab.ros2.dds.graph import Graph
from urlab.ros2.dds.library import check, lib
from urlab.ros2.dds.policies import participant_policies
from urlab.ros2.dds.published import Published
from urlab.ros2.dds.reader import Reader
from urlab.ros2.dds.service import Service
from urlab.ros2.dds.subscribed import Subscribed
from urlab.ros2.dds.user_data import of_type
from urlab.ros2.dds.writer import Writer, guid_of
from urlab.ros2.names import topic_to_dds, type_to_dds
from urlab.ros2.qos import Qos

_Held = TypeVar("_Held", bound=Subscription)
"""Whatever can be closed."""


class DdsBackend:
    """A ROS node made of one DDS participant; see `urlab.ros2.backend.Backend`.

    Topics work with every RMW that is DDS. Services work with clients on rmw_cyclonedds_cpp only: see
    `urlab.ros2.dds.service`. The domain is the given one, or that of the environment (`urlab.ros2.dds.settings`).
    Messages come on one thread, requests of services on another, which starts with the first service.
    """

    name = "dds"

    def __init__(self, *, domain: int | None = None, node: str = "urlab") -> None:
        self.domain = settings.domain_id(domain)
        join_domain(self.domain, settings.cyclone_settings())
        try:
            self._participant = _create_participant(self.domain)
            self._graph = Graph(self._participant, node)
            self._messages = Dispatcher(self._participant, "urlab-ros2-messages")
        except BaseException:
            leave_domain(self.domain)
            raise
        self._requests: Dispatcher | None = None
        self._service_numbers = itertools.count(1)
        self._held: WeakSet[Subscription] = WeakSet()
        self._lock = threading.Lock()
        self._open = True

    def publisher(self, topic: str, type_name: str, qos: Qos) -> Publisher:
        """Offer a topic."""
        with self._creating():
            writer = Writer(self._participant, topic_to_dds(topic), type_to_dds(type_name), qos, of_type(type_name))
            return self._hold(Published(writer, self._announce([], [writer.guid])))

    def subscription(self, topic: str, type_name: str, qos: Qos, on_message: OnMessage) -> Subscription:
        """Listen to a topic."""
        with self._creating():
            reader = Reader(self._participant, topic_to_dds(topic), type_to_dds(type_name), qos, of_type(type_name))
            withdraw = self._announce([reader.guid], [])
            return self._hold(
                Subscribed(reader, self._messages, topic, lambda payload, _writer: on_message(payload), withdraw)
            )

    def service(self, name: str, type_name: str, serve: Serve) -> Subscription:
        """Serve requests of clients on rmw_cyclonedds_cpp; those of other clients are ignored, with a warning."""
        with self._creating():
            self._requests = self._requests or Dispatcher(self._participant, "urlab-ros2-requests")
            identity = f"{guid_of(self._participant).hex('.')}.{next(self._service_numbers)}"
            service = Service(self._participant, name, type_name, identity, serve)
            withdraw = self._announce([service.reader.guid], [service.writer.guid])
            listening = Subscribed(service.reader, self._requests, name, service.answer, service.writer.close, withdraw)
            return self._hold(listening)

    def close(self) -> None:
        """End everything; no thread is left."""
        with self._lock:
            if not self._open:
                return
            self._open = False
        self._graph.close()
        for held in list(self._held):
            held.close()
        for dispatcher in filter(None, (self._messages, self._requests)):
            dispatcher.close()
        lib.dds_delete(self._participant)
        leave_domain(self.domain)

    @contextmanager
    def _creating(self) -> Iterator[None]:
        with self._lock:
            if not self._open:
                raise BackendError("the DDS backend is closed")
            yield

    def _hold(self, held: _Held) -> _Held:
        """Remember to close it, if somebody still has it then."""
        self._held.add(held)
        return held

    def _announce(self, readers: list[bytes], writers: list[bytes]) -> Callable[[], None]:
        """Enter endpoints in the graph; what is returned takes them out again."""
        self._graph.change(added=(readers, writers))
        return lambda: self._graph.change(removed=(readers, writers))


def _create_participant(domain: int) -> int:
    with participant_policies("enclave=/;") as policies:
        handle = lib.dds_create_participant(domain, policies, None)
    return check(handle, f"join domain {domain}")

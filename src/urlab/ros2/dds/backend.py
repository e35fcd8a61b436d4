"""The backend on plain DDS: a participant, its threads, subscriptions and services, and its entry in ROS's graph."""

import ctypes as ct
import itertools
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final
from weakref import WeakSet

from urlab.ros2 import messages
from urlab.ros2.backend import BackendError, OnMessage, Publisher, Serve, Subscription
from urlab.ros2.dds.domain import cyclone_settings, domain_id, join_domain, leave_domain
from urlab.ros2.dds.endpoints import (
    DdsReader,
    DdsWriter,
    gid_of_writer,
    guid_of,
    participant_policies,
    user_data_of_readers,
    user_data_of_writer,
)
from urlab.ros2.dds.library import FOREVER_NS, check, lib
from urlab.ros2.names import reply_to_dds, request_to_dds, topic_to_dds
from urlab.ros2.qos import LATCHED, RELIABLE, Qos
from urlab.ros2.reach import reach_of

log = logging.getLogger("urlab.ros2")

_WAKE = 0
_AT_ONCE = 64
_GRAPH_TOPIC: Final = "ros_discovery_info"
_GRAPH_TYPE: Final = "rmw_dds_common/msg/ParticipantEntitiesInfo"
_GID: Final = "rmw_dds_common/msg/Gid"
_CDR_HEADER_BYTES = 4
_REQUEST_HEADER_BYTES = 16
_CLIENT = "clientid"
_REPLY_READER_LIMIT_S = 0.2
_MATCH_POLL_S = 0.005


class DdsBackend:
    """A ROS node made of one DDS participant; see `urlab.ros2.backend.Backend`.

    Topics work with every RMW that is DDS. Services work with clients on rmw_cyclonedds_cpp only: see
    `DdsService`. The domain is the given one, or that of the environment (`urlab.ros2.dds.domain`).
    Messages come on one thread, requests of services on another, which starts with the first service.
    """

    name = "dds"

    def __init__(self, *, domain: int | None = None, node: str = "urlab") -> None:
        self.domain = domain_id(domain)
        join_domain(self.domain, cyclone_settings(), only_here=reach_of(os.environ).is_loopback)
        try:
            self._participant = _create_participant(self.domain)
            self._graph = GraphEntry(self._participant, node)
            self._messages = WaitsetThread(self._participant, "urlab-ros2-messages")
        except BaseException:
            leave_domain(self.domain)
            raise
        self._requests: WaitsetThread | None = None
        self._service_numbers = itertools.count(1)
        self._held: WeakSet[Subscription] = WeakSet()  # to be closed, if they are still in use then
        self._lock = threading.Lock()
        self._open = True

    def publisher(self, topic: str, type_name: str, qos: Qos) -> Publisher:
        """Offer a topic."""
        with self._creating():
            writer = DdsWriter(self._participant, topic_to_dds(topic), type_name, qos)
            writer.withdrawn = self._announce([], [writer.guid])
            self._held.add(writer)
            return writer

    def subscription(self, topic: str, type_name: str, qos: Qos, on_message: OnMessage) -> Subscription:
        """Subscribe to a topic."""
        with self._creating():
            reader = DdsReader(self._participant, topic_to_dds(topic), type_name, qos)
            withdraw = self._announce([reader.guid], [])
            listening = DdsSubscription(
                reader, self._messages, topic, lambda payload, _writer: on_message(payload), withdraw
            )
            self._held.add(listening)
            return listening

    def service(self, name: str, type_name: str, serve: Serve) -> Subscription:
        """Serve requests of clients on rmw_cyclonedds_cpp; those of other clients are ignored, with a warning."""
        with self._creating():
            self._requests = self._requests or WaitsetThread(self._participant, "urlab-ros2-requests")
            identity = f"{guid_of(self._participant).hex('.')}.{next(self._service_numbers)}"
            service = DdsService(self._participant, name, type_name, identity, serve)
            withdraw = self._announce([service.reader.guid], [service.writer.guid])
            listening = DdsSubscription(
                service.reader, self._requests, name, service.answer, service.writer.close, withdraw
            )
            self._held.add(listening)
            return listening

    def close(self) -> None:
        """End everything; no thread is left."""
        with self._lock:
            if not self._open:
                return
            self._open = False
        self._graph.close()
        for held in list(self._held):
            held.close()
        for thread in filter(None, (self._messages, self._requests)):
            thread.close()
        lib.dds_delete(self._participant)
        leave_domain(self.domain)

    @contextmanager
    def _creating(self) -> Iterator[None]:
        with self._lock:
            if not self._open:
                raise BackendError("the DDS backend is closed")
            yield

    def _announce(self, readers: list[bytes], writers: list[bytes]) -> Callable[[], None]:
        """Enter endpoints in the graph; what is returned takes them out again."""
        self._graph.change(added=(readers, writers))
        return lambda: self._graph.change(removed=(readers, writers))


def _create_participant(domain: int) -> int:
    with participant_policies("enclave=/;") as policies:
        handle = lib.dds_create_participant(domain, policies, None)
    return check(handle, f"join domain {domain}")


class WaitsetThread:
    """One thread, one waitset: the functions of all conditions are called one after the other."""

    def __init__(self, participant: int, name: str) -> None:
        self._calls: dict[int, Callable[[], None]] = {}
        self._keys = itertools.count(_WAKE + 1)
        self._stopping = False
        self._waitset = check(lib.dds_create_waitset(participant), "create a waitset")
        self._guard = check(lib.dds_create_guardcondition(participant), "create a guard condition")
        check(lib.dds_waitset_attach(self._waitset, self._guard, _WAKE), "wait for a guard condition")
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def add(self, condition: int, call: Callable[[], None]) -> int:
        """Call that whenever the condition holds; the key is for `remove`."""
        key = next(self._keys)
        self._calls[key] = call
        check(lib.dds_waitset_attach(self._waitset, condition, key), "wait for a reader")
        return key

    def remove(self, condition: int, key: int) -> None:
        """Call it no more; a call that is under way goes on."""
        lib.dds_waitset_detach(self._waitset, condition)
        self._calls.pop(key, None)

    def close(self) -> None:
        """End the thread, once a call that is under way has returned."""
        self._stopping = True
        lib.dds_set_guardcondition(self._guard, True)
        if threading.current_thread() is not self._thread:
            self._thread.join()
        lib.dds_delete(self._waitset)
        lib.dds_delete(self._guard)

    def _run(self) -> None:
        keys = (ct.c_ssize_t * _AT_ONCE)()
        while not self._stopping:
            count = lib.dds_waitset_wait(self._waitset, keys, _AT_ONCE, FOREVER_NS)
            if count < 0:
                return
            for key in keys[: min(count, _AT_ONCE)]:
                self._call(key)

    def _call(self, key: int) -> None:
        call = self._calls.get(key)
        if call is None or self._stopping:
            return
        try:
            call()
        except Exception:
            log.exception("a reader's samples were not delivered")


class DdsSubscription:
    """Hands every payload of a reader to a function, with its writer's handle, on a `WaitsetThread`, until closed."""

    def __init__(
        self,
        reader: DdsReader,
        thread: WaitsetThread,
        name: str,
        deliver: Callable[[bytes, int], None],
        *closed: Callable[[], object],
    ) -> None:
        """``closed`` are called once, when it is."""
        self._reader = reader
        self._thread = thread
        self._name = name
        self._deliver = deliver
        self._closed = closed
        self._writer = 0
        self._open = True
        # Held during a delivery, so that closing waits for it; it is re-entrant for a callback that closes.
        self._lock = threading.RLock()
        self._key = thread.add(reader.condition, self._take)

    def source(self) -> str | None:
        """The writer of the message that is being delivered; see `urlab.ros2.backend.AttributedSubscription`."""
        return gid_of_writer(self._reader.handle, self._writer)

    def close(self) -> None:
        """End it; a delivery that is under way is waited for, unless it is the one that closes."""
        with self._lock:
            if not self._open:
                return
            self._open = False
            self._thread.remove(self._reader.condition, self._key)
            self._reader.close()
            for closed in self._closed:
                closed()

    def _take(self) -> None:
        with self._lock:
            if self._open:
                for payload, writer in self._reader.take():
                    self._hand_over(payload, writer)

    def _hand_over(self, payload: bytes, writer: int) -> None:
        """Deliver it, unless the delivery before it has closed us."""
        if not self._open:
            return
        self._writer = writer
        try:
            self._deliver(payload, writer)
        except Exception:
            log.exception("%s: a message of %d bytes was not taken", self._name, len(payload))


class DdsService:
    """Serves clients on rmw_cyclonedds_cpp; `answer` is called for each request on the thread of requests.

    A service is two topics, ``rq/<name>Request`` and ``rr/<name>Reply``. How a reply finds its request is a matter of
    each RMW, and the two of DDS differ:

    - rmw_cyclonedds_cpp puts a header before the message, {client: uint64, sequence number: int64}, which the reply
      repeats. That is served here.
    - rmw_fastrtps_cpp sends the plain message and puts the identity of the request into the RTPS headers of the reply,
      which Cyclone's library cannot write. A client on it sees the service, and its calls get no reply; here they are
      ignored, with a warning. It takes the rclpy backend to serve it, with RMW_IMPLEMENTATION as the client's.
    """

    def __init__(self, participant: int, name: str, type_name: str, identity: str, serve: Serve) -> None:
        """``identity`` says in the graph that reader and writer belong together; it is unique in it."""
        self._name = name
        self._serve = serve
        self._ignored: set[int] = set()
        who = f"serviceid={identity};"
        self.reader = DdsReader(participant, request_to_dds(name), f"{type_name}_Request", RELIABLE, who)
        self.writer = DdsWriter(participant, reply_to_dds(name), f"{type_name}_Response", RELIABLE, who)

    def answer(self, payload: bytes, writer: int) -> None:
        """Serve one request of the client that wrote it."""
        caller = user_data_of_writer(self.reader.handle, writer)
        if caller is None:
            return
        if _CLIENT not in caller or len(payload) < _CDR_HEADER_BYTES + _REQUEST_HEADER_BYTES:
            self._ignore(writer)
            return
        cdr_header, rest = payload[:_CDR_HEADER_BYTES], payload[_CDR_HEADER_BYTES:]
        reply = self._serve(cdr_header + rest[_REQUEST_HEADER_BYTES:])
        self._await_reader(caller[_CLIENT])
        body = memoryview(reply)
        self.writer.publish(body[:_CDR_HEADER_BYTES], rest[:_REQUEST_HEADER_BYTES], body[_CDR_HEADER_BYTES:])

    def _await_reader(self, client: str) -> None:
        """A client may ask before discovery has matched its reader with our writer, and would miss the reply."""
        until_s = time.monotonic() + _REPLY_READER_LIMIT_S
        while not self._is_matched(client) and time.monotonic() < until_s:
            time.sleep(_MATCH_POLL_S)

    def _is_matched(self, client: str) -> bool:
        return any(reader.get(_CLIENT) == client for reader in user_data_of_readers(self.writer.handle))

    def _ignore(self, writer: int) -> None:
        if writer not in self._ignored:
            self._ignored.add(writer)
            log.warning(
                "%s: a client that is not on rmw_cyclonedds_cpp called; the DDS backend cannot answer it."
                " Set RMW_IMPLEMENTATION=rmw_cyclonedds_cpp there, or use --backend rclpy here.",
                self._name,
            )


class GraphEntry:
    """Which node has which readers and writers, published whenever it changes.

    Without it our topics would belong to a nameless DDS application.
    """

    def __init__(self, participant: int, node: str) -> None:
        self._node = node
        self._participant = _gid(guid_of(participant))
        self._readers: list[bytes] = []
        self._writers: list[bytes] = []
        self._lock = threading.Lock()
        self._writer = DdsWriter(participant, _GRAPH_TOPIC, _GRAPH_TYPE, LATCHED)
        self.change()

    def change(
        self,
        *,
        added: tuple[list[bytes], list[bytes]] = ([], []),
        removed: tuple[list[bytes], list[bytes]] = ([], []),
    ) -> None:
        """Add and remove GUIDs, (readers, writers) each, and publish the entry."""
        with self._lock:
            self._readers = [guid for guid in [*self._readers, *added[0]] if guid not in removed[0]]
            self._writers = [guid for guid in [*self._writers, *added[1]] if guid not in removed[1]]
            self._publish()

    def close(self) -> None:
        """Publish it no more; the entry ends with the participant."""
        self._writer.close()

    def _publish(self) -> None:
        node = messages.make(
            "rmw_dds_common/msg/NodeEntitiesInfo",
            node_namespace="/",
            node_name=self._node,
            reader_gid_seq=[_gid(guid) for guid in self._readers],
            writer_gid_seq=[_gid(guid) for guid in self._writers],
        )
        info = messages.make(_GRAPH_TYPE, gid=self._participant, node_entities_info_seq=[node])
        self._writer.publish(messages.serialise(info, _GRAPH_TYPE))


def _gid(guid: bytes) -> object:
    """A GUID in the graph's message: 16 bytes, padded to 24 up to Humble."""
    size = len(messages.make(_GID).data)
    return messages.make(_GID, data=guid.ljust(size, b"\0"))

"""Services over DDS, for clients on rmw_cyclonedds_cpp.

A service is two topics, ``rq/<name>Request`` and ``rr/<name>Reply``. How a reply finds its request is a matter of each
RMW, and the two of DDS differ:

- rmw_cyclonedds_cpp puts a header before the message, {client: uint64, sequence number: int64}, which the reply
  repeats. That is served here.
- rmw_fastrtps_cpp sends the plain message and puts the identity of the request into the RTPS headers of the reply,
  which Cyclone's library cannot write. A client on it sees the service, and its calls get no reply; here they are
  ignored, with a warning. It takes the rclpy backend to serve it, with RMW_IMPLEMENTATION as the client's.
"""

import logging
import time

from urlab.ros2.backend import Serve
from urlab.ros2.dds.endpoints import DdsReader, DdsWriter, type_user_data, user_data_of_readers, user_data_of_writer
from urlab.ros2.names import reply_to_dds, request_to_dds, type_to_dds
from urlab.ros2.qos import RELIABLE

log = logging.getLogger("urlab.ros2")

_CDR_HEADER_BYTES = 4
_REQUEST_HEADER_BYTES = 16
_CLIENT = "clientid"
_REPLY_READER_LIMIT_S = 0.2
_LOOK_AGAIN_S = 0.005


class DdsService:
    """Reads requests and writes replies; `answer` is called for each request on the thread of requests."""

    def __init__(self, participant: int, name: str, type_name: str, identity: str, serve: Serve) -> None:
        """``identity`` says in the graph that reader and writer belong together; it is unique in it."""
        self._name = name
        self._serve = serve
        self._ignored: set[int] = set()
        who = f"serviceid={identity};"
        request, reply = f"{type_name}_Request", f"{type_name}_Response"
        described = who + type_user_data(request), who + type_user_data(reply)
        self.reader = DdsReader(participant, request_to_dds(name), type_to_dds(request), RELIABLE, described[0])
        self.writer = DdsWriter(participant, reply_to_dds(name), type_to_dds(reply), RELIABLE, described[1])

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
        self.writer.write(body[:_CDR_HEADER_BYTES], rest[:_REQUEST_HEADER_BYTES], body[_CDR_HEADER_BYTES:])

    def _await_reader(self, client: str) -> None:
        """A client may ask before discovery has matched its reader with our writer, and would miss the reply."""
        until_s = time.monotonic() + _REPLY_READER_LIMIT_S
        while not self._is_matched(client) and time.monotonic() < until_s:
            time.sleep(_LOOK_AGAIN_S)

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

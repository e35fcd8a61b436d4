"""Our entry in the ROS graph: which node has which readers and writers."""

import threading
from typing import Final

from urlab.ros2 import messages
from urlab.ros2.dds.user_data import of_type
from urlab.ros2.dds.writer import Writer, guid_of
from urlab.ros2.names import type_to_dds
from urlab.ros2.qos import LATCHED

TOPIC: Final = "ros_discovery_info"
TYPE: Final = "rmw_dds_common/msg/ParticipantEntitiesInfo"
_GID: Final = "rmw_dds_common/msg/Gid"


class Graph:
    """Says who we are, again whenever it changes. Without it our topics would belong to a nameless DDS application."""

    def __init__(self, participant: int, node: str) -> None:
        self._node = node
        self._participant = _gid(guid_of(participant))
        self._readers: list[bytes] = []
        self._writers: list[bytes] = []
        self._lock = threading.Lock()
        self._writer = Writer(participant, TOPIC, type_to_dds(TYPE), LATCHED, of_type(TYPE))
        self.change()

    def change(
        self,
        *,
        added: tuple[list[bytes], list[bytes]] = ([], []),
        removed: tuple[list[bytes], list[bytes]] = ([], []),
    ) -> None:
        """Add and remove GUIDs, (readers, writers) each, and tell."""
        with self._lock:
            self._readers = [guid for guid in [*self._readers, *added[0]] if guid not in removed[0]]
            self._writers = [guid for guid in [*self._writers, *added[1]] if guid not in removed[1]]
            self._tell()

    def close(self) -> None:
        """Say no more; what was said ends with the participant."""
        self._writer.close()

    def _tell(self) -> None:
        node = messages.make(
            "rmw_dds_common/msg/NodeEntitiesInfo",
            node_namespace="/",
            node_name=self._node,
            reader_gid_seq=[_gid(guid) for guid in self._readers],
            writer_gid_seq=[_gid(guid) for guid in self._writers],
        )
        info = messages.make(TYPE, gid=self._participant, node_entities_info_seq=[node])
        self._writer.write(messages.serialise(info, TYPE))


def _gid(guid: bytes) -> object:
    """A GUID in the graph's message: 16 bytes, padded to 24 up to Humble."""
    size = len(messages.make(_GID).data)
    return messages.make(_GID, data=guid.ljust(size, b"\0"))

"""What the bridge would say and hear, without being in any graph."""

import logging
from typing import TYPE_CHECKING

from urlab.ros2.services import SERVICES
from urlab.ros2.topics import CAMERA_INFO, COMPRESSED, IMAGE, SceneTopics, clock_topic
from urlab_client import URLabClient

if TYPE_CHECKING:
    from urlab.ros2.bridge import Settings

log = logging.getLogger("urlab.ros2")

Row = dict[str, str]


def listing(settings: "Settings") -> list[Row]:
    """``topic``, ``type`` and ``direction`` (published, heard, served) of every topic and service of the scene."""
    with URLabClient(
        settings.address, step_port=settings.step_port, observer=True, step_mode="direct", camera_streams=False
    ) as client:
        client.discover()
        topics = SceneTopics(client, settings.choice) if client.manager_present else None
    for warning in topics.warnings if topics is not None else ():
        log.warning("%s", warning)
    clock, clock_type, _ = clock_topic()
    served = [_row(one.topic, one.type_name, "served") for one in SERVICES] if settings.services else []
    if topics is None:
        return [_row(clock, clock_type), *served]
    said = [(name, one.type_name) for one in topics.told for name in one.names]
    said += [(name, one.type_name) for one in topics.constants for name in one.names]
    for camera in topics.pictured:
        named = ((camera.images, IMAGE), (camera.infos, CAMERA_INFO), (camera.compressed, COMPRESSED))
        said += [(name, kind) for names, kind in named for name in names]
    heard = [(name, one.type_name) for one in topics.heard for name in one.names]
    published = [_row(name, kind) for name, kind in sorted({(clock, clock_type), *said})]
    return [*published, *(_row(name, kind, "heard") for name, kind in sorted(heard)), *served]


def _row(topic: str, kind: str, direction: str = "published") -> Row:
    return {"topic": topic, "type": kind, "direction": direction}

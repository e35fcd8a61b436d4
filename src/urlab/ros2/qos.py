"""How a topic is delivered: the few qualities of service that the bridge uses, by name."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Qos:
    """What a writer offers, or a reader asks for; a history of the last ``depth`` messages is kept in both.

    A reader matches a writer only if it asks for no more than is offered: a reliable reader never hears a
    best-effort writer, a transient-local one never a volatile writer.
    """

    reliable: bool
    transient_local: bool
    depth: int


SENSOR_DATA = Qos(reliable=False, transient_local=False, depth=5)
"""Much data, of which the newest counts: pictures, scans."""

PICTURES = Qos(reliable=True, transient_local=False, depth=2)
"""Pictures. A reader may ask for less, and then gets what fits its buffers: with the usual ones, one in three."""

RELIABLE = Qos(reliable=True, transient_local=False, depth=10)
"""ROS's default for topics and services."""

LATCHED = Qos(reliable=True, transient_local=True, depth=1)
"""Said once, and heard by whoever comes later: a robot's description."""

CLOCK = Qos(reliable=False, transient_local=False, depth=1)
TF = Qos(reliable=True, transient_local=False, depth=100)
TF_STATIC = Qos(reliable=True, transient_local=True, depth=1)
"""One message per publisher, which holds every fixed transform."""

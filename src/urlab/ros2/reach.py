"""How far the bridge reaches: this machine, unless an option or one of ROS's own variables says otherwise.

| variable | meaning |
|---|---|
| ``ROS_AUTOMATIC_DISCOVERY_RANGE`` | ``SUBNET``, ``LOCALHOST`` (as if unset), ``OFF``, ``SYSTEM_DEFAULT`` |
| ``ROS_LOCALHOST_ONLY`` | ``1`` means ``LOCALHOST``, whatever the range says; ``0`` means ``SUBNET`` if it is unset |
| ``ROS_STATIC_PEERS`` | further hosts to look for, separated by ``;`` |
| ``CYCLONEDDS_URI`` | Cyclone's own settings; if they name network interfaces, an unset range is ``SUBNET`` |

To ROS an unset range is ``SUBNET``: every machine of the network could command the robots.
"""

import contextlib
import logging
import re
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path

log = logging.getLogger("urlab.ros2")

_RANGE, _LOCALHOST_ONLY = "ROS_AUTOMATIC_DISCOVERY_RANGE", "ROS_LOCALHOST_ONLY"
_RANGES = ("SUBNET", "LOCALHOST", "OFF", "SYSTEM_DEFAULT")
_BEYOND = ("SUBNET", "SYSTEM_DEFAULT")


@dataclass(frozen=True)
class Reach:
    """``discovery`` is one of ROS's ranges. ``own_interfaces``: the user's settings of Cyclone choose interfaces."""

    discovery: str
    static_peers: tuple[str, ...] = ()
    own_interfaces: bool = False

    @property
    def is_loopback(self) -> bool:
        """Whether no other machine can reach the node."""
        if self.own_interfaces or self.discovery in _BEYOND:
            return False
        return self.discovery == "OFF" or not self.static_peers

    def export(self, environment: MutableMapping[str, str]) -> None:
        """Say the same in the variables that every ROS node obeys, those of older distributions included."""
        environment[_RANGE] = self.discovery
        environment[_LOCALHOST_ONLY] = "1" if self.discovery == "LOCALHOST" and self.is_loopback else "0"


def reach_of(environment: Mapping[str, str], network: bool | None = None) -> Reach:
    """How far to reach: ``network`` decides if it is not None, else the environment, else it is this machine."""
    peers = tuple(peer.strip() for peer in environment.get("ROS_STATIC_PEERS", "").split(";") if peer.strip())
    own_interfaces = _names_interfaces(environment.get("CYCLONEDDS_URI", ""))
    discovery = _discovery_range(environment) or ("SUBNET" if own_interfaces else "LOCALHOST")
    if network is True and discovery not in _BEYOND:
        discovery = "SUBNET"
    if network is False and discovery != "OFF":
        discovery, peers = "LOCALHOST", ()
    return Reach(discovery, peers, own_interfaces)


def _discovery_range(environment: Mapping[str, str]) -> str | None:
    if environment.get(_LOCALHOST_ONLY) == "1":
        return "LOCALHOST"
    said = environment.get(_RANGE)
    if not said:
        return "SUBNET" if environment.get(_LOCALHOST_ONLY) == "0" else None
    if said in _RANGES:
        return said
    log.warning("%s is %r; LOCALHOST is taken. It may be %s.", _RANGE, said, ", ".join(_RANGES))
    return "LOCALHOST"


def _names_interfaces(settings: str) -> bool:
    """Whether these settings of Cyclone, or the files that they refer to, choose network interfaces."""
    texts = [settings]
    for path in re.findall(r"file://([^,]+)", settings):
        with contextlib.suppress(OSError):  # Cyclone itself says what is wrong with the file
            texts.append(Path(path).read_text(errors="replace"))
    return any("<NetworkInterface" in text for text in texts)

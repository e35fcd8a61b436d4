"""The domain to join and how others are found in it, from the variables that every ROS 2 node obeys.

| variable | meaning |
|---|---|
| ``ROS_DOMAIN_ID`` | the domain, 0 to 232; 0 if unset |
| ``ROS_AUTOMATIC_DISCOVERY_RANGE`` | ``SUBNET`` (as if unset), ``LOCALHOST``, ``OFF``, ``SYSTEM_DEFAULT`` |
| ``ROS_LOCALHOST_ONLY`` | ``1`` means ``LOCALHOST``, whatever the range says |
| ``ROS_STATIC_PEERS`` | further hosts to look for, separated by ``;`` |
| ``CYCLONEDDS_URI`` | Cyclone's own settings; they win over all of ours, the interfaces of ``LOCALHOST`` included |

Cyclone allows one domain of each number in a process, so backends share them.
"""

import contextlib
import logging
import os
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from urlab.ros2.backend import BackendError
from urlab.ros2.dds.library import DOMAIN_EXISTS, check, lib

log = logging.getLogger("urlab.ros2")

HIGHEST_DOMAIN = 232

_RANGES = ("SUBNET", "LOCALHOST", "OFF", "SYSTEM_DEFAULT")
_INTERNAL = "<WriterLingerDuration>100 ms</WriterLingerDuration><GenerateKeyhash>true</GenerateKeyhash>"
"""Closing a writer waits for acknowledgements, by default for a second; with a stalled reader that is a second for each
writer. And without key hashes Fast DDS does not notice that an endpoint, or all of us, has gone."""

_GENERAL = "<FragmentSize>14000 B</FragmentSize>"
"""A picture is cut to fit datagrams, not Ethernet frames ten of which share a datagram anyhow: fewer pieces to ask for
again. Of VGA pictures at 30 Hz a reliable reader of Fast DDS with its default buffers got all, not half."""

_PARTICIPANTS = "<ParticipantIndex>auto</ParticipantIndex><MaxAutoParticipantIndex>32</MaxAutoParticipantIndex>"
"""As ROS has it on Cyclone: fixed ports, which others on a host can guess where there is no multicast."""

_FEW_MULTICASTS = "<General><AllowMulticast>spdp</AllowMulticast></General>"
_ONLY_LOOPBACK = (
    '<General><AllowMulticast>spdp</AllowMulticast><Interfaces><NetworkInterface address="127.0.0.1" multicast="true"/>'
    "</Interfaces></General>"
)
"""Nothing leaves the machine. Multicast within it finds nodes of Humble, which have no fixed ports on the loopback."""


def domain_id(given: int | None = None, environment: Mapping[str, str] = os.environ) -> int:
    """The domain to join: the given one, or that of the environment."""
    text = str(given) if given is not None else environment.get("ROS_DOMAIN_ID") or "0"
    if not text.isdecimal() or int(text) > HIGHEST_DOMAIN:
        raise BackendError(f"the ROS domain is a number from 0 to {HIGHEST_DOMAIN}, not {text!r}")
    return int(text)


def cyclone_settings(environment: Mapping[str, str] = os.environ) -> str:
    """Cyclone's settings for a domain: XML, or a reference to it, of which the later parts win."""
    ours = _xml(f"<General>{_GENERAL}</General><Internal>{_INTERNAL}</Internal>")
    peers = [peer.strip() for peer in environment.get("ROS_STATIC_PEERS", "").split(";") if peer.strip()]
    theirs = environment.get("CYCLONEDDS_URI", "")
    discovery = _xml(_discovery(discovery_range(environment), peers, interfaces=not _names_interfaces(theirs)))
    return f"{ours},{discovery},{theirs}"


def discovery_range(environment: Mapping[str, str] = os.environ) -> str:
    """How far discovery reaches: one of ``SUBNET``, ``LOCALHOST``, ``OFF``, ``SYSTEM_DEFAULT``."""
    if environment.get("ROS_LOCALHOST_ONLY") == "1":
        return "LOCALHOST"
    reach = environment.get("ROS_AUTOMATIC_DISCOVERY_RANGE") or "SUBNET"
    if reach in _RANGES:
        return reach
    log.warning("ROS_AUTOMATIC_DISCOVERY_RANGE is %r; LOCALHOST is taken. It may be %s.", reach, ", ".join(_RANGES))
    return "LOCALHOST"


def _names_interfaces(settings: str) -> bool:
    """Whether these settings of Cyclone, or the files that they refer to, choose network interfaces.

    Cyclone adds the interfaces of all parts, and refuses one that is named twice: then only theirs are given.
    """
    texts = [settings]
    for path in re.findall(r"file://([^,]+)", settings):
        with contextlib.suppress(OSError):  # Cyclone itself says what is wrong with the file
            texts.append(Path(path).read_text(errors="replace"))
    return any("<NetworkInterface" in text for text in texts)


def _discovery(reach: str, static_peers: list[str], *, interfaces: bool) -> str:
    if reach == "SYSTEM_DEFAULT":
        return ""
    if reach == "OFF":
        return (
            "<General><AllowMulticast>false</AllowMulticast></General><Discovery><ParticipantIndex>none"
            f"</ParticipantIndex><Tag>ros_discovery_off_{os.getpid()}</Tag></Discovery>"
        )
    peers = [*(["127.0.0.1"] if reach == "LOCALHOST" else []), *static_peers]
    listed = "".join(f"<Peer address={quoteattr(peer)}/>" for peer in peers)
    found = f"<Discovery>{_PARTICIPANTS}<Peers>{listed}</Peers></Discovery>"
    if reach != "LOCALHOST" or static_peers:
        return found
    return (_ONLY_LOOPBACK if interfaces else _FEW_MULTICASTS) + found


def _xml(domain: str) -> str:
    return f"<CycloneDDS><Domain>{domain}</Domain></CycloneDDS>"


# -- domains of this process -------------------------------------------------------------------------------------------


@dataclass
class _Shared:
    handle: int | None
    users: int


_lock = threading.Lock()
_shared: dict[int, _Shared] = {}


def join_domain(number: int, settings: str) -> None:
    """Make sure that the domain exists. The settings count for the first backend of this process in it."""
    with _lock:
        shared = _shared.get(number)
        if shared is None:
            shared = _shared[number] = _Shared(_create(number, settings), 0)
        shared.users += 1


def leave_domain(number: int) -> None:
    """Give it up; the last backend in it ends it, and its threads."""
    with _lock:
        shared = _shared[number]
        shared.users -= 1
        if shared.users == 0:
            del _shared[number]
            if shared.handle is not None:
                lib.dds_delete(shared.handle)


def _create(number: int, settings: str) -> int | None:
    handle = lib.dds_create_domain(number, settings.encode())
    if handle == DOMAIN_EXISTS:
        return None
    return check(handle, f"open domain {number} with the settings {settings}")

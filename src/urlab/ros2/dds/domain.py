"""The domain to join and how others are found in it, from the variables that every ROS 2 node obeys.

| variable | meaning |
|---|---|
| ``ROS_DOMAIN_ID`` | the domain, 0 to 232; 0 if unset |
| those of `urlab.ros2.reach` | how far discovery reaches; this machine if unset |
| ``CYCLONEDDS_URI`` | Cyclone's own settings; they win over all of ours, the interfaces of ``LOCALHOST`` included |

Cyclone allows one domain of each number in a process, so backends share them.
"""

import contextlib
import logging
import os
import socket
import stat
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from urlab.ros2.backend import BackendError
from urlab.ros2.dds.library import DOMAIN_EXISTS, check, lib
from urlab.ros2.reach import Reach, reach_of

log = logging.getLogger("urlab.ros2")

HIGHEST_DOMAIN = 232

_INTERNAL = "<WriterLingerDuration>100 ms</WriterLingerDuration><GenerateKeyhash>true</GenerateKeyhash>"
"""Closing a writer waits for acknowledgements, by default for a second; with a stalled reader that is a second for each
writer. And without key hashes Fast DDS does not notice that an endpoint, or all of us, has gone."""

_GENERAL = "<FragmentSize>14000 B</FragmentSize>"
"""A picture is cut to fit datagrams, not Ethernet frames ten of which share a datagram anyhow: fewer pieces to ask for
again. Of VGA pictures at 30 Hz a reliable reader of Fast DDS with its default buffers got all, not half."""

_PARTICIPANTS = "<ParticipantIndex>auto</ParticipantIndex><MaxAutoParticipantIndex>32</MaxAutoParticipantIndex>"
"""As ROS has it on Cyclone: fixed ports, which others on a host can guess where there is no multicast."""

_FEW_MULTICASTS = "<General><AllowMulticast>spdp</AllowMulticast></General>"
_ONLY_LOOPBACK = '<General><Interfaces><NetworkInterface address="127.0.0.1" multicast="true"/></Interfaces></General>'
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
    discovery = _xml(_discovery(reach_of(environment)))
    return f"{ours},{discovery},{environment.get('CYCLONEDDS_URI', '')}"


def _discovery(reach: Reach) -> str:
    """Cyclone adds the interfaces of all parts, and refuses one that is named twice: the user's are the only ones."""
    if reach.discovery == "SYSTEM_DEFAULT":
        return ""
    only_here = _ONLY_LOOPBACK if reach.is_loopback else ""
    if reach.discovery == "OFF":
        return (
            f"<General><AllowMulticast>false</AllowMulticast></General>{only_here}<Discovery><ParticipantIndex>none"
            f"</ParticipantIndex><Tag>ros_discovery_off_{os.getpid()}</Tag></Discovery>"
        )
    is_local = reach.discovery == "LOCALHOST"
    peers = [*(["127.0.0.1"] if is_local else []), *reach.static_peers]
    listed = "".join(f"<Peer address={quoteattr(peer)}/>" for peer in peers)
    few = _FEW_MULTICASTS if is_local and not reach.static_peers else ""
    return f"{few}{only_here}<Discovery>{_PARTICIPANTS}<Peers>{listed}</Peers></Discovery>"


def _xml(domain: str) -> str:
    return f"<CycloneDDS><Domain>{domain}</Domain></CycloneDDS>"


# -- domains of this process -------------------------------------------------------------------------------------------


@dataclass
class _Shared:
    handle: int | None
    users: int


_lock = threading.Lock()
_shared: dict[int, _Shared] = {}


def join_domain(number: int, settings: str, *, only_here: bool) -> None:
    """Make sure that the domain exists. The settings count for the first backend of this process in it.

    ``only_here``: nothing that another machine sends is received.
    """
    with _lock:
        shared = _shared.get(number)
        if shared is None:
            before = _any_address_sockets()
            shared = _shared[number] = _Shared(_create(number, settings), 0)
            if only_here:
                _bind_to_loopback(_any_address_sockets() - before)
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


def _any_address_sockets() -> set[int]:
    """The descriptors of this process's UDP sockets that are bound to every address of the machine."""
    found = set()
    with contextlib.suppress(FileNotFoundError):  # only Linux lists them there
        for descriptor in [int(one.name) for one in Path("/proc/self/fd").iterdir()]:
            with contextlib.suppress(OSError):  # closed meanwhile
                if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                    with socket.socket(fileno=os.dup(descriptor)) as one:
                        if one.family == socket.AF_INET and one.type == socket.SOCK_DGRAM:
                            found |= {descriptor} if one.getsockname()[0] == "0.0.0.0" else set()
    return found


def _bind_to_loopback(descriptors: set[int]) -> None:
    """Cyclone binds to every address, whatever interfaces it is given: others could still send to its ports."""
    if sys.platform != "linux":
        log.warning("this system cannot keep other machines from sending to the ports of the bridge; use a firewall")
        return
    for descriptor in descriptors:
        try:
            with socket.socket(fileno=os.dup(descriptor)) as one:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo\0")
        except OSError as refused:
            log.warning("a port of the bridge could not be closed to other machines: %s", refused.strerror)

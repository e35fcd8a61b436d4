"""Who may use a server.

`peers` tells the local user behind a connection, and refuses the users that are strangers; `web` judges the host, origin
and token of web requests.
"""

from urlab.access.peers import (
    ROOT_UID,
    disconnect,
    is_from_this_machine,
    is_own,
    is_stranger,
    peer_uid,
    refusals,
    tcp_peer_uid,
)

__all__ = [
    "ROOT_UID",
    "disconnect",
    "is_from_this_machine",
    "is_own",
    "is_stranger",
    "peer_uid",
    "refusals",
    "tcp_peer_uid",
]

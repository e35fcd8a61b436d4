"""Who may use a server.

`peers` tells the local user behind a connection, and refuses the users that are strangers. `web` tells which
web requests are let in: by the host that they ask for, the page that sends them, and a token.
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
from urlab.access.web import WebAccess, check_token, new_token

__all__ = [
    "ROOT_UID",
    "WebAccess",
    "check_token",
    "disconnect",
    "is_from_this_machine",
    "is_own",
    "is_stranger",
    "new_token",
    "peer_uid",
    "refusals",
    "tcp_peer_uid",
]

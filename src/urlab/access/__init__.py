"""Who may use a server: the users of this machine, callers with keys, and a log of what they did.

`peers` finds the local user behind a connection, `callers` has the roles, `audit` writes the log.
"""

from urlab.access.audit import AuditLog
from urlab.access.callers import LOCAL, Role, RpcCaller
from urlab.access.peers import (
    ROOT_UID,
    disconnect,
    is_from_this_machine,
    is_own,
    is_stranger,
    peer_uid,
    refusals,
)

__all__ = [
    "LOCAL",
    "ROOT_UID",
    "AuditLog",
    "Role",
    "RpcCaller",
    "disconnect",
    "is_from_this_machine",
    "is_own",
    "is_stranger",
    "peer_uid",
    "refusals",
]

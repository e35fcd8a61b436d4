"""Who may use a server: the users of this machine, callers with keys, and a log of what they did.

`peers` finds the local user behind a connection, `keys` has the clients that are let in by their keys, `callers` the
roles, `audit` writes the log, `web` judges the host, origin and token of web requests.
"""

from urlab.access.audit import AuditLog
from urlab.access.callers import LOCAL, Role, RpcCaller
from urlab.access.keys import KeyPair, KeysFolder, KnownKey
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
    "KeyPair",
    "KeysFolder",
    "KnownKey",
    "Role",
    "RpcCaller",
    "disconnect",
    "is_from_this_machine",
    "is_own",
    "is_stranger",
    "peer_uid",
    "refusals",
]

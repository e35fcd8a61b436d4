"""Who calls, and what a caller may do."""

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """What a caller may do; each may also do what those before it may."""

    OBSERVER = "observer"
    """Look: ops that only read, and streams."""
    OPERATOR = "operator"
    """Change the world beside the driver, and send control messages."""
    DRIVER = "driver"
    """Take the driver's seat: a plain hello."""
    ADMIN = "admin"
    """Delete files of the project."""

    def covers(self, other: "Role") -> bool:
        """Whether this role may do what the other may."""
        roles = list(Role)
        return roles.index(self) >= roles.index(other)


@dataclass(frozen=True, slots=True, eq=False)
class RpcCaller:
    """Where requests come from: the name of a key with its role, or the user whose server this is."""

    name: str
    role: Role
    address: str = ""


LOCAL = RpcCaller("local user", Role.ADMIN)
"""The user whose server this is: on loopback, in shared memory, in process."""

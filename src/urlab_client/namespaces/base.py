"""What all namespaces share: asking, targets and poses, and ops that only the server knows of."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from urlab_wire.envelope import ok_op

if TYPE_CHECKING:
    from urlab_client.client import URLabClient

Vector = Sequence[float]


class HasActorId(Protocol):
    """Anything that names an actor: spawn handles, light handles, articulations, entities."""

    actor_id: str


Target = str | HasActorId
"""An actor_id (a name, with ``by_name``), or a handle: its actor_id where it has one, else its name."""

_NAME_FIELDS = ("actor_name", "prefix", "name")


class RpcNamespace:
    """A group of ops. One that has no method here is still callable, by keyword, if `meta` listed it.

    Such a call returns the raw reply. ``dir()`` lists methods and ops.
    """

    __slots__ = ("_client",)

    NAME = ""

    def __init__(self, client: "URLabClient") -> None:
        self._client = client

    def __getattr__(self, name: str) -> Callable[..., dict[str, Any]]:
        if name.startswith("_") or name not in self._ops():
            known = ", ".join(self._ops()) or "none: call discover() first"
            raise AttributeError(f"client.{self.NAME} has no {name!r}; the server's ops of this namespace: {known}")

        def call(**fields: Any) -> dict[str, Any]:
            return self._client._rpc(name, fields, expected_op=ok_op(name))

        call.__name__ = name
        call.__doc__ = f"The op {name!r} of the server; fields by keyword, returns the raw reply."
        return call

    def __dir__(self) -> Iterable[str]:
        return sorted({*super().__dir__(), *self._ops()})

    def _ops(self) -> list[str]:
        catalogue = self._client._ops_meta
        return [name for name, entry in catalogue.items() if entry.get("namespace") == self.NAME]

    def _ask(self, op: str, **fields: Any) -> dict[str, Any]:
        """One op; fields that are None do not travel."""
        payload = {name: value for name, value in fields.items() if value is not None}
        return self._client._rpc(op, payload, expected_op=ok_op(op))


def targeted(target: Target, by_name: bool) -> dict[str, str]:
    """The fields that name an actor: by its actor_id, or by its name; TypeError when ``target`` names none."""
    if isinstance(target, str):
        return {"target": target, "target_by": "actor_name"} if by_name else {"target": target}
    actor_id = getattr(target, "actor_id", "")
    name = next((word for word in (getattr(target, field, "") for field in _NAME_FIELDS) if word), "")
    if not actor_id and not name:
        raise TypeError(f"the target is an actor_id, a name or a handle that has one of them, not {target!r}")
    if name and (by_name or not actor_id):
        return {"target": name, "target_by": "actor_name"}
    return {"target": actor_id}


def rotated(rotation_quat: Vector | None, rotation_euler: Vector | None) -> dict[str, list[float]]:
    """The rotation field: x, y, z, w, or roll, pitch, yaw in degrees; at most one of them."""
    if rotation_quat is not None and rotation_euler is not None:
        raise ValueError("give rotation_quat or rotation_euler, not both")
    if rotation_quat is not None:
        return {"rotation_quat": numbers("rotation_quat", rotation_quat, 4)}
    if rotation_euler is not None:
        return {"rotation_euler": numbers("rotation_euler", rotation_euler, 3)}
    return {}


def numbers(name: str, vector: Vector, size: int = 3) -> list[float]:
    """A vector as it travels; ValueError when it has another length."""
    try:
        values = [float(value) for value in vector]
    except (TypeError, ValueError) as wrong:
        raise ValueError(f"{name} takes {size} numbers, not {vector!r}") from wrong
    if len(values) != size:
        raise ValueError(f"{name} needs {size} numbers, not {len(values)}: {values}")
    return values


def maybe(name: str, vector: Vector | None, size: int = 3) -> list[float] | None:
    """`numbers`, or None for None."""
    return None if vector is None else numbers(name, vector, size)

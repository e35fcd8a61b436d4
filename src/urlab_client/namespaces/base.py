"""What all namespaces share: asking, targets and rotations, and ops that only the server knows of."""

import os
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from urlab_client.checks import Vector, maybe_numbers
from urlab_client.lookup import FixedAttributes
from urlab_client.rpc import AnyReply
from urlab_wire.codec import Tree
from urlab_wire.envelope import Request

if TYPE_CHECKING:
    from urlab_client.client import URLabClient


class HasActorId(Protocol):
    """Anything that names an actor: spawn handles, light handles, articulations, entities."""

    @property
    def actor_id(self) -> str:
        """The actor's id; may be empty."""


Target = str | HasActorId
"""An actor_id (a name, with ``by_name``), or a handle: its actor_id where it has one, else its name."""

_NAME_FIELDS = ("actor_name", "prefix", "name")


class RpcNamespace(FixedAttributes):
    """A group of ops. One that has no method here is still callable, by keyword, if `meta` listed it.

    Such a call returns the raw reply. ``dir()`` lists methods and ops.
    """

    NAME = ""

    def __init__(self, client: "URLabClient") -> None:
        self._client = client

    if not TYPE_CHECKING:  # a type checker is to find misspelt methods

        def __getattr__(self, name: str) -> Callable[..., Tree]:
            if name.startswith("_") or name not in self._ops():
                raise AttributeError(self._unknown(name), name=name, obj=self)

            def call(**fields: object) -> Tree:
                return self._client._rpc(name, fields)

            call.__name__ = name
            call.__doc__ = f"The op {name!r} of the server; fields by keyword, returns the raw reply."
            return call

    def _unknown(self, name: str) -> str:
        methods = [word for word in dir(self) if not word.startswith("_") and word != "NAME"]
        near = get_close_matches(name, methods, n=1)
        proposal = f" (did you mean {near[0]!r}?)" if near else ""
        known = ", ".join(self._ops()) or "none: call discover() first"
        return f"client.{self.NAME} has no {name!r}{proposal}; the server's ops of this namespace: {known}"

    def __repr__(self) -> str:
        return f"client.{self.NAME}"

    def __dir__(self) -> Iterable[str]:
        return sorted({*super().__dir__(), *self._ops()})

    def _ops(self) -> list[str]:
        catalogue = self._client._ops_meta
        return [name for name, entry in catalogue.items() if entry.get("namespace") == self.NAME]

    def _ask(self, request: Request[AnyReply], absent: Mapping[str, Any] | None = None) -> AnyReply:
        """See `ClientSession._ask`."""
        return self._client._ask(request, absent)


def targeted(target: Target, by_name: bool) -> tuple[str, str | None]:
    """``target`` and ``target_by`` of a request: by its actor_id, or by its name; TypeError when it names no actor."""
    if isinstance(target, str):
        return target, "actor_name" if by_name else None
    actor_id = getattr(target, "actor_id", "")
    name = next((word for word in (getattr(target, field, "") for field in _NAME_FIELDS) if word), "")
    if not actor_id and not name:
        raise TypeError(f"the target is an actor_id, a name or a handle that has one of them, not {target!r}")
    if name and (by_name or not actor_id):
        return name, "actor_name"
    return actor_id, None


def rotated(
    rotation_quat: Vector | None, rotation_euler: Vector | None
) -> tuple[list[float] | None, list[float] | None]:
    """``rotation_quat`` (x, y, z, w) and ``rotation_euler`` (roll, pitch, yaw in degrees): at most one of them."""
    if rotation_quat is not None and rotation_euler is not None:
        raise ValueError("give rotation_quat or rotation_euler, not both")
    return maybe_numbers("rotation_quat", rotation_quat, 4), maybe_numbers("rotation_euler", rotation_euler)


def found_path(path: str | os.PathLike[str]) -> str:
    """A path to read, as it travels: one with a folder in it is looked for from this program's folder first.

    A bare name, an absolute or virtual path, and one that is not found here are left to the server.
    """
    word = os.fspath(path)
    return written_path(word) if Path(word).exists() else word


def written_path(path: str | os.PathLike[str]) -> str:
    """A path to write, as it travels: one with a folder in it, ``./x`` too, is meant from this program's folder."""
    word = os.fspath(path)
    has_folder = bool(os.path.split(word)[0])  # a Path forgets the "./" of a word
    return str(Path(word).absolute()) if has_folder and not Path(word).is_absolute() else word

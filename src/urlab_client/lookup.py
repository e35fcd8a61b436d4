"""Names: tables of what a scene has, and objects whose attributes cannot be misspelt."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import NoReturn, TypeVar

from urlab_client.errors import unknown_name

Entry = TypeVar("Entry")


class NamedTable(dict[str, Entry]):
    """A dict by name. A missing name is a `URLabLookupError` that lists the names there are, and proposes one.

    ``kind`` is what the entries are, ``owner`` what they belong to. ``aliases`` are further names for ``[...]``; they
    are no keys: ``in``, ``get`` and iteration do not know them.
    """

    __slots__ = ("aliases", "empty", "kind", "owner")

    def __init__(
        self,
        kind: str,
        entries: Mapping[str, Entry] | Iterable[tuple[str, Entry]] = (),
        *,
        owner: str = "",
        empty: str = "",
        aliases: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(entries)
        self.kind = kind
        self.owner = owner
        self.empty = empty
        self.aliases = aliases or {}

    def __missing__(self, name: str) -> Entry:
        known = self.aliases.get(name)
        if known is not None:
            return self[known]
        raise unknown_name(self.kind, name, self, owner=self.owner, empty=self.empty)


class FixedTable(NamedTable[Entry]):
    """A table that shows what a scene has: it cannot be changed; ``dict(table)`` is a copy that can."""

    __slots__ = ()

    def _refuse_change(self, *_: object, **__: object) -> NoReturn:
        """Refused: the table is read-only."""
        raise TypeError(f"this table ({self.kind} by name) is read-only: it has what the scene has")

    __setitem__ = __delitem__ = __ior__ = _refuse_change
    pop = popitem = clear = update = setdefault = _refuse_change


class FixedAttributes:
    """Refuses to set attributes that an object does not have, and those that are read-only.

    Public attributes are properties; names that begin with an underscore are the object's own. Classes of callers that
    inherit from one of ours may have attributes of their own.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if name[0] == "_":
            object.__setattr__(self, name, value)
            return
        found = getattr(type(self), name, None)
        has_setter = isinstance(found, property) and found.fset is not None
        if not has_setter and (found is not None or type(self).__module__.startswith("urlab_client")):
            _refuse(self, name, found is not None)
        object.__setattr__(self, name, value)


_INSTEAD = {
    "step_mode": "call client.runtime.set_mode(...)",
    "data": "write into it: client.data.qpos[:] = ...",
    "value": "call set_control(...)",
}


def _refuse(owner: object, name: str, exists: bool) -> NoReturn:
    kind = type(owner)
    if exists:
        hint = f": {_INSTEAD[name]}" if name in _INSTEAD else ""
        raise AttributeError(f"{kind.__name__}.{name} is read-only{hint}", name=name, obj=owner)
    public = [word for word in dir(kind) if not word.startswith("_")]
    near = get_close_matches(name, public, n=1)
    proposal = f": did you mean {near[0]!r}?" if near else f"; it has {', '.join(public)}"
    raise AttributeError(f"{kind.__name__} has no attribute {name!r} to set{proposal}", name=name, obj=owner)

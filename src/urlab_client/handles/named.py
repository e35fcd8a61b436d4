"""Handles by name, in a dict that says what it has when asked for something else."""

from collections.abc import Mapping
from typing import NoReturn, TypeVar

Handle = TypeVar("Handle")


class Named(dict[str, Handle]):
    """A dict of handles. A missing key is a KeyError that lists the keys there are."""

    __slots__ = ("kind",)

    def __init__(self, kind: str, handles: Mapping[str, Handle] | None = None) -> None:
        super().__init__(handles or {})
        self.kind = kind

    def __missing__(self, key: str) -> NoReturn:
        known = f"there are {', '.join(self)}" if self else "there are none (discover() and sim.start() bring them)"
        raise KeyError(f"no {self.kind} {key!r}; {known}")

"""Renaming a body: MuJoCo keeps references as names, so whatever refers to the body has to follow."""

from collections.abc import Callable
from typing import Any

import mujoco

_BODY_TYPES = (int(mujoco.mjtObj.mjOBJ_BODY), int(mujoco.mjtObj.mjOBJ_XBODY))


def rename_body(root: Any, spec: Any, prefix: str, old: str, new: str) -> None:
    """Call the body ``new`` that ``spec``, attached to ``root`` under ``prefix``, brought in as ``prefix + old``."""
    root.body(prefix + old).name = new
    for plural, follow in _FOLLOWERS.items():
        for element in getattr(spec, plural):
            follow(getattr(root, _SINGULAR[plural])(prefix + element.name), prefix + old, new)


def _follow_word(*fields: str) -> Callable[[Any, str, str], None]:
    def follow(element: Any, old: str, new: str) -> None:
        for field in fields:
            if getattr(element, field) == old:
                setattr(element, field, new)

    return follow


def _follow_list(*fields: str) -> Callable[[Any, str, str], None]:
    def follow(element: Any, old: str, new: str) -> None:
        for field in fields:
            words = list(getattr(element, field))
            if old in words:
                setattr(element, field, [new if word == old else word for word in words])

    return follow


def _sensor(sensor: Any, old: str, new: str) -> None:
    if int(sensor.objtype) in _BODY_TYPES and sensor.objname == old:
        sensor.objname = new
    if int(sensor.reftype) in _BODY_TYPES and sensor.refname == old:
        sensor.refname = new


def _equality(equality: Any, old: str, new: str) -> None:
    if int(equality.objtype) in _BODY_TYPES:
        _follow_word("name1", "name2")(equality, old, new)


def _tuple(group: Any, old: str, new: str) -> None:
    kinds = [int(kind) for kind in group.objtype]
    pairs = zip(kinds, list(group.objname), strict=True)
    group.objname = [new if kind in _BODY_TYPES and word == old else word for kind, word in pairs]


_SINGULAR = {
    "cameras": "camera", "lights": "light", "sensors": "sensor", "equalities": "equality", "excludes": "exclude",
    "skins": "skin", "flexes": "flex", "tuples": "tuple",
}  # fmt: skip
_FOLLOWERS: dict[str, Callable[[Any, str, str], None]] = {
    "cameras": _follow_word("targetbody"),
    "lights": _follow_word("targetbody"),
    "sensors": _sensor,
    "equalities": _equality,
    "excludes": _follow_word("bodyname1", "bodyname2"),
    "skins": _follow_list("bodyname"),
    "flexes": _follow_list("nodebody", "vertbody"),
    "tuples": _tuple,
}

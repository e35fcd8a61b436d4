"""What clients ask of a compiled model and its data: active contacts and keyframes."""

from collections.abc import Collection, Iterable
from typing import Any

import mujoco

from urlab.errors import BadValue, UnknownBody, UnknownKeyframe, did_you_mean, known
from urlab.physics.snapshot import ContactSnapshot
from urlab_wire.ops.runtime import ContactBlock, ContactFilter, KeyframeBlock

DEFAULT_MAX_CONTACTS = 64
"""Also for a request that says 0 or less."""


def compiled_name(
    kind: str,
    name: str,
    there: Collection[str],
    prefixes: Iterable[str],
    error: type[UnknownBody] | type[BadValue] = UnknownBody,
) -> str:
    """The name that the model has: this one, or with a prefix where only one makes it a name. ``error`` lists them."""
    if name in there:
        return name
    full = [f"{prefix}_{name}" for prefix in prefixes if f"{prefix}_{name}" in there]
    if len(full) == 1:
        return full[0]
    if full:
        raise error(f"{kind} {name!r} is ambiguous: {known(full)}")
    names = [one for one in there if one]
    raise error(f"there is no {kind} {name!r}{did_you_mean(name, names)}; there are: {known(names)}")


class ContactNames:
    """What can touch in one model, by name: bodies, geoms and flexes. Both sides of a flex are the flex itself."""

    def __init__(self, model: Any, prefixes: Iterable[str]) -> None:
        """A name may be asked for without its prefix, where only one of these makes it a name of the model."""
        self._prefixes = tuple(prefixes)
        self._flexes = _names(model, mujoco.mjtObj.mjOBJ_FLEX, model.nflex)
        self._geoms = _names(model, mujoco.mjtObj.mjOBJ_GEOM, model.ngeom)
        bodies = _names(model, mujoco.mjtObj.mjOBJ_BODY, model.nbody)
        self._body_of_geom = [bodies[body] for body in model.geom_bodyid]
        self._known = {"body": frozenset([*bodies, *self._flexes]), "geom": frozenset([*self._geoms, *self._flexes])}

    def side(self, geom: int, flex: int) -> tuple[str, str]:
        """The names of one side of a contact: geom and body."""
        return (self._geoms[geom], self._body_of_geom[geom]) if geom >= 0 else (self._flexes[flex],) * 2

    def resolve(self, kind: str, name: str | None) -> str | None:
        """The compiled name of a ``body`` or ``geom``; UnknownBody says which there are. None stays None."""
        return compiled_name(kind, name, self._known[kind], self._prefixes) if name else None


def read_contacts(
    contacts: ContactSnapshot, names: ContactNames, wanted: ContactFilter | None, limit: int
) -> tuple[list[ContactBlock], bool]:
    """Up to ``limit`` contacts that match, and whether there are more. Any thread."""
    wanted = wanted or ContactFilter()
    filters = (
        names.resolve("geom", wanted.geom1), names.resolve("body", wanted.body1),
        names.resolve("geom", wanted.geom2), names.resolve("body", wanted.body2),
    )  # fmt: skip
    found: list[ContactBlock] = []
    for index, (geom, flex) in enumerate(zip(contacts.geom.tolist(), contacts.flex.tolist(), strict=True)):
        sides = (*names.side(geom[0], flex[0]), *names.side(geom[1], flex[1]))
        if not all(want is None or want == name for want, name in zip(filters, sides, strict=True)):
            continue
        if len(found) == limit:
            return found, True
        found.append(_contact(contacts, index, sides))
    return found, False


def _names(model: Any, kind: mujoco.mjtObj, count: int) -> list[str]:
    return [mujoco.mj_id2name(model, kind, index) or "" for index in range(count)]


def _contact(contacts: ContactSnapshot, index: int, sides: tuple[str, ...]) -> ContactBlock:
    geom1, body1, geom2, body2 = sides
    return ContactBlock(
        geom1=geom1,
        geom2=geom2,
        body1=body1,
        body2=body2,
        pos=contacts.pos[index].tolist(),
        normal=contacts.normal[index].tolist(),
        dist=float(contacts.dist[index]),
        force=contacts.force(index),
    )


def list_keyframes(model: Any) -> list[KeyframeBlock]:
    """All keyframes, arrays in compiled order."""
    return [_keyframe(model, index) for index in range(model.nkey)]


def find_keyframes(model: Any, name: str, prefixes: Collection[str]) -> list[int]:
    """The id of the keyframe of that compiled name, or those of every robot that has one of that short name."""
    names = [model.key(index).name for index in range(model.nkey)]
    if name in names:
        return [names.index(name)]
    full = [f"{prefix}_{name}" for prefix in prefixes if f"{prefix}_{name}" in names]
    if full:
        return [names.index(one) for one in full]
    short = {one.removeprefix(f"{prefix}_") for one in names for prefix in prefixes if one.startswith(f"{prefix}_")}
    exist = known([*names, *short])
    raise UnknownKeyframe(f"there is no keyframe {name!r}; there are: {exist}")


def _keyframe(model: Any, index: int) -> KeyframeBlock:
    return KeyframeBlock(
        name=model.key(index).name,
        time=float(model.key_time[index]),
        qpos=model.key_qpos[index].tolist(),
        qvel=model.key_qvel[index].tolist(),
        ctrl=model.key_ctrl[index].tolist(),
        mocap_pos=model.key_mpos[index].reshape(-1).tolist(),
        mocap_quat=model.key_mquat[index].reshape(-1).tolist(),
    )

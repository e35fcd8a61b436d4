"""What clients ask of a compiled model and its data: active contacts and keyframes."""

from collections.abc import Iterable
from typing import Any

import mujoco
import numpy as np

from urlab.errors import UnknownKeyframe, known
from urlab_wire.ops.runtime import ContactBlock, ContactFilter, KeyframeBlock

DEFAULT_MAX_CONTACTS = 64


def read_contacts(model: Any, data: Any, wanted: ContactFilter | None, limit: int) -> tuple[list[ContactBlock], bool]:
    """Up to ``limit`` contacts that match, and whether there are more; the caller holds the physics lock."""
    wanted = wanted or ContactFilter()
    filters = (wanted.geom1, wanted.geom2, wanted.body1, wanted.body2)
    found: list[ContactBlock] = []
    for index in range(data.ncon):
        geom1, geom2 = (int(geom) for geom in data.contact.geom[index])
        names = (_geom(model, geom1), _geom(model, geom2), _body_of(model, geom1), _body_of(model, geom2))
        if not all(not want or want == name for want, name in zip(filters, names, strict=True)):
            continue
        if len(found) == limit:
            return found, True
        found.append(_contact(model, data, index, names))
    return found, False


def _geom(model: Any, geom: int) -> str:
    return model.geom(geom).name if geom >= 0 else ""


def _body_of(model: Any, geom: int) -> str:
    return model.body(int(model.geom_bodyid[geom])).name if geom >= 0 else ""


def _contact(model: Any, data: Any, index: int, names: tuple[str, str, str, str]) -> ContactBlock:
    force = np.zeros(6)
    mujoco.mj_contactForce(model, data, index, force)
    contact = data.contact
    geom1, geom2, body1, body2 = names
    return ContactBlock(
        geom1=geom1,
        geom2=geom2,
        body1=body1,
        body2=body2,
        pos=contact.pos[index].tolist(),
        normal=contact.frame[index][:3].tolist(),
        dist=float(contact.dist[index]),
        force=force.tolist(),
    )


def list_keyframes(model: Any) -> list[KeyframeBlock]:
    """All keyframes, arrays in compiled order."""
    return [_keyframe(model, index) for index in range(model.nkey)]


def find_keyframes(model: Any, name: str, prefixes: Iterable[str]) -> list[int]:
    """The id of the keyframe of that compiled name, or those of every robot that has one of that short name."""
    names = [model.key(index).name for index in range(model.nkey)]
    if name in names:
        return [names.index(name)]
    full = [f"{prefix}_{name}" for prefix in prefixes if f"{prefix}_{name}" in names]
    if full:
        return [names.index(one) for one in full]
    raise UnknownKeyframe(f"there is no keyframe {name!r}; there are: {known(names)}")


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

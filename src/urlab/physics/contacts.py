"""The active contacts of a simulation."""

from typing import Any

import mujoco
import numpy as np

from urlab_wire.ops.runtime import ContactBlock, ContactFilter

DEFAULT_MAX_CONTACTS = 64


def read_contacts(model: Any, data: Any, wanted: ContactFilter | None, limit: int) -> tuple[list[ContactBlock], bool]:
    """Up to ``limit`` contacts that match, and whether there are more; the caller holds the physics lock."""
    wanted = wanted or ContactFilter()
    found: list[ContactBlock] = []
    for index in range(data.ncon):
        names = _names(model, data.contact.geom[index])
        if not _matches(names, wanted):
            continue
        if len(found) == limit:
            return found, True
        found.append(_block(model, data, index, names))
    return found, False


def _names(model: Any, geoms: Any) -> tuple[str, str, str, str]:
    geom1, geom2 = int(geoms[0]), int(geoms[1])
    return _geom(model, geom1), _geom(model, geom2), _body_of(model, geom1), _body_of(model, geom2)


def _geom(model: Any, geom: int) -> str:
    return model.geom(geom).name if geom >= 0 else ""


def _body_of(model: Any, geom: int) -> str:
    return model.body(int(model.geom_bodyid[geom])).name if geom >= 0 else ""


def _matches(names: tuple[str, str, str, str], wanted: ContactFilter) -> bool:
    asked = (wanted.geom1, wanted.geom2, wanted.body1, wanted.body2)
    return all(not ask or ask == name for ask, name in zip(asked, names, strict=True))


def _block(model: Any, data: Any, index: int, names: tuple[str, str, str, str]) -> ContactBlock:
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

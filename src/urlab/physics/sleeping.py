"""Which kinematic trees of a scene sleep: part of what its future depends on, but not of MuJoCo's integration state.

MuJoCo's own record is ``tree_asleep``: below zero for a tree that is awake, and counting up while it hardly moves;
otherwise the next tree in the ring of those that fell asleep together. All else about sleep follows from it.
"""

from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

Int32Array = NDArray[np.int32]

_AWAKE = -(1 + mujoco.mjMINAWAKE)
"""Of a tree that was just woken."""


def may_sleep(model: Any) -> bool:
    """Whether bodies that rest are left out of the simulation."""
    return bool(model.ntree and model.opt.enableflags & mujoco.mjtEnableBit.mjENBL_SLEEP)


def is_sleep(model: Any, asleep: Int32Array) -> bool:
    """Whether this may be the ``tree_asleep`` of the model: those asleep are in rings, and no other tree is."""
    rings = asleep >= 0
    return bool(
        len(asleep) == model.ntree
        and (asleep >= _AWAKE).all()
        and np.array_equal(np.sort(asleep[rings]), np.flatnonzero(rings))
    )


def wake_all(model: Any, data: Any) -> None:
    """Let every tree take part in the next evaluation."""
    set_sleep(model, data, np.full(model.ntree, _AWAKE, np.int32))


def set_sleep(model: Any, data: Any, asleep: Int32Array) -> None:
    """Let the trees sleep that sleep by ``asleep``, and no others; what is known of them was evaluated before.

    MuJoCo has a function for all but the first line, which Python cannot call.
    """
    data.tree_asleep[:] = asleep
    data.tree_awake[:] = asleep < 0
    data.ntree_awake = int(np.count_nonzero(data.tree_awake))
    tree = model.body_treeid
    is_fixed = tree < 0
    data.body_awake[:] = np.where(is_fixed, mujoco.mjtSleepState.mjS_STATIC, data.tree_awake[tree])
    data.nbody_awake = _list(data.body_awake_ind, data.body_awake != mujoco.mjtSleepState.mjS_ASLEEP)
    has_live_parent = (data.body_awake != mujoco.mjtSleepState.mjS_ASLEEP)[model.body_parentid]
    has_live_parent[0] = False
    data.nparent_awake = _list(data.parent_awake_ind, has_live_parent)
    data.nv_awake = _list(data.dof_awake_ind, data.tree_awake[model.dof_treeid] == 1)


def _list(ids: Int32Array, chosen: NDArray[np.bool_]) -> int:
    found = np.flatnonzero(chosen)
    ids[: len(found)] = found
    return len(found)

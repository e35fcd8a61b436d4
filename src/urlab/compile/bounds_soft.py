"""Where the vertices of deformable things are: flexes and skins."""

from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def flex_vertices(model: Any, data: Any, flex: int) -> Array:
    """World positions in metres, shape (n, 3). ``mj_kinematics`` does not place them, so it is done on a copy."""
    placed = mujoco.MjData(model)
    placed.qpos, placed.mocap_pos, placed.mocap_quat = data.qpos, data.mocap_pos, data.mocap_quat
    mujoco.mj_kinematics(model, placed)
    mujoco.mj_comPos(model, placed)
    mujoco.mj_flex(model, placed)
    start, count = int(model.flex_vertadr[flex]), int(model.flex_vertnum[flex])
    return np.array(placed.flexvert_xpos[start : start + count])


def skin_vertices(model: Any, data: Any, skin: int) -> Array:
    """World positions in metres, shape (n, 3): each vertex is the weighted mean of where its bones carry it.

    MuJoCo has made the weights of a vertex add up to one.
    """
    start, count = int(model.skin_vertadr[skin]), int(model.skin_vertnum[skin])
    rest, placed = model.skin_vert[start : start + count].astype(np.float64), np.zeros((count, 3))
    first = int(model.skin_boneadr[skin])
    for bone in range(first, first + int(model.skin_bonenum[skin])):
        begin, number = int(model.skin_bonevertadr[bone]), int(model.skin_bonevertnum[bone])
        carried = model.skin_bonevertid[begin : begin + number]
        weight = model.skin_bonevertweight[begin : begin + number].astype(np.float64)
        turn, shift = _bone_motion(model, data, bone)
        np.add.at(placed, carried, weight[:, None] * (rest[carried] @ turn.T + shift))
    return placed


def _bone_motion(model: Any, data: Any, bone: int) -> tuple[Array, Array]:
    """The rotation and the translation that take the skin from its rest pose to where this bone's body is."""
    body, bind = int(model.skin_bonebodyid[bone]), np.zeros(9)
    mujoco.mju_quat2Mat(bind, model.skin_bonebindquat[bone].astype(np.float64))
    turn = data.xmat[body].reshape(3, 3) @ bind.reshape(3, 3).T
    return turn, data.xpos[body] - turn @ model.skin_bonebindpos[bone].astype(np.float64)

"""What a policy gets after every step: the keys of the first protocol and of the later one, side by side.

Arrays are NumPy arrays; states are float32, as the protocol's own server sends them.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from urlab.evaluation.simulation.cameras import CameraView
from urlab.evaluation.simulation.kinematics import EePose
from urlab.evaluation.simulation.simulation import Simulation

Float32s = NDArray[np.float32]


def observe(
    simulation: Simulation,
    *,
    instruction: str,
    timestep: int,
    episode_id: str,
    cameras: bool,
    privileged: bool = False,
) -> dict[str, Any]:
    """The observation of the state as it is now.

    ``timestep`` 0 is the first of an episode. Without ``cameras`` nothing is drawn and there are no pictures in it.
    ``privileged`` adds what no robot could know, for scripted policies.
    """
    views = simulation.render() if cameras else {}
    observation = {
        "instruction": instruction,
        "timestep": timestep,
        "reset": timestep == 0,
        "episode_id": episode_id,
        "robot_id": simulation.embodiment.robot_id,
        "camera_data": {name: _camera_data(view) for name, view in views.items()},
        **{f"video.{name}_view": view.rgb for name, view in views.items()},
        **_state(simulation),
    }
    return observation | {"privileged": _privileged(simulation)} if privileged else observation


def _state(simulation: Simulation) -> dict[str, Any]:
    joints, slots = simulation.joints.astype(np.float32), simulation.embodiment.slots
    poses = [_pose(pose) for pose in simulation.ee_poses]
    ee_pose = poses[0] if len(poses) == 1 else poses
    return {
        "joint_position_state": joints,
        "ee_pose_state": ee_pose,
        "state.joints": np.concatenate([joints[slot.joints] for slot in slots]),
        "state.gripper": np.concatenate([joints[slot.gripper] for slot in slots]),
        "state.base": [0.0, 0.0, 0.0],
        "state.ee_pose": ee_pose,
    }


def _pose(pose: EePose) -> list[Float32s]:
    return [pose.pos.astype(np.float32), pose.quat_wxyz.astype(np.float32)]


def _camera_data(view: CameraView) -> dict[str, Any]:
    return {"rgb": view.rgb, "depth": view.depth, "intrinsics_matrix": view.intrinsics, "p": view.p, "q": view.q}


def _privileged(simulation: Simulation) -> dict[str, Any]:
    """Plain Python values, in the world's frame. ``size`` is an object's full lengths along its own axes."""
    specs = simulation.task.objects
    return {
        "task": simulation.task.name,
        "objects": {
            name: {
                "pos": list(pose.pos),
                "quat_wxyz": list(pose.quat_wxyz),
                "size": list(specs[name].extents),
                "shape": specs[name].shape_name,
            }
            for name, pose in simulation.objects.items()
        },
        "object_joints": simulation.object_joints,
        "robot_base_pos": list(simulation.embodiment.base_pos_w),
    }

"""The robots that policies drive: what an action's numbers mean, where its tool is, and which cameras look on.

Names of joints, actuators and bodies are those of the shipped model. World: metres, +Z up, the table's top at
`TABLE_TOP_Z_M`, the robot at the table's -X edge looking along +X.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from urlab.evaluation.camera_config import CameraMounts, CameraRigFile, load_cameras, shipped_cameras
from urlab.robots import model_path

Numbers = tuple[float, ...]

TABLE_TOP_Z_M = 1.0


@dataclass(frozen=True)
class Gripper:
    """The gripper entries of an action: absolute joint positions, one per joint.

    ``actuators`` are driven by the first entries, one each; fewer actuators than joints means that the rest follow.
    """

    joints: tuple[str, ...]
    actuators: tuple[str, ...]
    open: Numbers
    closed: Numbers


@dataclass(frozen=True)
class Arm:
    """One arm. Its poses are those of ``ee_body`` in the frame of ``base_body``; ``joints`` in the order of actions.

    ``tcp_offset_m`` is where the fingers meet, along +Z of ``ee_body``.
    """

    name: str
    joints: tuple[str, ...]
    actuators: tuple[str, ...]
    base_body: str
    ee_body: str
    gripper: Gripper
    tcp_offset_m: float


@dataclass(frozen=True, slots=True)
class ArmSlots:
    """Where one arm's numbers are in an action of joint positions."""

    arm: Arm
    joints: slice
    gripper: slice


@dataclass(frozen=True)
class Embodiment:
    """A robot as the protocol knows it. ``robot_id`` is the protocol's name, ``model`` the shipped model's.

    ``home`` has the joint positions at the start of an episode in the order of actions: arm, gripper, arm, gripper.
    ``cameras`` are those of ``configs/cameras/<name>.toml``.
    """

    name: str
    robot_id: str
    model: str
    base_pos_w: tuple[float, float, float]
    arms: tuple[Arm, ...]
    home: Numbers
    cameras: CameraMounts
    max_joint_speed_rad_s: float = 2.0

    @cached_property
    def joints(self) -> tuple[str, ...]:
        """All joints in the order of actions."""
        return tuple(joint for arm in self.arms for joint in (*arm.joints, *arm.gripper.joints))

    @cached_property
    def slots(self) -> tuple[ArmSlots, ...]:
        """Where every arm's numbers are in an action of joint positions: arm, gripper, arm, gripper."""
        slots, start = [], 0
        for arm in self.arms:
            middle = start + len(arm.joints)
            end = middle + len(arm.gripper.joints)
            slots.append(ArmSlots(arm, slice(start, middle), slice(middle, end)))
            start = end
        return tuple(slots)

    @cached_property
    def joints_in_words(self) -> str:
        """What the numbers of an action of joint positions are."""
        parts = [f"{len(arm.joints)} {arm.name} + {len(arm.gripper.joints)} gripper" for arm in self.arms]
        return f"{self.name}: {' + '.join(parts)}"

    @property
    def action_length(self) -> int:
        """Numbers in an action of joint positions."""
        return len(self.joints)


def _franka_arm(gripper: Gripper, tcp_offset_m: float) -> Arm:
    joints = tuple(f"joint{number}" for number in range(1, 8))
    return Arm("arm", joints, joints, base_body="link0", ee_body="hand", gripper=gripper, tcp_offset_m=tcp_offset_m)


FRANKA_PANDA = Embodiment(
    name="franka_panda",
    robot_id="manip/franka/panda_hand",
    model="panda",
    base_pos_w=(-0.5, 0.0, TABLE_TOP_Z_M),
    arms=(
        _franka_arm(
            Gripper(("finger_joint1", "finger_joint2"), ("gripper",), open=(0.04, 0.04), closed=(0.0, 0.0)),
            tcp_offset_m=0.1034,
        ),
    ),
    home=(0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785, 0.04, 0.04),
    cameras=shipped_cameras("franka_panda"),
)

# The gripper is screwed on along the flange's axes, 45 degrees from those of the hand, in which poses are given.
# Closing takes the fingertips 14 mm further out, so the tool point is that of an object of about 4 cm.
FRANKA_ROBOTIQ = Embodiment(
    name="franka_robotiq",
    robot_id="manip/franka/robotiq",
    model="franka_robotiq",
    base_pos_w=(-0.5, 0.0, TABLE_TOP_Z_M),
    arms=(
        _franka_arm(
            Gripper(
                joints=(
                    "finger_joint",
                    "right_outer_knuckle_joint",
                    "left_inner_knuckle_joint",
                    "right_inner_knuckle_joint",
                    "right_inner_finger_joint",
                    "left_inner_finger_joint",
                ),
                actuators=("gripper",),
                open=(0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
                closed=(0.7853, 0.7853, -0.7853, -0.7853, -0.7853, -0.7853),
            ),
            tcp_offset_m=0.143,
        ),
    ),
    home=(0.0, -0.785, 0.0, -2.356, 0.0, 1.57079, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    cameras=shipped_cameras("franka_robotiq"),
)


def _aloha_arm(side: str) -> Arm:
    joints = tuple(f"{side}_joint{number}" for number in range(1, 7))
    return Arm(
        name=side,
        joints=joints,
        actuators=joints,
        base_body=f"{side}_base",
        ee_body=f"{side}_link6",
        gripper=Gripper(
            joints=(f"{side}_finger_joint1", f"{side}_finger_joint2"),
            actuators=(f"{side}_gripper",),
            open=(0.05, 0.05),
            closed=(0.0, 0.0),
        ),
        tcp_offset_m=0.14,
    )


# All zeros folds the arms onto their shoulders, out of the cameras' sight and a long way from the table:
# home holds the tools over it, pointing down.
_ALOHA_HOME = (0.0, 1.76, -0.48, 0.0, 0.37806, 0.0, 0.05, 0.05)

ALOHA = Embodiment(
    name="aloha",
    robot_id="manip/mobile_aloha/piper",
    model="aloha",
    base_pos_w=(-0.65, 0.0, 0.3),
    arms=(_aloha_arm("left"), _aloha_arm("right")),
    home=(*_ALOHA_HOME, *_ALOHA_HOME),
    cameras=shipped_cameras("aloha"),
)

EMBODIMENTS = {one.name: one for one in (FRANKA_PANDA, FRANKA_ROBOTIQ, ALOHA)}


def load_rig(path: Path) -> CameraRigFile:
    """The cameras in a file, for one of our robots and mounted on bodies that it has; else CameraConfigError."""
    return load_cameras(path, _body_names)


def _body_names(embodiment: str) -> tuple[str, ...]:
    """Of the robot's model; KeyError with the robots that there are."""
    import mujoco

    if embodiment not in EMBODIMENTS:
        raise KeyError(f"allowed: {', '.join(EMBODIMENTS)}")
    spec = mujoco.MjSpec.from_file(str(model_path(EMBODIMENTS[embodiment].model)))
    return tuple(body.name for body in spec.bodies[1:])

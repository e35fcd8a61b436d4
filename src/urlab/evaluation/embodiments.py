"""The robots that policies drive: what an action's numbers mean, where its tool is, and which cameras look on.

Names of joints, actuators and bodies are those of the shipped model. World: metres, +Z up, the table's top at
`TABLE_TOP_Z_M`, the robot at the table's -X edge looking along +X.
"""

from dataclasses import dataclass
from functools import cached_property

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
class CameraMount:
    """A camera that policies see through: a pinhole with its intrinsics in pixels.

    The pose is in the frame of ``body`` (None is the world), in axes that look along +X with +Z up.
    """

    name: str
    body: str | None
    pos_m: tuple[float, float, float]
    quat_wxyz: tuple[float, float, float, float]
    fx: float
    fy: float
    cx: float = 320.0
    cy: float = 240.0
    width: int = 640
    height: int = 480


@dataclass(frozen=True)
class Embodiment:
    """A robot as the protocol knows it. ``robot_id`` is the protocol's name, ``model`` the shipped model's.

    ``home`` has the joint positions at the start of an episode in the order of actions: arm, gripper, arm, gripper.
    """

    name: str
    robot_id: str
    model: str
    base_pos_w: tuple[float, float, float]
    arms: tuple[Arm, ...]
    home: Numbers
    cameras: tuple[CameraMount, ...]
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


_OBS_CAMERAS = (
    CameraMount("obs_camera", None, (0.65, 0.0, 1.85), (0.0, -0.42261829, 0.0, 0.90630777), 450.0, 450.0),
    CameraMount(
        "obs_camera_2", None, (-0.60, -0.75, 1.85), (0.83057843, -0.1464534, 0.34536953, 0.41159539), 450.0, 450.0
    ),
)

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
    cameras=(
        *_OBS_CAMERAS,
        CameraMount("realsense", "hand", (0.03, 0.0, 0.025), (0.0, 0.70710678, 0.0, 0.70710678), 288.0, 288.0),
    ),
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
    cameras=(
        *_OBS_CAMERAS,
        # The camera mount's own frame is not published: this is where the variant with a stated pose has its camera.
        CameraMount("realsense", "link7", (0.07405, -0.032, 0.12849), (0.0, 0.572857, 0.0, 0.819655), 288.0, 288.0),
    ),
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


def _wrist_camera(side: str) -> CameraMount:
    # The protocol's pose, (0, 0.075, 0.05) and 25 degrees towards the tool, turned a quarter about the tool's axis:
    # our fingers open along Y, and from there one of them would hide the other.
    pose = (-0.075, 0.0, 0.05), (0.84339145, 0.0, -0.53729961, 0.0)
    return CameraMount(f"{side}_camera", f"{side}_link6", *pose, 300.0, 300.0)


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
    cameras=(
        _wrist_camera("left"),
        _wrist_camera("right"),
        CameraMount("top_camera", "top_camera_link", (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0), 228.57143, 228.57143),
    ),
)

EMBODIMENTS = {one.name: one for one in (FRANKA_PANDA, FRANKA_ROBOTIQ, ALOHA)}

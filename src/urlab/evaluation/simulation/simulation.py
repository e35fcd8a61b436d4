"""One robot at one task: the physics behind an episode, and the command in force."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from urlab.cameras.renderer import DrawnState
from urlab.compile import CompiledScene
from urlab.errors import BadValue, known
from urlab.evaluation.embodiments import ArmSlots, Embodiment
from urlab.evaluation.goals.solids import Handling
from urlab.evaluation.simulation.actions import Action, ArmTarget, ControlType
from urlab.evaluation.simulation.kinematics import Array, EePose, Kinematics
from urlab.evaluation.simulation.scene import ROBOT, CameraRig, CameraView, build_scene
from urlab.evaluation.tasks.layout import Layout
from urlab.evaluation.tasks.task import Task, TaskError
from urlab.geometry import Pose
from urlab.physics.engine import Engine
from urlab.physics.model_changes import ModelChanges
from urlab.scene.randomisation import check, draw
from urlab_wire.ops.stepping import ModelChange

SUBSTEPS = 16
"""One control step is 1/30 s."""
SETTLE_STEPS = 50
AT_REST_M_S, AT_REST_RAD_S = 0.02, 0.2
"""An object that is slower than both is at rest."""
_BAD_STATES = [
    int(kind)
    for kind in (mujoco.mjtWarning.mjWARN_BADQPOS, mujoco.mjtWarning.mjWARN_BADQVEL, mujoco.mjtWarning.mjWARN_BADQACC)
]


class CommandMemory:
    """The command in force, to which relative actions add. `reset` comes first. One thread at a time.

    Per arm there is one command, and it is known in two forms, as joints and as a pose of the hand.

    - A relative joint action adds to the joints last commanded, not to those measured. After a reset they are the
      joints measured then. The sum may lie beyond a joint's limits and is remembered all the same; the robot stops at
      the limit.
    - A relative pose multiplies the pose last commanded from the left, both in the frame of the arm's base: a rotation
      also turns the position about the base. After a reset the pose is the one measured then.
    - An absolute action becomes the command as it is.
    - A pose that no joints reach is remembered as well, while the arm holds the joints measured now.
    - An action in the other form goes on from the same command: after a pose the joints are those that were sent to the
      arm (the solution, or the joints held), after joints the pose is the one that those joints, within their limits,
      have.
    - A gripper's numbers always replace the ones before.
    """

    def __init__(self, embodiment: Embodiment, kinematics: Kinematics) -> None:
        self._slots = embodiment.slots
        self._kinematics = kinematics.arms
        self._joints: Array = np.array(embodiment.home)
        self._poses: list[EePose | None] = [None] * len(self._slots)
        self._is_held = [False] * len(self._slots)
        self._ranges = [
            (slot.joints.start + index, name, float(arm.low[index]), float(arm.high[index]))
            for slot, arm in zip(self._slots, self._kinematics, strict=True)
            for index, name in enumerate(slot.arm.joints)
        ]

    @property
    def joints(self) -> Array:
        """The joints last commanded, in the order of actions; a copy."""
        return self._joints.copy()

    @property
    def is_held(self) -> tuple[bool, ...]:
        """Per arm, whether the last action asked for a pose out of reach, so that the arm holds still."""
        return tuple(self._is_held)

    def far_beyond_range(self) -> tuple[str, float, tuple[float, float]] | None:
        """The first arm joint commanded more than half a turn beyond its range: name, command, range (rad)."""
        joints = self._joints.tolist()  # plain numbers: quicker than arrays for so few
        for entry, name, low, high in self._ranges:
            if not low - math.pi <= joints[entry] <= high + math.pi:
                return name, joints[entry], (low, high)
        return None

    def reset(self, measured: Array) -> None:
        """Begin an episode with the joints as they were measured, in the order of actions."""
        self._joints = measured.copy()
        self._poses = [None] * len(self._slots)
        self._is_held = [False] * len(self._slots)

    def apply(self, action: Action, measured: Array) -> Array:
        """Take an action in; the joints to be sent to the robot now, in the order of actions.

        ``measured`` joints seed the search for those of a pose, and are held when there are none.
        """
        if action.kind is ControlType.JOINT_POSITION:
            self._apply_joints(np.array(action.joints), action.is_rel)
        else:
            for index, target in enumerate(action.arms):
                self._apply_pose(index, target, action.is_rel, measured)
        return self.joints

    def _apply_joints(self, numbers: Array, is_rel: bool) -> None:
        for index, slot in enumerate(self._slots):
            before = self._joints[slot.joints] if is_rel else 0.0
            self._joints[slot.joints] = before + numbers[slot.joints]
            self._joints[slot.gripper] = numbers[slot.gripper]
            self._poses[index], self._is_held[index] = None, False

    def _apply_pose(self, index: int, target: ArmTarget, is_rel: bool, measured: Array) -> None:
        slot, given = self._slots[index], EePose(np.array(target.pos), np.array(target.quat_wxyz))
        wanted = _after(given, self._pose(index, slot)) if is_rel else given
        seed = measured[slot.joints]
        found = self._kinematics[index].solve(wanted, seed)
        self._joints[slot.joints] = found.joints if found.is_reached else seed
        self._joints[slot.gripper] = target.gripper
        self._poses[index], self._is_held[index] = wanted, not found.is_reached

    def _pose(self, index: int, slot: ArmSlots) -> EePose:
        """The pose last commanded; computed only on demand, as most policies never need it."""
        remembered, arm = self._poses[index], self._kinematics[index]
        return remembered or arm.pose(arm.clipped(self._joints[slot.joints]))


def _after(change: EePose, before: EePose) -> EePose:
    """change * before, both in the frame of the base."""
    pos, quat = np.empty(3), np.empty(4)
    mujoco.mju_rotVecQuat(pos, before.pos, change.quat_wxyz)
    mujoco.mju_mulQuat(quat, change.quat_wxyz, before.quat_wxyz)
    return EePose(pos + change.pos, quat / np.linalg.norm(quat))


class TaskDraws:
    """What a task draws for each episode: parameters of its model. A task without entries costs nothing."""

    def __init__(self, engine: Engine, task: Task, prefixes: Sequence[str]) -> None:
        """TaskError when the task names what its scene does not have."""
        self._entries = task.randomize
        self.changes: list[ModelChange] = []
        """What the episode has drawn."""

        if self._entries:
            self._model = ModelChanges(engine, prefixes)
            try:
                check(self._entries, self._model.parameters)
            except BadValue as wrong:
                raise TaskError(f"task {task.name!r}: {wrong.message}") from wrong

    def begin(self, seed: int) -> None:
        """The model of an episode; the caller holds the physics lock."""
        if self._entries:
            self.changes = self._model.check(draw(self._entries, seed, self._model.parameters))
            self._model.begin_anew(self.changes)


class Simulation:
    """`reset` comes first. One thread at a time. The same layout and actions give the same bits, with cameras or not.

    Vectors of joints are in the order of actions (rad, and m for sliding fingers). ``scene`` is what is simulated.
    """

    def __init__(self, task: Task, embodiment: Embodiment, *, cameras: bool) -> None:
        self.task, self.embodiment = task, embodiment
        scene = build_scene(task, embodiment, cameras=cameras)
        self._engine = Engine(scene.model)
        self._draws = TaskDraws(self._engine, task, [one.actor.name for one in scene.placed])
        self._robot = RobotPort(scene.model, ROBOT, embodiment)
        self._objects = ObjectPort(scene, task.objects)
        self._grippers = GripperPort(scene, ROBOT, embodiment, task.objects)
        self._starts: dict[str, Pose] = {}
        self._kinematics = Kinematics(embodiment)
        self._memory = CommandMemory(embodiment, self._kinematics)
        self._rig = CameraRig(scene, embodiment.cameras) if cameras and embodiment.cameras else None
        self.scene = scene
        self.frames = _frames(embodiment, self._kinematics)

    def draw_model(self, seed: int) -> None:
        """Give the model what the task draws of that seed, without a step: for pictures of states of that episode."""
        with self._engine.locked():
            self._draws.begin(seed)

    def reset(self, layout: Layout) -> None:
        """Put everything in its place, let it come to rest, and take the joints measured then as the command."""
        data = self._data
        with self._engine.locked():
            self._draws.begin(layout.seed)
            self._engine.reset()
            self._robot.put(data, np.array(self.embodiment.home))
            self._objects.put(data, layout)
            for _ in range(SETTLE_STEPS * SUBSTEPS):
                self._engine.step_once()
            self._memory.reset(self._robot.joints(data))
            self._starts = self._objects.poses(data)
            self._engine.publish()

    def step(self, action: Action) -> None:
        """Carry out one action for one control step, as far as the robot gets in that time."""
        data = self._data
        with self._engine.locked():
            targets = self._memory.apply(action, self._robot.joints(data))
            for controls in self._robot.ramp(data, targets, SUBSTEPS):
                data.ctrl[:] = controls
                self._engine.step_once()
            self._engine.publish()

    def state(self) -> tuple[float, Array, Array, Array, Array]:
        """Simulated time (s), qpos, qvel, ctrl and the poses of mocap bodies, of the whole scene; copies."""
        data = self._data
        fixed = np.hstack([data.mocap_pos, data.mocap_quat])
        return float(data.time), data.qpos.copy(), data.qvel.copy(), data.ctrl.copy(), fixed

    @property
    def joints(self) -> Array:
        """The measured joints."""
        return self._robot.joints(self._data)

    @property
    def ee_poses(self) -> tuple[EePose, ...]:
        """Per arm, where the hand is in the frame of the arm's base, by the measured joints."""
        return self._kinematics.ee_poses(self.joints)

    @property
    def commanded_joints(self) -> Array:
        """The joints last commanded: what the next relative action adds to."""
        return self._memory.joints

    def far_beyond_range(self) -> tuple[str, float, tuple[float, float]] | None:
        """An arm joint that is commanded more than half a turn beyond its range: its name, the command, the range."""
        return self._memory.far_beyond_range()

    @property
    def is_held(self) -> tuple[bool, ...]:
        """Per arm, whether the last action asked for a pose out of reach, so that the arm holds still."""
        return self._memory.is_held

    @property
    def is_stable(self) -> bool:
        """False once MuJoCo has found the state to be nonsense (and has begun anew) since the last reset."""
        return not self._data.warning.number[_BAD_STATES].any()

    @property
    def objects(self) -> dict[str, Pose]:
        """Where the task's objects are in the world."""
        return self._objects.poses(self._data)

    @property
    def object_joints(self) -> dict[str, dict[str, float]]:
        """Joint positions (rad or m) of those objects that have joints."""
        return self._objects.joints(self._data)

    @property
    def handling(self) -> Handling:
        """What is being done to the objects now."""
        moved = {name: pose.distance_m(self._starts[name]) for name, pose in self.objects.items()}
        return Handling(self._grippers.touched(self._data), self._objects.moving(self._data), moved)

    def render(self) -> dict[str, CameraView]:
        """What the cameras see now, by name; nothing without cameras."""
        return {} if self._rig is None else self._rig.take(self._engine.snapshot)

    def picture(self, camera: str, state: DrawnState | None = None) -> NDArray[np.uint8]:
        """What one camera sees now, or in another state, (height, width, 3) RGB; KeyError without that camera."""
        if self._rig is None:
            raise KeyError(camera)
        return self._rig.picture(camera, self._engine.snapshot if state is None else state)

    def close(self) -> None:
        """Give back GL memory and threads. May be called twice."""
        if self._rig is not None:
            self._rig.close()
        self._engine.close()

    @property
    def _data(self) -> Any:
        return self._engine.data


def _frames(embodiment: Embodiment, kinematics: Kinematics) -> dict[str, Any]:
    """The entries of an observation that say where the robot stands in the world, and which point its poses are of.

    Bases do not move, so these are the same in every observation.
    """
    x, y, _ = stands = np.array(embodiment.base_pos_w)
    poses = [[np.float32(stands + arm.base_pos), np.float32(arm.base_quat)] for arm in kinematics.arms]
    offsets = [arm.tcp_offset_m for arm in embodiment.arms]
    is_single = len(poses) == 1
    return {
        "state.base": [float(x), float(y), 0.0],
        "state.base_pose": poses[0] if is_single else poses,
        "state.ee_tcp_offset": offsets[0] if is_single else offsets,
    }


class RobotPort:
    """Reads and drives the robot whose compiled names begin with ``prefix``. The caller owns the data.

    A motor's setpoint moves towards its target at the embodiment's greatest joint speed, a gripper's goes at once.
    """

    def __init__(self, model: Any, prefix: str, embodiment: Embodiment) -> None:
        names = [f"{prefix}_{joint}" for joint in embodiment.joints]
        self._qpos = np.array([int(model.joint(name).qposadr[0]) for name in names])
        pairs = [pair for slot in embodiment.slots for pair in _drives(slot)]
        self._motors = np.array([int(model.actuator(f"{prefix}_{motor}").id) for motor, _, _ in pairs])
        self._entries = np.array([entry for _, entry, _ in pairs])
        self._low, self._high = _ranges(model, self._motors)
        speed, timestep_s = embodiment.max_joint_speed_rad_s, float(model.opt.timestep)
        self._stride = np.array([speed * timestep_s if is_slewed else np.inf for *_, is_slewed in pairs])

    def joints(self, data: Any) -> Array:
        """The measured joints in the order of actions; a copy."""
        joints: Array = data.qpos[self._qpos]
        return joints

    def put(self, data: Any, joints: Array) -> None:
        """Place the robot and tell its motors to stay."""
        data.qpos[self._qpos] = joints
        data.ctrl[self._motors] = self._setpoints(joints)

    def ramp(self, data: Any, targets: Array, substeps: int) -> Array:
        """The model's controls for each of the next sub-steps, (substeps, nu), for targets in the order of actions."""
        now = data.ctrl[self._motors]
        strides = self._stride * np.arange(1, substeps + 1)[:, None]
        controls = np.tile(data.ctrl, (substeps, 1))
        controls[:, self._motors] = now + np.clip(self._setpoints(targets) - now, -strides, strides)
        return controls

    def _setpoints(self, joints: Array) -> Array:
        """Within the motors' ranges."""
        setpoints: Array = np.clip(joints[self._entries], self._low, self._high)
        return setpoints


def _drives(slot: ArmSlots) -> list[tuple[str, int, bool]]:
    """Motor, entry of the action, and whether its speed is limited; gripper motors take the gripper's first entries."""
    arm, gripper = slot.arm.actuators, slot.arm.gripper.actuators
    return [(motor, slot.joints.start + index, True) for index, motor in enumerate(arm)] + [
        (motor, slot.gripper.start + index, False) for index, motor in enumerate(gripper)
    ]


def _ranges(model: Any, motors: Any) -> tuple[Array, Array]:
    is_limited = model.actuator_ctrllimited[motors].astype(bool)
    low, high = model.actuator_ctrlrange[motors].T
    return np.where(is_limited, low, -np.inf), np.where(is_limited, high, np.inf)


class GripperPort:
    """Tells which grippers touch which objects. A gripper is the hand's body and all that hangs on it."""

    def __init__(self, scene: CompiledScene, prefix: str, embodiment: Embodiment, names: Iterable[str]) -> None:
        model = scene.model
        self._arms = [arm.name for arm in embodiment.arms]
        arm_of = np.full(model.nbody, -1)
        for index, arm in enumerate(embodiment.arms):
            first = [f"{prefix}_{arm.ee_body}", *(_body_of(model, f"{prefix}_{name}") for name in arm.gripper.joints)]
            for name in first:
                arm_of[_below(model, int(model.body(name).id))] = index
        roots = {one.actor.name: int(model.body(one.body_names[0]).id) for one in scene.placed if one.body_names}
        self._names = list(names)
        object_of_root = np.full(model.nbody, -1)
        object_of_root[[roots[name] for name in self._names]] = np.arange(len(self._names))
        self._arm_of_geom = arm_of[model.geom_bodyid]
        self._object_of_geom = object_of_root[model.body_rootid[model.geom_bodyid]]

    def touched(self, data: Any) -> dict[str, frozenset[str]]:
        """The arms whose grippers touch an object, for those objects that are touched."""
        found: dict[str, set[str]] = {}
        geoms = data.contact.geom
        for one, other in (geoms.T, geoms.T[::-1]):
            pairs = np.stack([self._object_of_geom[one], self._arm_of_geom[other]], axis=1)
            for thing, arm in pairs[(pairs >= 0).all(axis=1)].tolist():
                found.setdefault(self._names[thing], set()).add(self._arms[arm])
        return {name: frozenset(arms) for name, arms in found.items()}


def _body_of(model: Any, joint: str) -> str:
    return str(model.body(int(model.joint(joint).bodyid[0])).name)


def _below(model: Any, body: int) -> list[int]:
    """The body and all that hang on it; a child comes after its parent."""
    found = {body}
    for one in range(body + 1, model.nbody):
        if int(model.body_parentid[one]) in found:
            found.add(one)
    return sorted(found)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an object's numbers are: its seven of ``qpos``, or its row of ``mocap_pos``; and its joints in ``qpos``.

    ``dof`` is the first of a free object's six of ``qvel``.
    """

    free: slice | None
    dof: int
    mocap: int
    joints: Mapping[str, int]


class ObjectPort:
    """Reads and places objects. The caller owns the data."""

    def __init__(self, scene: CompiledScene, names: Mapping[str, Any]) -> None:
        """``names`` has the objects by name, each with its ``joints`` by name."""
        roots = {one.actor.name: one.body_names[0] for one in scene.placed if one.actor.name in names}
        self._places = {name: _find(scene.model, name, roots[name], one.joints) for name, one in names.items()}

    def poses(self, data: Any) -> dict[str, Pose]:
        """Where the objects are in the world."""
        return {name: _pose(data, place) for name, place in self._places.items()}

    def joints(self, data: Any) -> dict[str, dict[str, float]]:
        """Joint positions (rad or m) of those objects that have joints."""
        return {
            name: {joint: float(data.qpos[index]) for joint, index in place.joints.items()}
            for name, place in self._places.items()
            if place.joints
        }

    def moving(self, data: Any) -> frozenset[str]:
        """The free objects that are not at rest."""
        return frozenset(name for name, place in self._places.items() if place.free and _is_moving(data, place.dof))

    def put(self, data: Any, layout: Layout) -> None:
        """Place every object; ValueError when the layout is of other objects."""
        if layout.poses.keys() != self._places.keys():
            raise ValueError(f"the layout has {known(layout.poses)}; the scene has {known(self._places)}")
        for name, place in self._places.items():
            _put(data, place, layout.poses[name])
            for joint, value in layout.joints.get(name, {}).items():
                data.qpos[place.joints[joint]] = value


def _find(model: Any, name: str, root: str, joints: Mapping[str, Any]) -> _Place:
    body = model.body(root)
    mocap = int(body.mocapid[0])
    start = int(model.jnt_qposadr[body.jntadr[0]]) if mocap < 0 else 0
    return _Place(
        free=slice(start, start + 7) if mocap < 0 else None,
        dof=int(body.dofadr[0]),
        mocap=mocap,
        joints={joint: int(model.joint(f"{name}_{joint}").qposadr[0]) for joint in joints},
    )


def _is_moving(data: Any, dof: int) -> bool:
    linear, angular = data.qvel[dof : dof + 3], data.qvel[dof + 3 : dof + 6]
    return bool(linear @ linear > AT_REST_M_S**2 or angular @ angular > AT_REST_RAD_S**2)


def _pose(data: Any, place: _Place) -> Pose:
    if place.free is None:
        return Pose.of(data.mocap_pos[place.mocap].tolist(), data.mocap_quat[place.mocap].tolist())
    numbers = data.qpos[place.free].tolist()
    return Pose.of(numbers[:3], numbers[3:])


def _put(data: Any, place: _Place, pose: Pose) -> None:
    if place.free is None:
        data.mocap_pos[place.mocap], data.mocap_quat[place.mocap] = pose.pos, pose.quat_wxyz
    else:
        data.qpos[place.free] = (*pose.pos, *pose.quat_wxyz)

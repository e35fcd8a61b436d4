"""Forces from outside: the wrenches of a step's window, and the perturbations that hold bodies until released.

Both are written to ``data.xfrc_applied``, which is zero between windows. Perturbations follow MuJoCo's own viewer
(mjv_applyPerturbForce): a spring from a point of the body to a target, damped, both in proportion to the mass that is
felt at the point; the force is worked out anew before every sub-step.
"""

import threading
from math import sqrt
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from urlab.errors import BadValue, MissingField
from urlab.numbers import finite_number, finite_numbers
from urlab_wire.ops.runtime import PerturbRequest
from urlab_wire.ops.stepping import PerturbationBlock

Vector = NDArray[np.float64]
Wrench = NDArray[np.float64]
"""(fx, fy, fz, tx, ty, tz) in the world frame."""

_TINY = 1e-15
_BODY = mujoco.mjtObj.mjOBJ_BODY


class Perturbation:
    """What holds one body for one session; nothing that other threads read changes.

    ``point`` is on the body, in its own frame (m). ``force`` (N) at that point and ``torque`` (N m) are in the world
    frame and None for a drag; ``target`` (m, world) and ``target_quat`` (w, x, y, z) are None for a push.
    """

    def __init__(self, model: Any, body_id: int, session_id: str, request: PerturbRequest) -> None:
        """Check what is asked; MissingField, BadValue or DimMismatch say what is wrong."""
        self.body_id = body_id
        self.body: str = model.body(body_id).name
        self.session_id = session_id
        self.force = _three("force", request.force)
        self.torque = _three("torque", request.torque)
        self.target = _three("target", request.target)
        self.target_quat = _quat(request.target_quat)
        self._check_kind(request)
        own_point = _three("point", request.point)
        self.point: Vector = model.body_ipos[body_id].copy() if own_point is None else own_point
        given = None if request.stiffness is None else _above_zero(request.stiffness)
        self._stiffness: float = model.vis.map.stiffness if given is None else given
        self._turn_stiffness: float = model.vis.map.stiffnessrot if given is None else given
        self._turn_inertia: float = 1 / max(_TINY, model.body_invweight0[body_id, 1])
        self._mass: float | None = None  # that is felt at the point, where the stepping thread took hold of it

    def _check_kind(self, request: PerturbRequest) -> None:
        pushed = self.force is not None or self.torque is not None
        dragged = self.target is not None or self.target_quat is not None
        if pushed and dragged:
            raise BadValue("a perturbation is a push (force, torque) or a drag (target, target_quat), not both at once")
        if not pushed and not dragged:
            raise MissingField("perturb needs force, torque, target or target_quat")
        if pushed and request.stiffness is not None:
            raise BadValue("stiffness is that of the spring of a drag (target, target_quat); a push has none")
        if request.point is not None and self.force is None and self.target is None:
            raise BadValue("point is where a force acts or the spring to a target begins; a torque has no such point")

    def wrench(self, model: Any, data: Any) -> Wrench:
        """What acts on the body's centre of mass in this state; the caller holds the physics lock."""
        wrench = np.zeros(6)
        arm = data.xmat[self.body_id].reshape(3, 3) @ self.point + data.xpos[self.body_id] - data.xipos[self.body_id]
        if self.force is not None:
            wrench[:3] = self.force
            wrench[3:] = _cross(arm, self.force)
        if self.torque is not None:
            wrench[3:] += self.torque
        if self.target is not None or self.target_quat is not None:
            self._add_springs(model, data, arm, wrench)
        return wrench

    def _add_springs(self, model: Any, data: Any, arm: Vector, wrench: Wrench) -> None:
        twist = np.empty(6)  # angular, then linear velocity of the centre of mass, in the world
        mujoco.mj_objectVelocity(model, data, _BODY, self.body_id, twist, 0)
        spin = twist[:3]
        if self.target is not None:
            away = self.target - data.xipos[self.body_id] - arm
            speed = twist[3:] + _cross(spin, arm)
            k, mass = self._stiffness, self._felt_mass(model, data, arm)
            wrench[:3] = mass * (k * away - sqrt(k) * speed)
            wrench[3:] += _cross(arm, wrench[:3])
            distance = sqrt(away @ away)
            if distance > _TINY:  # the spring slows the spin around itself as well
                axis = away / distance
                wrench[3:] -= self._turn_inertia * sqrt(self._turn_stiffness) * (spin @ axis) * axis
        if self.target_quat is not None:
            angle = _rotation_vector(data.xquat[self.body_id], self.target_quat)
            k = self._turn_stiffness
            wrench[3:] += self._turn_inertia * (k * angle - sqrt(k) * spin)

    def _felt_mass(self, model: Any, data: Any, arm: Vector) -> float:
        """Three over the trace of J M^-1 J^T at the point, when the body was taken hold of."""
        if self._mass is None:
            jacobian = np.zeros((3, model.nv))
            mujoco.mj_jac(model, data, jacobian, None, data.xipos[self.body_id] + arm, self.body_id)
            solved = np.empty_like(jacobian)
            mujoco.mj_solveM(model, data, solved, jacobian)
            self._mass = 3.0 / max(_TINY, float(np.sum(jacobian * solved)))
        return self._mass


class Wrenches:
    """Writes ``data.xfrc_applied``. The owner of the physics lock calls what touches the data.

    What holds bodies may be changed and read by any thread: a change is in force from the next sub-step on, also in a
    window that runs already.
    """

    def __init__(self, model: Any, data: Any) -> None:
        self._model = model
        self._data = data
        self._window: list[tuple[int, Wrench]] = []
        self._written = False
        self._changing = threading.Lock()
        self._version = 0
        self.held: tuple[Perturbation, ...] = ()
        """What holds bodies now, one for each body, the newest last. An immutable value."""

        self.pressing = False
        """Whether `press` has to be called before a sub-step."""

    # -- windows of steps ---------------------------------------------------------------------------------------

    def begin_window(self, wrenches: list[tuple[int, Wrench]]) -> None:
        """Apply these until the window ends; an earlier window that has not ended is replaced."""
        if wrenches or self._written:
            self.end_window()
            self._window = wrenches
            self._write_window()

    def press(self) -> None:
        """Before a sub-step: write the window's wrenches, and those that hold bodies in this state."""
        held = self.held
        if self._written:
            self._data.xfrc_applied[:] = 0.0
        self._write_window()
        for one in held:
            self._data.xfrc_applied[one.body_id] += one.wrench(self._model, self._data)
            self._written = True
        if not held:
            with self._changing:
                self.pressing = bool(self.held)

    def end_window(self) -> None:
        """Take all wrenches away."""
        if self._written:
            self._window = []
            self._data.xfrc_applied[:] = 0.0
            self._written = False

    def _write_window(self) -> None:
        for body_id, wrench in self._window:
            self._data.xfrc_applied[body_id] += wrench
            self._written = True

    # -- perturbations ------------------------------------------------------------------------------------------

    def hold(self, perturbation: Perturbation) -> int:
        """Hold a body, instead of what held it before; returns the version. Any thread."""
        with self._changing:
            others = tuple(one for one in self.held if one.body_id != perturbation.body_id)
            self.held = (*others, perturbation)
            self.pressing = True
            self._version += 1
            return self._version

    def release(self, *, body_id: int | None = None, session_id: str | None = None) -> tuple[Perturbation, ...]:
        """Let go of a body, of what a session holds, or of everything; returns what held until now. Any thread."""
        with self._changing:
            gone = tuple(
                one
                for one in self.held
                if body_id in (None, one.body_id) and session_id in (None, one.session_id)
            )  # fmt: skip
            if gone:
                self.held = tuple(one for one in self.held if one not in gone)
                self._version += 1
            return gone

    def blocks(self) -> list[PerturbationBlock]:
        """What holds bodies, for a puppet client to apply to its own data; the caller holds the physics lock."""
        return [
            PerturbationBlock(
                body_id=one.body_id, version=self._version, xfrc=one.wrench(self._model, self._data).tolist()
            )
            for one in self.held
        ]


def refuse_fixed(model: Any, body_id: int) -> None:
    """BadValue for a body that no force can move."""
    if model.body_mocapid[body_id] >= 0:
        name = model.body(body_id).name
        raise BadValue(f"body {name!r} is a mocap body, which no force moves: use set_mocap_pose")
    if model.body_weldid[body_id] == 0:
        raise BadValue(f"body {model.body(body_id).name!r} is fixed to the world: no force moves it")
    if model.body_mocapid[model.body_weldid[body_id]] >= 0:
        raise BadValue(f"body {model.body(body_id).name!r} is fixed to a mocap body: no force moves it")


def _cross(a: Vector, b: Vector) -> Vector:
    """The vector product; numpy's takes twenty times as long."""
    product = np.empty(3)
    mujoco.mju_cross(product, a, b)
    return product


def _rotation_vector(from_quat_wxyz: Vector, to_quat_wxyz: Vector) -> Vector:
    """The rotation from one orientation to another: axis times angle (rad), in the world."""
    back, between, vector = np.empty(4), np.empty(4), np.empty(3)
    mujoco.mju_negQuat(back, from_quat_wxyz)
    mujoco.mju_mulQuat(between, to_quat_wxyz, back)
    mujoco.mju_quat2Vel(vector, between, 1.0)
    return vector


def _three(field: str, numbers: list[float] | None) -> Vector | None:
    return None if numbers is None else finite_numbers(field, numbers, 3)


def _quat(numbers: list[float] | None) -> Vector | None:
    if numbers is None:
        return None
    quat = finite_numbers("target_quat", numbers, 4)
    length = float(np.linalg.norm(quat))
    if length < _TINY:
        raise BadValue("target_quat must not be all zeros: that is no rotation")
    return quat / length


def _above_zero(value: float) -> float:
    number = finite_number("stiffness", value)
    if number <= 0:
        raise BadValue(f"stiffness must be above zero, but is {value!r}")
    return number

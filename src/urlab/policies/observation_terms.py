"""What a policy may see, each by the name that policy files use.

A term registers by being declared. Vectors of the base are in the frame of the base.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from urlab_client import URLabClient
from urlab_client.handles.articulation import URLabArticulation

Array = NDArray[np.float64]

TERMS: dict[str, type["ObservationTerm"]] = {}
"""Every term by its name."""


@dataclass(frozen=True, slots=True)
class PolicyView:
    """What terms read: the robot as the last reply told it, and what the policy did last.

    ``joints`` and ``joint_velocities`` are those of the policy's joints, ``defaults`` their offsets. ``elapsed_s`` is
    simulated time since the policy began.
    """

    client: URLabClient
    robot: URLabArticulation
    joints: Array
    joint_velocities: Array
    defaults: Array
    last_action: Array
    elapsed_s: float


class ObservationTerm(ABC):
    """One term. ``options`` are the keys of the policy file that it `needs`."""

    needs: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, *, name: str, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        if name in TERMS:
            raise TypeError(f"the term {name!r} is already {TERMS[name].__qualname__}")
        TERMS[name] = cls

    def __init__(self, **options: Any) -> None:
        self._options = options

    @abstractmethod
    def of(self, view: PolicyView) -> Array:
        """Its numbers now."""


class BaseLinearVelocity(ObservationTerm, name="base_linear_velocity"):
    """m/s (3)."""

    def of(self, view: PolicyView) -> Array:
        """Of the robot's free joint."""
        return view.robot.root_lin_vel_b


class BaseAngularVelocity(ObservationTerm, name="base_angular_velocity"):
    """rad/s (3)."""

    def of(self, view: PolicyView) -> Array:
        """Of the robot's free joint."""
        return view.robot.root_ang_vel_b


class ProjectedGravity(ObservationTerm, name="projected_gravity"):
    """The direction of gravity (3): (0, 0, -1) on a level base."""

    def of(self, view: PolicyView) -> Array:
        """Down, as the base sees it."""
        return view.robot.projected_gravity_b


class Command(ObservationTerm, name="command"):
    """The commanded vx, vy and yaw rate (3), m/s and rad/s."""

    def of(self, view: PolicyView) -> Array:
        """As set_twist, a ROS ``cmd_vel``, keys or the page have set it."""
        linear, angular = view.robot.twist_linear, view.robot.twist_angular
        return np.array([linear[0], linear[1], angular[2]])


class JointPositions(ObservationTerm, name="joint_positions"):
    """Of the policy's joints, from the offsets of its actions (n)."""

    def of(self, view: PolicyView) -> Array:
        """Relative to the defaults."""
        return view.joints - view.defaults


class JointVelocities(ObservationTerm, name="joint_velocities"):
    """Of the policy's joints, rad/s or m/s (n)."""

    def of(self, view: PolicyView) -> Array:
        """As they are."""
        return view.joint_velocities


class LastAction(ObservationTerm, name="last_action"):
    """What the network said last, before scale and offset (n); zeros at first."""

    def of(self, view: PolicyView) -> Array:
        """As it was."""
        return view.last_action


class Clock(ObservationTerm, name="clock"):
    """Sine and cosine of a phase that turns once per ``period`` seconds of simulated time (2)."""

    needs = ("period",)

    def of(self, view: PolicyView) -> Array:
        """It begins at zero with the policy."""
        angle = 2.0 * np.pi * view.elapsed_s / self._options["period"]
        return np.array([np.sin(angle), np.cos(angle)])


class SensorValue(ObservationTerm, name="sensor"):
    """A sensor of the robot, by its short name in ``sensor``."""

    needs = ("sensor",)

    def of(self, view: PolicyView) -> Array:
        """Its latest value; zeros before there is one."""
        sensor = view.robot.sensors[self._options["sensor"]]
        latest = sensor.latest
        return np.zeros(sensor.dim) if latest is None else latest


class EntityPosition(ObservationTerm, name="entity_position"):
    """Where a thing of the scene is, from the robot's root and in its frame, metres (3); its name is in ``entity``."""

    needs = ("entity",)

    def of(self, view: PolicyView) -> Array:
        """Of its root body."""
        apart = view.client.entities[self._options["entity"]].root_pos_w - view.robot.root_pos_w
        w, x, y, z = view.robot.root_quat_w
        axis = np.array([-x, -y, -z])  # the turn back
        twice = 2.0 * np.cross(axis, apart)
        turned: Array = apart + w * twice + np.cross(axis, twice)
        return turned

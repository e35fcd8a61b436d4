"""What watching a server shows at one moment, as plain data."""

from collections.abc import Mapping
from dataclasses import dataclass

from urlab.cli.watch.rates import Rate
from urlab_client import URLabArticulation
from urlab_client.types import PIEStatus
from urlab_wire.ops.stepping import ArticulationState

Numbers = list[float]


@dataclass(frozen=True, slots=True)
class JointReading:
    """Position and velocity: one number each for hinges (rad) and slides (m), several for ball and free joints."""

    pos: Numbers
    vel: Numbers


@dataclass(frozen=True, slots=True)
class RobotReading:
    """One robot. ``twist`` is the commanded vx, vy (m/s) and yaw rate (rad/s), None without a twist controller."""

    joints: dict[str, JointReading]
    sensors: dict[str, Numbers]
    twist: tuple[float, float, float] | None


@dataclass(frozen=True, slots=True)
class CameraReading:
    """One camera; ``resolution`` is (width, height)."""

    mode: str
    resolution: tuple[int, int]
    rate: Rate


@dataclass(frozen=True, slots=True)
class Reading:
    """A whole scene. Rates are over the last ``seconds``; ``status`` is None while the server does not answer."""

    endpoint: str
    state_endpoint: str
    version: str
    status: PIEStatus | None
    interruptions: int
    seconds: float
    sim_time_s: float | None
    real_time_factor: float | None
    topics: dict[str, Rate]
    robots: dict[str, RobotReading]
    cameras: dict[str, CameraReading]
    problem: str | None


def fits(robots: Mapping[str, URLabArticulation], states: Mapping[str, ArticulationState]) -> bool:
    """Whether these states are those of these robots."""
    sizes = {name: sum(joint.qpos_dim for joint in robot.joints.values()) for name, robot in robots.items()}
    return sizes == {name: len(state.qpos) for name, state in states.items()}


def read_robot(robot: URLabArticulation, state: ArticulationState) -> RobotReading:
    """A robot's part of the state, with its names."""
    joints = {
        name: JointReading(
            state.qpos[joint.qpos_local_offset : joint.qpos_local_offset + joint.qpos_dim],
            state.qvel[joint.qvel_local_offset : joint.qvel_local_offset + joint.qvel_dim],
        )
        for name, joint in robot.joints.items()
    }
    twist = None if state.twist is None else (state.twist.linear[0], state.twist.linear[1], state.twist.angular[2])
    return RobotReading(joints, state.sensors or {}, twist)

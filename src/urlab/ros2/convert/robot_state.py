"""One robot's part of a state, checked against the scene that the converters were made for."""

from collections.abc import Sequence

from urlab_client import URLabArticulation
from urlab_wire.ops.stepping import ArticulationState
from urlab_wire.stream_messages import StateFull


class SceneChanged(RuntimeError):
    """A state does not fit the handshake: the server plays another scene now. ``discover()`` and begin anew."""


class RobotState:
    """Finds one robot's block in states. Immutable; any thread."""

    def __init__(self, robot: URLabArticulation) -> None:
        self.prefix = robot.prefix
        self._n_qpos = sum(joint.qpos_dim for joint in robot.joints.values())
        self._n_qvel = sum(joint.qvel_dim for joint in robot.joints.values())

    def of(self, state: StateFull) -> ArticulationState:
        """The robot's block; `SceneChanged` when there is none, or one of another shape."""
        block = state.per_articulation.get(self.prefix)
        if block is None:
            raise SceneChanged(f"no robot {self.prefix!r}; the state has {', '.join(state.per_articulation) or 'none'}")
        if len(block.qpos) != self._n_qpos or len(block.qvel) != self._n_qvel:
            raise SceneChanged(
                f"{self.prefix!r} has {len(block.qpos)} qpos and {len(block.qvel)} qvel, "
                f"not {self._n_qpos} and {self._n_qvel} as in the handshake"
            )
        return block

    def sensor(self, state: StateFull, name: str, size: int) -> Sequence[float]:
        """A sensor's values; `SceneChanged` when they are not there, or not so many."""
        values = (self.of(state).sensors or {}).get(name)
        if values is None or len(values) != size:
            got = "no values" if values is None else f"{len(values)} values"
            raise SceneChanged(f"sensor {name!r} of {self.prefix!r} has {got}, not {size} as in the handshake")
        return values

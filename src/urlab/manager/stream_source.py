"""What a running scene gives to the streams, and takes from them: setpoints, gains and twists, in live mode only."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from urlab.compile import CompiledArticulation
from urlab.control import gains_patch
from urlab.errors import OpTimeout, UrlabError
from urlab.manager.articulation import RunningArticulation
from urlab.manager.manager import Manager
from urlab.manager.state_rows import StateRows, Wanted
from urlab_wire.enums import ControlSource, ObservationLevel, RowLayout, StepMode
from urlab_wire.rows import Message, unpack_twist
from urlab_wire.state_frame import StateFrame
from urlab_wire.stream_messages import ActuatorList, CameraEndpoint, StateFull, pack_info
from urlab_wire.streams import ControlOutcome, NotFiniteError, StreamError, unpack_control

_TURN_S = 1.0

_Command = Callable[[], ControlOutcome]
"""What a message asks for, understood and checked; the owner of the physics lock runs it."""


class StreamControl:
    """Takes messages for the robots of one running scene. A message that is wrong anywhere changes nothing."""

    def __init__(self, manager: Manager) -> None:
        self._manager = manager
        self._robots = {one.prefix.encode(): _Robot(one) for one in manager.articulations.values()}

    def take(self, messages: Sequence[tuple[bytes, bytes]]) -> list[ControlOutcome]:
        """Stage what these (topic, payload) ask for, in their order, before the next step; one outcome each.

        Any thread may call it. Messages are read before the lock is taken, and all of them staged in one turn.
        """
        if not self._is_live:
            return [ControlOutcome.NOT_LIVE] * len(messages)
        commands = [self._read(topic, payload) for topic, payload in messages]
        try:
            with self._manager.engine.locked(_TURN_S):
                blocked = None if self._is_live else ControlOutcome.NOT_LIVE
                return [one if isinstance(one, ControlOutcome) else blocked or one() for one in commands]
        except OpTimeout:
            return [ControlOutcome.BUSY] * len(messages)

    @property
    def _is_live(self) -> bool:
        return self._manager.mode is StepMode.LIVE

    def _read(self, topic: bytes, payload: bytes) -> "_Command | ControlOutcome":
        prefix, _, word = topic.rstrip(b" ").rpartition(b"/")
        read = _WORDS.get(word)
        if read is None:
            return ControlOutcome.UNKNOWN_TOPIC
        robot = self._robots.get(prefix)
        return ControlOutcome.UNKNOWN_ROBOT if robot is None else read(robot, payload)


class _Robot:
    """One robot as the stream sees it: its controls by their index in ``data.ctrl``, mostly the actuator's id."""

    def __init__(self, running: RunningArticulation) -> None:
        self._running = running
        self._position = {control.id: i for i, control in enumerate(running.compiled.controls)}

    def read_control(self, payload: bytes) -> "_Command | ControlOutcome":
        """Setpoints by actuator id; an id of another robot is as wrong as one of none."""
        try:
            values = unpack_control(payload)
        except NotFiniteError:
            return ControlOutcome.NOT_FINITE
        except StreamError:
            return ControlOutcome.MALFORMED
        if not values.keys() <= self._position.keys():
            return ControlOutcome.UNKNOWN_ID
        positions = [self._position[actuator] for actuator in values]
        return lambda: self._stage(list(values.values()), positions)

    def read_gains(self, payload: bytes) -> "_Command | ControlOutcome":
        """Gains by joint, for the controller to judge."""
        try:
            patch = gains_patch(payload)
        except (UrlabError, ValueError, RecursionError):
            return ControlOutcome.BAD_JSON
        return lambda: self._configure(patch)

    def read_twist(self, payload: bytes) -> "_Command | ControlOutcome":
        """(vx, vy, yaw rate)."""
        try:
            velocity = unpack_twist(payload)
        except StreamError:
            return ControlOutcome.MALFORMED
        if not all(math.isfinite(number) for number in velocity):
            return ControlOutcome.NOT_FINITE
        return lambda: self._drive(*velocity)

    def _drive(self, vx: float, vy: float, yaw_rate: float) -> ControlOutcome:
        if self._running.twist is None:
            return ControlOutcome.REFUSED
        if not self._follows_the_wire:
            return ControlOutcome.OTHER_SOURCE
        self._running.twist.set([vx, vy], [0.0, 0.0, yaw_rate])
        return ControlOutcome.APPLIED

    def _stage(self, values: list[float], positions: list[int]) -> ControlOutcome:
        self._running.staged.stage(values, positions, source=ControlSource.ZMQ)
        return ControlOutcome.APPLIED if self._follows_the_wire else ControlOutcome.OTHER_SOURCE

    def _configure(self, patch: dict[str, dict[str, float]]) -> ControlOutcome:
        if self._running.controller is None:
            return ControlOutcome.REFUSED
        if not self._follows_the_wire:
            return ControlOutcome.OTHER_SOURCE
        try:
            self._running.controller.configure(patch)
        except (UrlabError, ValueError, RecursionError):
            return ControlOutcome.REFUSED
        return ControlOutcome.APPLIED

    @property
    def _follows_the_wire(self) -> bool:
        return self._running.staged.source is ControlSource.ZMQ


_WORDS: dict[bytes, Callable[[_Robot, bytes], "_Command | ControlOutcome"]] = {
    b"control": _Robot.read_control,
    b"set_gains": _Robot.read_gains,
    b"set_twist": _Robot.read_twist,
}
"""What the last part of a topic means."""


_UNLIMITED = (-100.0, 100.0)
"""What the info message says of an actuator without a control range."""

_STATE_FRAME = StateFrame(StateFull)


class StreamSource:
    """One running scene, as the publishers and the control socket know it."""

    def __init__(self, manager: Manager, layout: RowLayout = RowLayout.V1) -> None:
        self._manager = manager
        self._engine = manager.engine
        self._rows = StateRows(manager.scene, manager.arrays, manager.engine.data, layout)
        self._control = StreamControl(manager)

    @property
    def is_live(self) -> bool:
        """Whether physics runs by itself, so that rows are sent and controls taken."""
        return self._manager.mode is StepMode.LIVE

    def listen(self, hook: Callable[[], None]) -> None:
        """Call ``hook`` on the stepping thread, under the physics lock, whenever the state is published."""
        self._engine.on_publish.append(hook)

    def unlisten(self, hook: Callable[[], None]) -> None:
        """Call it no more. This does not wait for a publication that is under way, which may be a long step's."""
        self._engine.on_publish = [one for one in self._engine.on_publish if one != hook]

    def locked(self, timeout_s: float) -> Any:
        """The physics lock, as a context manager; OpTimeout when it is not to be had in time."""
        return self._engine.locked(timeout_s)

    # -- the state (the caller holds the lock) ------------------------------------------------------------------

    def select_rows(self, wanted: Wanted) -> Callable[[], list[Message]] | None:
        """A function that gives the rows of the topics that are wanted; None when there are none.

        Any thread may select; the function itself is for the owner of the physics lock.
        """
        selection = self._rows.select(wanted)
        return None if selection is None else selection.take

    def state(self) -> bytes:
        """The payload of ``state/full``. MuJoCo's warnings are left for the replies."""
        blocks = self._manager.packed.pack(ObservationLevel.STANDARD)
        return _STATE_FRAME.build(self._engine.data.time, self._manager.counter.of_driver(), time.time_ns(), blocks, {})

    # -- control and info (any thread) --------------------------------------------------------------------------

    def control(self, messages: Sequence[tuple[bytes, bytes]]) -> list[ControlOutcome]:
        """Take messages of the control socket, (topic, payload) each; what became of them."""
        return self._control.take(messages)

    def control_hint(self, topic: bytes, payload: bytes) -> str:
        """Which actuator ids a control message asks for, and which its robot has; empty when it is no such message."""
        robot = self._manager.articulations.get(topic.rpartition(b"/")[0].decode(errors="replace"))
        try:
            asked = sorted(unpack_control(payload))
        except StreamError:
            return ""
        exist = [] if robot is None else [one.id for one in robot.compiled.actuators]
        return f": it asks for actuators {_listed(asked)}, the robot has {_listed(exist)} (the info stream names them)"

    def info(self, cameras: Mapping[str, str]) -> list[bytes]:
        """The info message of every robot. ``cameras`` maps names to the endpoints where they stream."""
        camera_list = [CameraEndpoint(name, endpoint) for name, endpoint in cameras.items()]
        return [pack_info(self._actuators(robot, camera_list)) for robot in self._manager.scene.articulations]

    def _actuators(self, robot: CompiledArticulation, cameras: list[CameraEndpoint]) -> ActuatorList:
        model = self._engine.model
        ids = [one.id for one in robot.controls]
        ranges = [model.actuator_ctrlrange[one] if model.actuator_ctrllimited[one] else _UNLIMITED for one in ids]
        return ActuatorList(
            robot=robot.prefix,
            names=[one.name for one in robot.controls],
            ids=ids,
            mins=[float(low) for low, _ in ranges],
            maxs=[float(high) for _, high in ranges],
            camera_list=cameras,
        )


def _listed(ids: Sequence[int]) -> str:
    shown = ", ".join(map(str, ids[:_SHOWN_IDS]))
    return f"{shown}, ... ({len(ids)} in all)" if len(ids) > _SHOWN_IDS else shown or "none"


_SHOWN_IDS = 20

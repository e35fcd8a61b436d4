"""What a running scene gives to the streams, and takes from them."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from urlab.compile import CompiledArticulation
from urlab.manager.manager import Manager
from urlab.manager.state_rows import StateRows, Wanted
from urlab.manager.stream_control import StreamControl
from urlab_wire.enums import ObservationLevel, RowLayout, StepMode
from urlab_wire.rows import Message
from urlab_wire.state_frame import StateFrame
from urlab_wire.stream_messages import ActuatorList, CameraEndpoint, StateFull, pack_info
from urlab_wire.streams import ControlOutcome

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
        """The payload of ``state/full``. MuJoCo's warnings stay with the replies, which a stream must not rob."""
        blocks = self._manager.packed.pack(ObservationLevel.STANDARD)
        return _STATE_FRAME.build(self._engine.data.time, self._manager.counter.total, time.time_ns(), blocks, {})

    # -- control and info (any thread) --------------------------------------------------------------------------

    def control(self, messages: Sequence[tuple[bytes, bytes]]) -> list[ControlOutcome]:
        """Take messages of the control socket, (topic, payload) each; what became of them."""
        return self._control.take(messages)

    def info(self, cameras: Mapping[str, str]) -> list[bytes]:
        """The info message of every robot. ``cameras`` maps names to the endpoints where they stream."""
        camera_list = [CameraEndpoint(name, endpoint) for name, endpoint in cameras.items()]
        return [pack_info(self._actuators(robot, camera_list)) for robot in self._manager.scene.articulations]

    def _actuators(self, robot: CompiledArticulation, cameras: list[CameraEndpoint]) -> ActuatorList:
        model = self._engine.model
        ids = [one.id for one in robot.actuators]
        ranges = [model.actuator_ctrlrange[one] if model.actuator_ctrllimited[one] else _UNLIMITED for one in ids]
        return ActuatorList(
            robot=robot.prefix,
            names=[one.name for one in robot.actuators],
            ids=ids,
            mins=[float(low) for low, _ in ranges],
            maxs=[float(high) for _, high in ranges],
            camera_list=cameras,
        )

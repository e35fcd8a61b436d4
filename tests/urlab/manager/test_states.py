"""Saved states: what a controller remembers is part of them. What they mean to a client is in `tests/compliance`."""

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from urlab.control import Controller
from urlab.errors import BadValue
from urlab.manager import Manager, View
from urlab_wire.ops.stepping import StepRequest


class Integrating(Controller):
    """Pushes with the sum of all setpoints so far."""

    kind = "integrating"

    def __init__(self) -> None:
        self.sum = 0.0

    def params(self) -> dict[str, Any]:
        return {}

    def schema(self) -> dict[str, Any]:
        return {}

    def configure(self, patch: Mapping[str, Any]) -> None:
        pass

    def apply(self, model: Any, data: Any, setpoints: Any) -> None:
        self.sum += float(setpoints[0])
        data.ctrl[0] = self.sum

    def memory(self) -> bytes:
        return struct.pack("<d", self.sum)

    def remember(self, memory: bytes) -> None:
        (self.sum,) = struct.unpack("<d", memory)


def push(manager: Manager) -> Any:
    manager.step(StepRequest(n_steps=50), View())
    return manager.engine.data.qpos.copy()


def test_a_controller_goes_on_from_what_it_remembered(manager: Manager) -> None:
    robot = manager.articulation("hopper")
    robot.controller = Integrating()
    robot.staged.stage([0.01])
    push(manager)
    _, state = manager.save_state()
    future = push(manager)
    assert robot.controller.sum == pytest.approx(1.0)
    manager.restore_state(state, View())
    assert robot.controller.sum == pytest.approx(0.5)
    assert np.array_equal(push(manager), future)


def test_a_memory_that_no_controller_wants_is_refused(manager: Manager) -> None:
    robot = manager.articulation("hopper")
    robot.controller = Integrating()
    _, state = manager.save_state()
    robot.controller = None
    before = manager.engine.data.qpos.copy()
    with pytest.raises(BadValue, match="controller"):
        manager.restore_state(state, View())
    assert np.array_equal(manager.engine.data.qpos, before)

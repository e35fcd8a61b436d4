"""The controller that adds nothing."""

from collections.abc import Mapping
from typing import Any

from urlab.compile.compiled_scene import CompiledArticulation
from urlab.control.controller import Controller, Float64Array, index_of
from urlab.errors import ControllerSchemaViolation, known


class PassthroughController(Controller, kind="passthrough"):
    """Setpoints are actuator signals as they are. It has no params."""

    def __init__(self, articulation: CompiledArticulation, params: Mapping[str, Any]) -> None:
        self._ctrl = index_of([actuator.id for actuator in articulation.actuators])
        self.configure(params)

    def params(self) -> dict[str, Any]:
        """Empty: nothing can be configured."""
        return {}

    def schema(self) -> dict[str, Any]:
        """Empty: nothing can be configured."""
        return {}

    def configure(self, patch: Mapping[str, Any]) -> None:
        """Accept an empty patch only."""
        if patch:
            raise ControllerSchemaViolation(f"a passthrough controller has no params; the patch has {known(patch)}")

    def apply(self, model: Any, data: Any, setpoints: Float64Array) -> None:  # noqa: ARG002
        """Copy the setpoints to ``data.ctrl``."""
        data.ctrl[self._ctrl] = setpoints

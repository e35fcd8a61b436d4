"""A robot while it is simulated: its staged controls, its controller, its twist."""

from typing import Any

import numpy as np

from urlab.compile import CompiledArticulation
from urlab.control import Controller, StagedControl, TwistCommand, make_controller
from urlab_wire.enums import ControlMode


class RunningArticulation:
    """One articulation of a running scene. The owner of the physics lock calls everything here."""

    def __init__(self, compiled: CompiledArticulation, twist: TwistCommand) -> None:
        self.compiled = compiled
        self.staged = StagedControl(compiled)
        self.controller: Controller | None = make_controller(compiled)
        self.twist = twist if compiled.sidecar.twist else None
        self.bypass_controller = False
        self._ctrl_ids = np.array([control.id for control in compiled.controls], dtype=np.intp)
        self._body_ids = {body.name: body.id for body in compiled.bodies}
        self._body_ids |= {body.short: body.id for body in compiled.bodies}

    @property
    def prefix(self) -> str:
        """The actor's name, which begins the compiled names of everything in it."""
        return self.compiled.prefix

    @property
    def default_control_mode(self) -> ControlMode:
        """What a step's ctrl means when the step does not say."""
        return ControlMode.RAW if self.controller is None else ControlMode.UE_CONTROLLER

    def body_id(self, name: str) -> int | None:
        """The body of that short or compiled name, or None."""
        return self._body_ids.get(name)

    def stage_from(self, ctrl: Any) -> None:
        """Stage what a full ``ctrl`` array holds for this robot, replacing what was staged."""
        self.staged.clear(ctrl[self._ctrl_ids])

    @property
    def follows_state(self) -> bool:
        """Whether its ``data.ctrl`` may change between the sub-steps of a window."""
        return self.controller is not None and not self.bypass_controller and self.controller.follows_state

    def apply_control(self, model: Any, data: Any) -> None:
        """Turn the staged setpoints into ``data.ctrl``, before a sub-step."""
        if self.controller is None or self.bypass_controller:
            self.staged.write(data)
        else:
            self.controller.apply(model, data, self.staged.active)


def go_to_start(compiled: CompiledArticulation, model: Any, data: Any, key: int | None = None) -> None:
    """Put a robot into a keyframe, or that which its level names: joints, controls, activations, mocap bodies.

    Of the times of several robots' keyframes the latest counts.
    """
    key = compiled.start_key if key is None else key
    if key is None:
        return
    for joint in compiled.joints:
        data.qpos[joint.qpos] = model.key_qpos[key, joint.qpos]
        data.qvel[joint.qvel] = model.key_qvel[key, joint.qvel]
    for control in compiled.controls:
        data.ctrl[control.id] = model.key_ctrl[key, control.id]
    for actuator in compiled.actuators:
        first, count = int(model.actuator_actadr[actuator.id]), int(model.actuator_actnum[actuator.id])
        data.act[first : first + count] = model.key_act[key, first : first + count]
    for mocap in (int(model.body_mocapid[body.id]) for body in compiled.bodies):
        if mocap >= 0:
            data.mocap_pos[mocap] = model.key_mpos[key].reshape(-1, 3)[mocap]
            data.mocap_quat[mocap] = model.key_mquat[key].reshape(-1, 4)[mocap]
    data.time = max(data.time, float(model.key_time[key]))

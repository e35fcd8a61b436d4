"""The two shapes of a step request."""

from collections.abc import Iterable, Mapping
from typing import Any

import mujoco

from urlab_client.enums import StepMode, wire
from urlab_client.handles.articulation import URLabArticulation
from urlab_client.handles.entity import URLabEntity

Cameras = bool | Mapping[str, str]


def drive_request(articulations: Iterable[URLabArticulation], entities: Iterable[URLabEntity]) -> dict[str, Any]:
    """What direct and live steps send: every articulation's setpoints, and the wrenches that wait."""
    commands = {one.prefix: one.command() for one in articulations}
    for entity in entities:
        if entity._pending_xfrc:
            commands[entity.name] = {"xfrc_applied": entity._take_xfrc()}
    return {"per_articulation": commands}


def puppet_request(model: Any, data: Any, articulations: Iterable[URLabArticulation], n_steps: int) -> dict[str, Any]:
    """Step the local data ``n_steps`` times (0 = not at all), with the setpoints that changed, and send its state."""
    for one in articulations:
        one.write_ctrl(data, changed_only=True)
    if n_steps > 0:
        mujoco.mj_step(model, data, nstep=n_steps)
    state = {name: getattr(data, name).tolist() for name in ("qpos", "qvel", "ctrl")}
    return {"mode": StepMode.PUPPET.value, "time": float(data.time), **state, "per_articulation": {}}


def cameras_field(include_cameras: Cameras) -> bool | dict[str, str]:
    """``include_cameras`` as it travels."""
    if isinstance(include_cameras, Mapping):
        return {name: wire(timing) for name, timing in include_cameras.items()}
    return bool(include_cameras)

"""What a step request holds."""

from collections.abc import Iterable, Mapping
from typing import Any

import mujoco

from urlab_client.enums import ObservationLevel, coerce, wire
from urlab_client.handles.articulation import URLabArticulation
from urlab_client.handles.entity import URLabEntity

Cameras = bool | Mapping[str, str]

_LEVELS: Mapping[str, str] = {level.value: level.value for level in ObservationLevel}


def commands(
    articulations: Mapping[str, URLabArticulation], entities: Iterable[URLabEntity], *, changed_only: bool = False
) -> dict[str, Any]:
    """What direct and live steps send: every articulation's setpoints, and the wrenches that wait.

    With ``changed_only`` those articulations say nothing to which nobody has told anything new here.
    """
    told = {prefix: one.command() for prefix, one in articulations.items() if not changed_only or one.has_news}
    for entity in entities:
        if entity._pending_xfrc:
            told[entity.name] = {"xfrc_applied": entity._take_xfrc()}
    return told


def puppet_state(model: Any, data: Any, articulations: Iterable[URLabArticulation], n_steps: int) -> dict[str, Any]:
    """Step the local data ``n_steps`` times (0 = not at all), with the setpoints that changed; returns its state."""
    for one in articulations:
        one.write_ctrl(data, changed_only=True)
    if n_steps > 0:
        mujoco.mj_step(model, data, nstep=n_steps)
    vectors = {name: getattr(data, name).tolist() for name in ("qpos", "qvel", "ctrl")}
    return {"time": float(data.time), **vectors}


def level_word(observations: str) -> str:
    """The plain word of an observation level."""
    known = _LEVELS.get(observations) if isinstance(observations, str) else None
    return known or coerce(ObservationLevel, observations).value


def cameras_field(include_cameras: Cameras) -> bool | dict[str, str]:
    """``include_cameras`` as it travels."""
    if include_cameras is False or not isinstance(include_cameras, Mapping):
        return bool(include_cameras)
    return {name: wire(timing) for name, timing in include_cameras.items()}

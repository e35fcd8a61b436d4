"""Helpers for the robot tests: composing actors into one model, and driving the walking robot."""

import tomllib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import mujoco
import numpy as np
import pytest

from urlab.robots import level_path, model_path

Actors = Iterable[Mapping[str, Any]]
LEGS = tuple(f"{leg}_{part}" for leg in ("FL", "FR", "RL", "RR") for part in ("hip", "thigh", "calf"))


def compose_actors(actors: Actors) -> mujoco.MjModel:
    """Attach every actor's model under its own prefix, with the options of the first articulated one."""
    root = mujoco.MjSpec()
    options_taken = False
    for actor in actors:
        child = mujoco.MjSpec.from_file(str(model_path(actor["blueprint"])))
        if child.actuators and not options_taken:
            for field in ("timestep", "integrator", "cone", "impratio"):
                setattr(root.option, field, getattr(child.option, field))
            options_taken = True
        x, y, z, w = actor.get("rotation_quat", (0.0, 0.0, 0.0, 1.0))
        frame = root.worldbody.add_frame(pos=actor["location"], quat=[w, x, y, z])
        root.attach(child, prefix=actor["name"] + "_", frame=frame)
    return root.compile()


class LegDriver:
    """The walking robot's joint controller, fed with the gains its sidecar gives."""

    def __init__(self, model: mujoco.MjModel, prefix: str = "") -> None:
        sidecar = model_path("quadruped").with_name("quadruped.urlab.toml")
        self.gains = tomllib.loads(sidecar.read_text())["controller"]["params"]
        names = [prefix + leg for leg in LEGS]
        self.qpos = np.array([model.joint(name).qposadr[0] for name in names])
        self.qvel = np.array([model.joint(name).dofadr[0] for name in names])
        self.ctrl = np.array([model.actuator(name).id for name in names])
        self.home = model.qpos0[self.qpos].copy()

    def apply(self, data: mujoco.MjData) -> None:
        spring = self.gains["default_kp"] * (self.home - data.qpos[self.qpos])
        torque = spring - self.gains["default_kv"] * data.qvel[self.qvel]
        limit = self.gains["default_torque_limit"]
        data.ctrl[self.ctrl] = np.clip(torque, -limit, limit)


@pytest.fixture
def compose() -> Callable[[Actors], mujoco.MjModel]:
    return compose_actors


@pytest.fixture
def drive_legs() -> type[LegDriver]:
    return LegDriver


@pytest.fixture(scope="module")
def demo_level() -> dict[str, Any]:
    return tomllib.loads(level_path("demo").read_text())


@pytest.fixture(scope="module")
def demo_model(demo_level: dict[str, Any]) -> mujoco.MjModel:
    return compose_actors(demo_level["actors"])

"""Physics: the only owner of MjModel and MjData. It knows nothing of actors or robots."""

from urlab.physics.engine import (
    MUJOCO_VERSION,
    MUJOCO_VERSION_INT,
    QUICK_STEP_S,
    Engine,
    give_memory_back,
    max_worker_threads,
)
from urlab.physics.loop import PhysicsLoop
from urlab.physics.snapshot import Snapshot

__all__ = [
    "MUJOCO_VERSION",
    "MUJOCO_VERSION_INT",
    "QUICK_STEP_S",
    "Engine",
    "PhysicsLoop",
    "Snapshot",
    "give_memory_back",
    "max_worker_threads",
]

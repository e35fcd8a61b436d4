"""Physics: the only owner of MjModel and MjData. It knows nothing of actors or robots.

`engine` has model, data and the physics lock; `loop` is the thread of live mode; `snapshot` is a copy of the state for
other threads; `options`, `keyframes`, `contacts` and `warnings` are what clients may set and read of them.
"""

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

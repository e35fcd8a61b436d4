"""Physics: the only owner of the MjModel and MjData of a running scene. It knows nothing of actors or robots.

`engine` has model, data, the physics lock and MuJoCo's warnings; `loop` is the thread of live mode; `snapshot` is a
copy of the state for other threads; `options` are what clients may set, `queries` what they may ask (contacts,
keyframes); `sleeping` says which bodies rest and are left out; `callbacks` are functions of plugins that run with each
sub-step; `batch` is many simulations of one model. `parameters` are what may change in a running model, `model_changes`
changes it and takes it back; `start_state` and `disturbances` are what else a randomised reset sets.
"""

from urlab.physics.callbacks import NO_CALLBACKS, StepCallback, StepCallbacks
from urlab.physics.engine import (
    MUJOCO_VERSION,
    MUJOCO_VERSION_INT,
    QUICK_STEP_S,
    Engine,
    give_memory_back,
    max_worker_threads,
)
from urlab.physics.loop import LoopClock, PhysicsLoop
from urlab.physics.snapshot import Snapshot

__all__ = [
    "MUJOCO_VERSION",
    "MUJOCO_VERSION_INT",
    "NO_CALLBACKS",
    "QUICK_STEP_S",
    "Engine",
    "LoopClock",
    "PhysicsLoop",
    "Snapshot",
    "StepCallback",
    "StepCallbacks",
    "give_memory_back",
    "max_worker_threads",
]

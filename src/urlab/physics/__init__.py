"""Physics: the only owner of MjModel and MjData. It knows nothing of actors or robots."""

from urlab.physics.engine import QUICK_STEP_S, Engine, max_worker_threads
from urlab.physics.loop import PhysicsLoop
from urlab.physics.snapshot import Snapshot

__all__ = ["QUICK_STEP_S", "Engine", "PhysicsLoop", "Snapshot", "max_worker_threads"]

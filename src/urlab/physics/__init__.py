"""Physics: the only owner of MjModel and MjData. It knows nothing of actors or robots."""

from urlab.physics.engine import Engine, max_worker_threads
from urlab.physics.loop import PhysicsLoop
from urlab.physics.snapshot import Snapshot

__all__ = ["Engine", "PhysicsLoop", "Snapshot", "max_worker_threads"]

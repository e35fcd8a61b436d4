"""The edited world: the level that clients build, apart from the one that is being simulated."""

from urlab.authoring.actor_index import Placed
from urlab.authoring.imports import Importer
from urlab.authoring.placement import Placement
from urlab.authoring.world import Spawned, SpawnSpec, World

__all__ = ["Importer", "Placed", "Placement", "SpawnSpec", "Spawned", "World"]

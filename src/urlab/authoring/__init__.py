"""The edited world: the level that a person builds, apart from the one that is being simulated."""

from urlab.authoring.actor_index import Placed
from urlab.authoring.imports import Importer
from urlab.authoring.placement import Placement
from urlab.authoring.world import Order, Spawned, World

__all__ = ["Importer", "Order", "Placed", "Placement", "Spawned", "World"]

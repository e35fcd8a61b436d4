"""The edited world: the level that clients build, apart from the one that is being simulated.

Requests of authoring ops in, levels out. `world` opens, edits and saves the level; `actor_index` finds its actors by
name and by id; `history` keeps what has been done to it; `placement` reads where an actor shall be; `imports` makes
imports; `outliner_rows` describes actors as the outliner shows them.
"""

from urlab.authoring.actor_index import Placed
from urlab.authoring.imports import Importer
from urlab.authoring.placement import Placement
from urlab.authoring.world import DestroyedAsset, EditStatus, Spawned, SpawnSpec, World

__all__ = ["DestroyedAsset", "EditStatus", "Importer", "Placed", "Placement", "SpawnSpec", "Spawned", "World"]

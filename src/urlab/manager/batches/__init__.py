"""Many copies of one scene, stepped together: `table` has those of clients, `copies` is one batch of them, and
`randomisation` draws a world for each.
"""

from urlab.manager.batches.copies import SceneCopies
from urlab.manager.batches.randomisation import BatchRandomisation, DrawnWorld
from urlab.manager.batches.table import BatchTable

__all__ = ["BatchRandomisation", "BatchTable", "DrawnWorld", "SceneCopies"]

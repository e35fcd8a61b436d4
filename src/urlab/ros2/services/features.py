"""What of the standard works here."""

from collections.abc import Collection
from typing import Any

from urlab.ros2.messages import make
from urlab.ros2.services.spawning import FORMATS
from urlab.ros2.simulation_messages import PACKAGE

FEATURES: dict[str, tuple[int, ...]] = {
    "spawn_entity": (0,),
    "delete_entity": (1,),
    "get_entities": (4, 6, 8),
    "get_entity_bounds": (5,),
    "get_entity_state": (10,),
    "set_entity_state": (11,),
    "get_entity_info": (12,),
    "get_spawnables": (14,),
    "reset_simulation": (20, 21, 22, 23),
    "get_simulation_state": (24,),
    "set_simulation_state": (25, 26),
    "step_simulation": (31, 32),
}
"""Numbers of SimulatorFeatures by service; those of get_entities are filters: by tags, by boxes, by categories."""

_INFO = (
    "urlab: entities are named by their prefix, or as they were spawned. In direct and puppet mode the simulation"
    " counts as paused. docs/ros2.md says more."
)


def features(served: Collection[str]) -> Any:
    """SimulatorFeatures of those services."""
    numbers = sorted(number for name in served for number in FEATURES.get(name, ()))
    return make(f"{PACKAGE}/msg/SimulatorFeatures", features=numbers, spawn_formats=FORMATS, custom_info=_INFO)

"""Every service: what it is called, its type, and what it does."""

from collections.abc import Callable
from typing import Any, NamedTuple

from urlab.ros2.services import control, entities, spawning
from urlab.ros2.services.operating import OperatorClient
from urlab.ros2.simulation_messages import PACKAGE

Work = Callable[[OperatorClient, Any], dict[str, Any]]
"""From a request to the fields of its response; `Refused` when it cannot be done."""

FEATURES_NAME = "get_simulator_features"


class Service(NamedTuple):
    """One service. ``work`` is None for the one that asks no server."""

    name: str
    type_name: str
    work: Work | None

    @property
    def topic(self) -> str:
        """Its name in the graph."""
        return f"/{self.name}"


def _of(kind: str, work: Work | None, name: str) -> Service:
    return Service(name, f"{PACKAGE}/srv/{kind}", work)


SERVICES: tuple[Service, ...] = (
    _of("GetSimulatorFeatures", None, FEATURES_NAME),
    _of("GetSimulationState", control.get_state, "get_simulation_state"),
    _of("SetSimulationState", control.set_state, "set_simulation_state"),
    _of("StepSimulation", control.step, "step_simulation"),
    _of("ResetSimulation", control.reset, "reset_simulation"),
    _of("GetEntities", entities.get_entities, "get_entities"),
    _of("GetEntityState", entities.get_entity_state, "get_entity_state"),
    _of("GetEntitiesStates", entities.get_entities_states, "get_entities_states"),
    _of("SetEntityState", entities.set_entity_state, "set_entity_state"),
    _of("GetEntityInfo", entities.get_entity_info, "get_entity_info"),
    _of("GetEntityBounds", entities.get_entity_bounds, "get_entity_bounds"),
    _of("GetSpawnables", spawning.get_spawnables, "get_spawnables"),
    _of("SpawnEntity", spawning.spawn_entity, "spawn_entity"),
    _of("DeleteEntity", spawning.delete_entity, "delete_entity"),
)

"""Every service, with what it does and which features of the standard it is; and serving them on a backend."""

import logging
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from urlab.ros2.backend import Backend, BackendError, Subscription
from urlab.ros2.messages import deserialise, make, serialise
from urlab.ros2.services import entities, simulation
from urlab.ros2.services.messages import PACKAGE, ResultCode, ServiceRefused, result
from urlab.ros2.services.simulation import TIMEOUT_MS, Operator, OperatorClient

log = logging.getLogger("urlab.ros2")

Work = Callable[[OperatorClient, Any], dict[str, Any]]
"""From a request to the fields of its response; `ServiceRefused` when it cannot be done."""

_INFO = (
    "urlab: entities are named by their prefix, or as they were spawned. In direct and puppet mode the simulation"
    " counts as paused. docs/ros2.md says more."
)


class SimulationService(NamedTuple):
    """One service. ``work`` is None for the one that asks no server; ``features`` are numbers of SimulatorFeatures."""

    name: str
    kind: str
    work: Work | None
    features: tuple[int, ...] = ()

    @property
    def topic(self) -> str:
        """Its name in the graph."""
        return f"/{self.name}"

    @property
    def type_name(self) -> str:
        """Its type, such as ``simulation_interfaces/srv/StepSimulation``."""
        return f"{PACKAGE}/srv/{self.kind}"


SERVICES: tuple[SimulationService, ...] = (
    SimulationService("get_simulator_features", "GetSimulatorFeatures", None),
    SimulationService("get_simulation_state", "GetSimulationState", simulation.get_state, (24,)),
    SimulationService("set_simulation_state", "SetSimulationState", simulation.set_state, (25, 26)),
    SimulationService("step_simulation", "StepSimulation", simulation.step, (31, 32)),
    SimulationService("reset_simulation", "ResetSimulation", simulation.reset, (20, 21, 22, 23)),
    # 4, 6, 8 are filters: by tags, by boxes, by categories
    SimulationService("get_entities", "GetEntities", entities.get_entities, (4, 6, 8)),
    SimulationService("get_entity_state", "GetEntityState", entities.get_entity_state, (10,)),
    SimulationService("get_entities_states", "GetEntitiesStates", entities.get_entities_states),
    SimulationService("set_entity_state", "SetEntityState", entities.set_entity_state, (11,)),
    SimulationService("get_entity_info", "GetEntityInfo", entities.get_entity_info, (12,)),
    SimulationService("get_entity_bounds", "GetEntityBounds", entities.get_entity_bounds, (5,)),
    SimulationService("get_spawnables", "GetSpawnables", entities.get_spawnables, (14,)),
    SimulationService("spawn_entity", "SpawnEntity", entities.spawn_entity, (0,)),
    SimulationService("delete_entity", "DeleteEntity", entities.delete_entity, (1,)),
)


class SimulationServices:
    """Opens every service that the backend can have.

    ``pause_publishing`` is called with True before a scene is taken down to be played as another one, and with False
    when it goes on: states of the time between are not to be published. Requests come one at a time, on the backend's
    thread for requests; the server may take ``timeout_ms`` to answer one. Whatever happens, a request gets a response.
    """

    def __init__(
        self,
        backend: Backend,
        address: str,
        step_port: int,
        pause_publishing: Callable[[bool], None] = lambda _paused: None,
        timeout_ms: int = TIMEOUT_MS,
    ) -> None:
        self._operator = Operator(address, step_port, pause_publishing, timeout_ms)
        self._open: dict[str, Subscription] = {}
        self._failed: list[BackendError] = []
        for service in SERVICES:
            self._offer(backend, service)
        self._log_services()

    @property
    def names(self) -> list[str]:
        """Those that are open."""
        return list(self._open)

    def close(self) -> None:
        """Withdraw them, once a request that is under way has been answered; a long row of steps is broken off."""
        self._operator.end()
        for one in self._open.values():
            one.close()
        self._operator.close()

    def _offer(self, backend: Backend, service: SimulationService) -> None:
        try:
            self._open[service.name] = backend.service(
                service.topic, service.type_name, lambda cdr: self._serve(service, cdr)
            )
        except BackendError as lacking:
            self._failed.append(lacking)

    def _log_services(self) -> None:
        if self._failed and not self._open:
            log.warning("there are no services to control the simulation by: %s", self._failed[0])
        elif self._failed:
            log.warning("%d of %d services are not there: %s", len(self._failed), len(SERVICES), self._failed[0])
        else:
            log.debug("%d services control the simulation: /%s", len(self._open), ", /".join(self._open))

    def _serve(self, service: SimulationService, cdr: bytes) -> memoryview:
        kind = f"{service.type_name}_Response"
        return serialise(make(kind, **self._answer(service, cdr)), kind)

    def _answer(self, service: SimulationService, cdr: bytes) -> dict[str, Any]:
        work = service.work
        if work is None:
            return {"features": _features(self._open)}
        try:
            request = _read(cdr, f"{service.type_name}_Request")
            return self._operator.do(lambda client: work(client, request))
        except ServiceRefused as refused:
            return {"result": result(refused.message, refused.code)}
        except Exception as crashed:
            log.exception("/%s failed", service.name)
            return {"result": result(f"{type(crashed).__name__}: {crashed}", ResultCode.OPERATION_FAILED)}


def _features(names: Collection[str]) -> Any:
    """SimulatorFeatures of the services of those names."""
    numbers = sorted(number for service in SERVICES if service.name in names for number in service.features)
    formats = entities.FORMATS
    return make(f"{PACKAGE}/msg/SimulatorFeatures", features=numbers, spawn_formats=formats, custom_info=_INFO)


def _read(cdr: bytes, type_name: str) -> Any:
    try:
        return deserialise(cdr, type_name)
    except Exception as broken:
        raise ServiceRefused(
            f"{len(cdr)} bytes are no {type_name}: {broken}. Are both sides of one ROS_DISTRO?"
        ) from broken

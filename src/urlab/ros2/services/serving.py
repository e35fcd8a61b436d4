"""The services on a backend, for as long as the bridge runs."""

import logging
from collections.abc import Callable
from typing import Any

from urlab.ros2.backend import Backend, BackendError, Subscription
from urlab.ros2.messages import deserialise, make, serialise
from urlab.ros2.services.features import features
from urlab.ros2.services.operating import Operator
from urlab.ros2.services.results import Code, Refused, result
from urlab.ros2.services.table import SERVICES, Service

log = logging.getLogger("urlab.ros2")


class SimulationServices:
    """Opens every service that the backend can have.

    ``hush`` is told True before a scene is taken down to be played as another one, and False when it goes on: what the
    server says of the time between is not worth telling.
    Requests come one at a time, on the backend's thread for requests. Whatever happens, a request gets a response.
    """

    def __init__(
        self,
        backend: Backend,
        address: str,
        step_port: int,
        hush: Callable[[bool], None] = lambda _hushed: None,
    ) -> None:
        self._operator = Operator(address, step_port, hush)
        self._open: dict[str, Subscription] = {}
        self._failed: list[BackendError] = []
        for service in SERVICES:
            self._offer(backend, service)
        self._say()

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

    def _offer(self, backend: Backend, service: Service) -> None:
        try:
            self._open[service.name] = backend.service(
                service.topic, service.type_name, lambda cdr: self._serve(service, cdr)
            )
        except BackendError as lacking:
            self._failed.append(lacking)

    def _say(self) -> None:
        if self._failed and not self._open:
            log.warning("there are no services to control the simulation by: %s", self._failed[0])
        elif self._failed:
            log.warning("%d of %d services are not there: %s", len(self._failed), len(SERVICES), self._failed[0])
        else:
            log.debug("%d services control the simulation: /%s", len(self._open), ", /".join(self._open))

    def _serve(self, service: Service, cdr: bytes) -> memoryview:
        kind = f"{service.type_name}_Response"
        return serialise(make(kind, **self._answer(service, cdr)), kind)

    def _answer(self, service: Service, cdr: bytes) -> dict[str, Any]:
        work = service.work
        if work is None:
            return {"features": features(self._open)}
        try:
            request = _read(cdr, f"{service.type_name}_Request")
            return self._operator.do(lambda client: work(client, request))
        except Refused as refused:
            return {"result": result(refused.code, refused.message)}
        except Exception as crashed:
            log.exception("/%s failed", service.name)
            return {"result": result(Code.OPERATION_FAILED, f"{type(crashed).__name__}: {crashed}")}


def _read(cdr: bytes, type_name: str) -> Any:
    try:
        return deserialise(cdr, type_name)
    except Exception as broken:
        raise Refused(
            Code.OPERATION_FAILED,
            f"{len(cdr)} bytes are no {type_name}: {broken}. Are both sides of one ROS_DISTRO?",
        ) from broken

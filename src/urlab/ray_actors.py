"""Work on the actors of a Ray cluster. Only this file imports Ray; the extra ``scale`` installs it.

`connect` finds or starts a cluster. `run_on_actors` hands out items of work, one at a time to each actor, and hands an
item out again when its actor died; `start_actor` is for those that keep an actor to themselves.
"""

import importlib
import importlib.util
import logging
import socket
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

from urlab.errors import ActorsLost, ConfigError

log = logging.getLogger("urlab.scale")

Item = TypeVar("Item")

INSTALL_LINE = "pip install 'urlab-headless[scale]'"
_ATTEMPTS = 3
"""Of one item, each on another actor; then it is not the actor's fault."""
_TELL_EVERY_S = 20.0
_KNOCK_S = 10.0


class ItemWorker(Protocol):
    """What lives on an actor: it does one item after the other."""

    def run(self, item: Any) -> Any:
        """The result of an item, which depends on nothing but that item."""


def connect(address: str) -> None:
    """Join the cluster at ``address``, or start one on this machine for ``"local"``. Again is allowed.

    ConfigError without Ray, or where no cluster answers.
    """
    if importlib.util.find_spec("ray") is None:
        raise ConfigError(f"Ray is not installed: {INSTALL_LINE}")
    ray: Any = importlib.import_module("ray")
    if ray.is_initialized():
        return
    options: dict[str, Any] = {"include_dashboard": False} if address == "local" else {}
    try:
        _knock(address)
        ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False, **options)
    except (OSError, RuntimeError, ValueError) as refused:
        raise ConfigError(
            f"no Ray cluster at {address!r} ({str(refused).splitlines()[0]}); start one with `ray start --head` and "
            "name its address, as host:6379, or say local for one on this machine"
        ) from refused


def _knock(address: str) -> None:
    """OSError if nothing listens there: Ray itself would try for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), _KNOCK_S).close()


def cluster_cpus() -> int:
    """How many actors can work at a time, all machines together."""
    ray: Any = importlib.import_module("ray")
    return int(ray.cluster_resources().get("CPU", 0))


def start_actor(kind: type, *arguments: Any) -> Any:
    """An actor of a class, with a CPU to itself; Ray starts it on any machine, in its own time."""
    ray: Any = importlib.import_module("ray")
    return ray.remote(num_cpus=1, max_restarts=0)(kind).remote(*arguments)


def kill_actor(actor: Any) -> None:
    """End it now, whatever it does. May be called twice."""
    ray: Any = importlib.import_module("ray")
    ray.kill(actor, no_restart=True)


def actor_death() -> type[Exception]:
    """What a call raises whose actor is gone."""
    exceptions: Any = importlib.import_module("ray.exceptions")
    found: type[Exception] = exceptions.RayActorError
    return found


def failed_call() -> type[Exception]:
    """What a call raises that failed on its actor; ``cause`` is what it raised there."""
    exceptions: Any = importlib.import_module("ray.exceptions")
    found: type[Exception] = exceptions.RayTaskError
    return found


def ship_code(module_name: str) -> None:
    """Send the code of a module along with what is made of it: other machines need not have that file."""
    cloudpickle: Any = importlib.import_module("ray.cloudpickle")
    cloudpickle.register_pickle_by_value(sys.modules[module_name])


def run_on_actors(make: Callable[[], ItemWorker], items: Sequence[Item], actors: int) -> Iterator[tuple[Item, Any]]:
    """Every item with its result, as they come. ``make`` is called once on each actor.

    An item whose actor died is done again on a new one: ActorsLost after the third time. What ``run`` raises is raised
    here, and ends the others.
    """
    ray: Any = importlib.import_module("ray")
    cloudpickle: Any = importlib.import_module("ray.cloudpickle")
    maker = ray.put(cloudpickle.dumps(make))
    waiting, deaths = deque(range(len(items))), [0] * len(items)
    running: dict[Any, tuple[Any, int]] = {}
    living = [start_actor(_ItemActor, maker) for _ in range(min(actors, len(items)))]

    def hand_out(actor: Any) -> None:
        if waiting:
            number = waiting.popleft()
            running[actor.run.remote(items[number])] = (actor, number)

    try:
        for actor in living:
            hand_out(actor)
        while running:
            call = _next_done(ray, running)
            actor, number = running.pop(call)
            try:
                result = ray.get(call)
            except actor_death() as death:
                deaths[number] += 1
                if deaths[number] == _ATTEMPTS:
                    raise ActorsLost(
                        f"{items[number]!r} cost {_ATTEMPTS} actors their lives; the last: {death}"
                    ) from death
                log.warning("an actor died, its work begins again: %s", str(death).splitlines()[0])
                waiting.append(number)
                living[living.index(actor)] = another = start_actor(_ItemActor, maker)
                hand_out(another)
            except failed_call() as failed:
                raise failed.cause from failed  # type: ignore[attr-defined]
            else:
                yield items[number], result
                hand_out(actor)
    finally:
        for actor in living:
            kill_actor(actor)


def _next_done(ray: Any, running: dict[Any, tuple[Any, Any]]) -> Any:
    """A call that has ended; how it stands is told while none has."""
    begun_s = time.monotonic()
    while True:
        done, _ = ray.wait(list(running), num_returns=1, timeout=_TELL_EVERY_S)
        if done:
            return done[0]
        free = ray.available_resources().get("CPU", 0)
        log.warning(
            "nothing has come from %d actors for %.0f s; %g of the cluster's %g CPUs are free",
            len(running), time.monotonic() - begun_s, free, cluster_cpus(),
        )  # fmt: skip


class _ItemActor:
    """Runs on another process, often on another machine."""

    def __init__(self, maker: bytes) -> None:
        cloudpickle: Any = importlib.import_module("ray.cloudpickle")
        self._worker: ItemWorker = cloudpickle.loads(maker)()

    def run(self, item: Any) -> Any:
        return self._worker.run(item)

"""`AsyncURLabClient`: the client for programs of asyncio, with the names of `URLabClient`.

There is one implementation: every call runs on a worker thread that the client has for itself, so that the event loop
never waits and calls are served in order. A method stands here as ``awaited(...)`` of the one that it runs, with its
arguments, its types and its docstring; a method that is not listed is found all the same.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import mujoco

from urlab_client.awaited.batch import AsyncBatch
from urlab_client.awaited.namespaces import (
    AsyncDebug,
    AsyncOutliner,
    AsyncRecording,
    AsyncReplay,
    AsyncRuntime,
    AsyncScene,
    AsyncSim,
    AsyncViewport,
)
from urlab_client.awaited.part import AsyncPart, AwaitedValue, ClientWorker, awaited
from urlab_client.client import URLabClient
from urlab_client.enums import StepMode
from urlab_client.handles.articulation import URLabArticulation
from urlab_client.handles.camera import URLabCameraView
from urlab_client.handles.entity import URLabEntity
from urlab_client.html import client_html
from urlab_client.lookup import NamedTable
from urlab_wire.stream_messages import StateFull

P = ParamSpec("P")
T = TypeVar("T")


def _constructor(
    like: Callable[Concatenate[URLabClient, P], None],
) -> Callable[[Callable[..., None]], Callable[Concatenate["AsyncURLabClient", P], None]]:
    """Lets a constructor take what another one takes."""
    return lambda function: functools.wraps(like)(function)


class AsyncURLabClient(AsyncPart[URLabClient]):
    """A client for asyncio: the arguments, names and results of `URLabClient`; what asks the server is awaited.

    ```python
    import asyncio

    from urlab_client import AsyncURLabClient

    async def main() -> None:
        async with AsyncURLabClient("tcp://localhost", step_mode="direct") as client:
            await client.discover()
            for robot in client.articulations.values():
                robot.ctrl_array[:] = 0.0
            reply = await client.step(10)
            print(reply["time"], await client.runtime.list_keyframes())

    asyncio.run(main())
    ```

    Calls of one client are served in order, on a thread of its own; several clients work at the same time, as
    ``asyncio.gather`` has them. Cancelling an await leaves the client usable: a request that was sent is still
    answered, before the next one. Handles are those of `URLabClient`: reading and setting them takes no time and needs
    no await; what asks the server goes through `run`: ``await client.run(robot.controller.refresh)``.
    """

    @_constructor(URLabClient.__init__)
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._take(URLabClient(*args, **kwargs))

    @classmethod
    def of(cls, client: URLabClient) -> Self:
        """The asyncio client of a client, which it owns from then on: ``AsyncURLabClient.of(urlab.launch())``."""
        made = cls.__new__(cls)
        made._take(client)
        return made

    def _take(self, client: URLabClient) -> None:
        super().__init__(client, ClientWorker())
        self._scene = AsyncScene(client.scene, self._worker)
        self._sim = AsyncSim(client.sim, self._worker)
        self._runtime = AsyncRuntime(client.runtime, self._worker)
        self._outliner = AsyncOutliner(client.outliner, self._worker)
        self._debug = AsyncDebug(client.debug, self._worker)
        self._viewport = AsyncViewport(client.viewport, self._worker)
        self._recording = AsyncRecording(client.recording, self._worker)
        self._replay = AsyncReplay(client.replay, self._worker)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return repr(self._wrapped).replace("URLabClient", "AsyncURLabClient", 1)

    def _repr_html_(self) -> str:
        return client_html(self._wrapped)

    discover = awaited(URLabClient.discover)
    step = awaited(URLabClient.step)
    reset = awaited(URLabClient.reset)

    async def batch(self, num: int, *, threads: int = 0, randomize: Mapping[str, Any] | None = None) -> AsyncBatch:
        """See `URLabClient.batch`; awaited, and so are the steps of what it gives."""
        opened = await self._worker.run(self._wrapped.batch, num, threads=threads, randomize=randomize)
        return AsyncBatch(opened, self._worker)

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What any function returns that uses this client's handles and asks the server, called on the worker."""
        return await self._worker.run(work, *args, **kwargs)

    @property
    def latest_state(self) -> AwaitedValue[StateFull | None]:
        """See `URLabClient.latest_state`; awaited."""
        return AsyncPart._property(self, "latest_state")

    def _property(self, name: str) -> Any:
        """Properties of the client ask nothing: they are read at once."""
        return getattr(self._wrapped, name)

    async def close(self) -> None:
        """See `URLabClient.close`; the worker ends with it."""
        try:
            await self._worker.run(self._wrapped.close)
        finally:
            self._worker.stop()

    @property
    def scene(self) -> AsyncScene:
        """See `URLabClient.scene`; its methods are awaited."""
        return self._scene

    @property
    def sim(self) -> AsyncSim:
        """See `URLabClient.sim`; its methods are awaited."""
        return self._sim

    @property
    def runtime(self) -> AsyncRuntime:
        """See `URLabClient.runtime`; its methods are awaited."""
        return self._runtime

    @property
    def outliner(self) -> AsyncOutliner:
        """See `URLabClient.outliner`; its methods are awaited."""
        return self._outliner

    @property
    def debug(self) -> AsyncDebug:
        """See `URLabClient.debug`; its methods are awaited."""
        return self._debug

    @property
    def viewport(self) -> AsyncViewport:
        """See `URLabClient.viewport`; its methods are awaited."""
        return self._viewport

    @property
    def recording(self) -> AsyncRecording:
        """See `URLabClient.recording`; its methods are awaited."""
        return self._recording

    @property
    def replay(self) -> AsyncReplay:
        """See `URLabClient.replay`; its methods are awaited."""
        return self._replay

    @property
    def articulations(self) -> NamedTable[URLabArticulation]:
        """See `URLabClient.articulations`."""
        return self._wrapped.articulations

    @property
    def articulations_by_id(self) -> NamedTable[URLabArticulation]:
        """See `URLabClient.articulations_by_id`."""
        return self._wrapped.articulations_by_id

    @property
    def entities(self) -> NamedTable[URLabEntity]:
        """See `URLabClient.entities`."""
        return self._wrapped.entities

    @property
    def global_cameras(self) -> NamedTable[URLabCameraView]:
        """See `URLabClient.global_cameras`."""
        return self._wrapped.global_cameras

    @property
    def model(self) -> mujoco.MjModel:
        """See `URLabClient.model`."""
        return self._wrapped.model

    @property
    def data(self) -> mujoco.MjData:
        """See `URLabClient.data`."""
        return self._wrapped.data

    @property
    def step_mode(self) -> StepMode:
        """See `URLabClient.step_mode`."""
        return self._wrapped.step_mode

    @property
    def step_count(self) -> int:
        """See `URLabClient.step_count`."""
        return self._wrapped.step_count

    @property
    def sim_time(self) -> float:
        """See `URLabClient.sim_time`."""
        return self._wrapped.sim_time

    @property
    def session_id(self) -> str:
        """See `URLabClient.session_id`."""
        return self._wrapped.session_id

    @property
    def manager_present(self) -> bool:
        """See `URLabClient.manager_present`."""
        return self._wrapped.manager_present

    @property
    def urlab_version(self) -> str:
        """See `URLabClient.urlab_version`."""
        return self._wrapped.urlab_version

    @property
    def mujoco_version(self) -> str:
        """See `URLabClient.mujoco_version`."""
        return self._wrapped.mujoco_version

"""`AsyncURLabClient`: the client for programs of asyncio, with the names of `URLabClient`.

There is one implementation: every call runs on a worker thread that the client has for itself, so that the event loop
never waits and calls are served in order. A method stands here as ``awaited(...)`` of the one that it runs, with its
arguments, its types and its docstring; a method that is not listed is found all the same.
"""

import asyncio
import functools
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar

import mujoco

from urlab_client.client import URLabClient
from urlab_client.enums import StepMode
from urlab_client.handles.articulation import URLabArticulation
from urlab_client.handles.camera import URLabCameraView
from urlab_client.handles.entity import URLabEntity
from urlab_client.html import client_html
from urlab_client.lookup import FixedAttributes, NamedTable
from urlab_client.namespaces.debug import DebugNamespace
from urlab_client.namespaces.outliner import OutlinerNamespace
from urlab_client.namespaces.recording import URLabRecordingAPI
from urlab_client.namespaces.replay import URLabReplayAPI
from urlab_client.namespaces.runtime import RuntimeNamespace
from urlab_client.namespaces.scene import SceneNamespace
from urlab_client.namespaces.sim import SimNamespace
from urlab_client.namespaces.viewport import ViewportNamespace
from urlab_wire.stream_messages import StateFull

P = ParamSpec("P")
T = TypeVar("T")
Wrapped = TypeVar("Wrapped")
Wrapped_co = TypeVar("Wrapped_co", covariant=True)


class ClientWorker:
    """The thread of one client. It ends with `stop`, or when nothing refers to it any more."""

    def __init__(self) -> None:
        self._threads: ThreadPoolExecutor | None = ThreadPoolExecutor(1, "urlab-async")

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What ``work`` returns, called on the thread after all work that came before.

        Cancelling leaves work out that has not begun; what has begun goes on, without the caller.
        """
        if self._threads is None:
            return work(*args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._threads, functools.partial(work, *args, **kwargs))

    def stop(self) -> None:
        """Take no more work."""
        threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown(wait=False)


class AwaitedValue(Generic[T]):
    """A property that may ask the server: ``await client.recording.frame_count``. It is read when it is awaited."""

    def __init__(self, read: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._read = read

    def __await__(self) -> Generator[Any, None, T]:
        return self._read().__await__()

    def __repr__(self) -> str:
        return "a value that is awaited"


class AsyncPart(FixedAttributes, Generic[Wrapped_co]):
    """An object whose methods are awaited; ``_wrapped`` has them, and runs on the client's worker."""

    def __init__(self, wrapped: Wrapped_co, worker: ClientWorker) -> None:
        self._wrapped = wrapped
        self._worker = worker

    if not TYPE_CHECKING:  # a type checker is to find misspelt methods

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(f"{type(self).__name__} has no {name!r}", name=name, obj=self)
            if isinstance(getattr(type(self._wrapped), name, None), property):
                return self._property(name)
            return functools.partial(self._worker.run, getattr(self._wrapped, name))

    def _property(self, name: str) -> AwaitedValue[Any]:
        return AwaitedValue(lambda: self._worker.run(getattr, self._wrapped, name))

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(word for word in dir(self._wrapped) if not word.startswith("_"))})

    def __repr__(self) -> str:
        return f"Async {self._wrapped!r}"


def awaited(
    method: Callable[Concatenate[Wrapped, P], T],
) -> Callable[Concatenate[AsyncPart[Wrapped], P], Coroutine[Any, Any, T]]:
    """The method of an `AsyncPart` that runs this one."""

    async def call(self: AsyncPart[Wrapped], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._worker.run(method, self._wrapped, *args, **kwargs)

    functools.update_wrapper(call, method)
    return call


class AsyncScene(AsyncPart[SceneNamespace]):
    """``client.scene``: the methods of `SceneNamespace`, awaited."""

    create_level = awaited(SceneNamespace.create_level)
    load_level = awaited(SceneNamespace.load_level)
    save_level = awaited(SceneNamespace.save_level)
    list_levels = awaited(SceneNamespace.list_levels)
    current_level = awaited(SceneNamespace.current_level)
    level_status = awaited(SceneNamespace.level_status)
    undo = awaited(SceneNamespace.undo)
    redo = awaited(SceneNamespace.redo)
    upload = awaited(SceneNamespace.upload)
    ensure_manager = awaited(SceneNamespace.ensure_manager)
    import_xml = awaited(SceneNamespace.import_xml)
    destroy_asset = awaited(SceneNamespace.destroy_asset)
    spawn_actor = awaited(SceneNamespace.spawn_actor)
    spawn_grid = awaited(SceneNamespace.spawn_grid)
    spawn_light = awaited(SceneNamespace.spawn_light)
    destroy_actor = awaited(SceneNamespace.destroy_actor)
    set_actor_transform = awaited(SceneNamespace.set_actor_transform)
    duplicate_actor = awaited(SceneNamespace.duplicate_actor)
    actor_hierarchy = awaited(SceneNamespace.actor_hierarchy)
    snapshot = awaited(SceneNamespace.snapshot)
    apply_scene = awaited(SceneNamespace.apply_scene)


class AsyncSim(AsyncPart[SimNamespace]):
    """``client.sim``: the methods of `SimNamespace`, awaited."""

    start = awaited(SimNamespace.start)
    stop = awaited(SimNamespace.stop)
    status = awaited(SimNamespace.status)
    recent_log = awaited(SimNamespace.recent_log)


class AsyncRuntime(AsyncPart[RuntimeNamespace]):
    """``client.runtime``: the methods of `RuntimeNamespace`, awaited."""

    set_paused = awaited(RuntimeNamespace.set_paused)
    set_sim_speed = awaited(RuntimeNamespace.set_sim_speed)
    set_control_source = awaited(RuntimeNamespace.set_control_source)
    set_twist = awaited(RuntimeNamespace.set_twist)
    set_qpos = awaited(RuntimeNamespace.set_qpos)
    set_mocap_pose = awaited(RuntimeNamespace.set_mocap_pose)
    read_mocap_pose = awaited(RuntimeNamespace.read_mocap_pose)
    get_contacts = awaited(RuntimeNamespace.get_contacts)
    list_keyframes = awaited(RuntimeNamespace.list_keyframes)
    set_sim_options = awaited(RuntimeNamespace.set_sim_options)
    set_mode = awaited(RuntimeNamespace.set_mode)
    set_camera_mode = awaited(RuntimeNamespace.set_camera_mode)
    set_camera_streaming = awaited(RuntimeNamespace.set_camera_streaming)
    forward = awaited(RuntimeNamespace.forward)
    perturb = awaited(RuntimeNamespace.perturb)
    release = awaited(RuntimeNamespace.release)
    set_ui_controls = awaited(RuntimeNamespace.set_ui_controls)
    save_state = awaited(RuntimeNamespace.save_state)
    restore_state = awaited(RuntimeNamespace.restore_state)
    list_states = awaited(RuntimeNamespace.list_states)
    delete_state = awaited(RuntimeNamespace.delete_state)
    set_equality = awaited(RuntimeNamespace.set_equality)
    set_model_params = awaited(RuntimeNamespace.set_model_params)


class AsyncOutliner(AsyncPart[OutlinerNamespace]):
    """``client.outliner``: the methods of `OutlinerNamespace`, awaited."""

    list_actors = awaited(OutlinerNamespace.list_actors)
    list_blueprints = awaited(OutlinerNamespace.list_blueprints)
    blueprint_picture = awaited(OutlinerNamespace.blueprint_picture)
    find_actors = awaited(OutlinerNamespace.find_actors)
    get_actor_bounds = awaited(OutlinerNamespace.get_actor_bounds)
    select_actor = awaited(OutlinerNamespace.select_actor)
    add_quick_convert = awaited(OutlinerNamespace.add_quick_convert)
    remove_quick_convert = awaited(OutlinerNamespace.remove_quick_convert)


class AsyncDebug(AsyncPart[DebugNamespace]):
    """``client.debug``: the methods of `DebugNamespace`, awaited."""

    draw_marker = awaited(DebugNamespace.draw_marker)
    draw_line = awaited(DebugNamespace.draw_line)
    draw_box = awaited(DebugNamespace.draw_box)
    draw_arrow = awaited(DebugNamespace.draw_arrow)
    draw_axes = awaited(DebugNamespace.draw_axes)
    clear_markers = awaited(DebugNamespace.clear_markers)
    set_overlay_text = awaited(DebugNamespace.set_overlay_text)
    set_overlay_choice = awaited(DebugNamespace.set_overlay_choice)


class AsyncViewport(AsyncPart[ViewportNamespace]):
    """``client.viewport``: the methods of `ViewportNamespace`, awaited."""

    set_camera = awaited(ViewportNamespace.set_camera)
    get_camera = awaited(ViewportNamespace.get_camera)
    look_through = awaited(ViewportNamespace.look_through)
    set_overlays = awaited(ViewportNamespace.set_overlays)
    frame_actor = awaited(ViewportNamespace.frame_actor)
    set_mode = awaited(ViewportNamespace.set_mode)
    track_actor = awaited(ViewportNamespace.track_actor)
    untrack = awaited(ViewportNamespace.untrack)
    read = awaited(ViewportNamespace.read)
    editor_url = awaited(ViewportNamespace.editor_url)
    screenshot = awaited(ViewportNamespace.screenshot)


class AsyncRecording(AsyncPart[URLabRecordingAPI]):
    """``client.recording``: the methods of `URLabRecordingAPI`, awaited."""

    start = awaited(URLabRecordingAPI.start)
    stop = awaited(URLabRecordingAPI.stop)
    save = awaited(URLabRecordingAPI.save)
    clear = awaited(URLabRecordingAPI.clear)
    status = awaited(URLabRecordingAPI.status)
    list = awaited(URLabRecordingAPI.list)
    export = awaited(URLabRecordingAPI.export)
    export_status = awaited(URLabRecordingAPI.export_status)
    cancel_export = awaited(URLabRecordingAPI.cancel_export)

    @property
    def is_active(self) -> AwaitedValue[bool]:
        """See `URLabRecordingAPI.is_active`; awaited."""
        return self._property("is_active")

    @property
    def frame_count(self) -> AwaitedValue[int]:
        """See `URLabRecordingAPI.frame_count`; awaited."""
        return self._property("frame_count")

    @property
    def sim_duration(self) -> AwaitedValue[float]:
        """See `URLabRecordingAPI.sim_duration`; awaited."""
        return self._property("sim_duration")

    @property
    def last_saved_path(self) -> AwaitedValue[Path | None]:
        """See `URLabRecordingAPI.last_saved_path`; awaited."""
        return self._property("last_saved_path")


class AsyncReplay(AsyncPart[URLabReplayAPI]):
    """``client.replay``: the methods of `URLabReplayAPI`, awaited."""

    load = awaited(URLabReplayAPI.load)
    list_sessions = awaited(URLabReplayAPI.list_sessions)
    set_active = awaited(URLabReplayAPI.set_active)
    start = awaited(URLabReplayAPI.start)
    seek = awaited(URLabReplayAPI.seek)
    status = awaited(URLabReplayAPI.status)
    stop = awaited(URLabReplayAPI.stop)
    play = awaited(URLabReplayAPI.play)

    @property
    def active_session(self) -> AwaitedValue[str | None]:
        """See `URLabReplayAPI.active_session`; awaited."""
        return self._property("active_session")


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

"""The composition root: builds a server from its parts, and runs it in this process."""

import dataclasses
import difflib
import inspect
import logging
import os
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypedDict, Unpack

from urlab import access, plugins, robots
from urlab.access import AuditLog, KeysFolder, KnownKey
from urlab.authoring import Importer, World
from urlab.authoring.targets import is_of_project, open_targets
from urlab.compile.library import Library
from urlab.config import RenderProfile, ServerConfig, is_local
from urlab.editor_process import WORK as EDITOR_WORK
from urlab.editor_process import EditorProcess, is_installed
from urlab.errors import ConfigError, OpTimeout
from urlab.files import remove_ready_file, sweep, write_ready_file
from urlab.health import HealthReport, HealthServer
from urlab.importing import sweep_stored
from urlab.importing.hulls import Decomposer
from urlab.importing.limited_process import WORK
from urlab.manager import Exports, Manager, Play, StreamSource, ViewportSource
from urlab.manager.play import DEFAULT_TIMEOUT_S
from urlab.monitoring import watchdog
from urlab.monitoring.log_buffer import LogBuffer
from urlab.monitoring.metrics import RequestFigures
from urlab.mujoco_versions import check_version
from urlab.ops import Dispatcher, Parts, request_key
from urlab.overlay import Overlay
from urlab.physics.engine import route_mujoco_log
from urlab.recording import recover_in_background
from urlab.scene.project import Project
from urlab.transport import (
    CurveRpcServer,
    RequestRegistry,
    ScenePublisher,
    SharedMemory,
    ShmUnavailable,
    StreamedCamera,
    Streams,
    ZmqRpcServer,
)
from urlab.viewport import ModelPictures, Viewport
from urlab_client import URLabClient
from urlab_client.transports import InProcessTransport
from urlab_wire.enums import PIEState, StepMode
from urlab_wire.ops.runtime import OPTION_FIELDS

log = logging.getLogger("urlab.app")

_CLOSE_LIMIT_S = 2.0
_FULL_TO_STANDARD = 8
"""No full observation is so many times larger than a standard one."""

_THIS_MACHINE = "tcp://127.0.0.1"
_DESCRIPTORS_PER_CAMERA = 6
"""A ZeroMQ socket with its monitor, and two regions of shared memory."""

_NO_STREAMS: dict[str, Any] = {"state": None, "control": None, "info": None, "cameras": {}}
_SWITCH_INTERVAL_S = 0.0005
"""How long a Python thread may hold the interpreter: the default of 5 ms would ruin live pacing."""


class Server:
    """A project, a level, the ops on them; and, once started, the sockets."""

    def __init__(self, config: ServerConfig, targets: Sequence[str | Path] = (), *, in_process: bool = False) -> None:
        """``in_process``: all requests come from this process, so that file ops have its user's own rights."""
        check_version()
        route_mujoco_log()
        self.config = config.checked()
        callbacks = plugins.load(self.config.plugins)
        self.project = open_project(self.config.project)
        roots = self.config.roots(in_process=in_process)
        _warn_of_unwritable(self.project.folder)
        self._recovery = recover_in_background(self.project.journal_dir, self.project.replays_dir)
        _sweep(self.project)
        self._decomposer = Decomposer(self.project.converted_meshes_dir)
        importer = Importer(self.project, roots)
        library = Library(importer.find, self._decomposer)
        level = open_targets(self.project, targets, library)
        importer.trust_only(level)
        self.world = World(
            self.project,
            level,
            library,
            importer,
            from_project=is_of_project(self.project, targets, level),
        )
        self.play = Play(
            self.world,
            roots,
            pinned_mode=None if self.config.step_mode is StepMode.AUTO else self.config.step_mode,
            render_profile=self.config.render_profile,
            save_debug=self.config.save_debug_xml,
            callbacks=callbacks,
        )
        overlay = Overlay()
        source = ViewportSource(self.play)
        self._viewport = Viewport(source, overlay, profile=self.config.render_profile)
        pictures = ModelPictures(profile=self.config.render_profile)
        self._exports = Exports(self.play, source, self._viewport, self.config.render_profile)
        self._log_buffer = LogBuffer()
        self._log_buffer.attach()
        self._parts = Parts(self.play, self.world, overlay, self._viewport, pictures, self._exports, self._log_buffer)
        self.dispatcher = Dispatcher(self._parts)
        self._registry = RequestRegistry(identify=request_key)
        self._publishers: list[ScenePublisher] = []
        self.play.on_start.append(self._attach_publishers)
        self.play.on_stop.append(self._detach_publishers)
        self._rpc: ZmqRpcServer | CurveRpcServer | None = None
        self._shm: SharedMemory | None = None
        self._streams: Streams | None = None
        self._health: HealthServer | None = None
        self._editor: EditorProcess | None = None

    def begin(self, mode: StepMode = StepMode.LIVE, timeout_s: float = DEFAULT_TIMEOUT_S) -> None:
        """Prepare this process and, unless the config says no, start to play.

        Compilation goes on in the background when it takes longer than ``timeout_s``; ``play.status()`` then tells.
        """
        sys.setswitchinterval(_SWITCH_INTERVAL_S)
        if self.config.play:
            self.play.begin(mode=mode, timeout_s=timeout_s)

    def bind_sockets(self) -> ZmqRpcServer | CurveRpcServer:
        """Take the ports; requests wait there until `open_sockets`. ConfigError names a taken port and its option."""
        base, ports, share = self.config.endpoint_base, self.config.ports, self.config.share
        keys = None if self.config.keys is None else KeysFolder(self.config.keys)
        self._parts.audit = AuditLog(self.project.folder / "Saved" / "URLab" / "audit.jsonl")
        access.refusals.listeners.append(self._record_refusal)
        if keys is None:
            self._rpc = ZmqRpcServer(base, ports.step, self.dispatcher, self._registry, share=share)
        else:
            registries = partial(RequestRegistry, identify=request_key)
            self._rpc = CurveRpcServer(
                base, ports.step, self.dispatcher, keys, registries, on_connected=self._record_connection
            )
        self._streams = self._parts.streams = Streams(base, ports, share=share, keys=keys)
        self._add_publisher(self._streams)
        if self.config.metrics_port is not None:
            self._open_health(self.config.metrics_port)
        return self._rpc

    def _record_connection(self, key: KnownKey, address: str) -> None:
        if self._parts.audit is not None:
            self._parts.audit.record("connected", key.name, address, role=key.role)

    def _record_refusal(self, key: str, text: str) -> None:  # noqa: ARG002 - the text has it
        if self._parts.audit is not None:
            self._parts.audit.record("refused", "", reason=text)

    def _open_health(self, port: int) -> None:
        """On this machine only, unless everything is to be open to the network: it asks for no key."""
        base = self.config.endpoint_base if self.config.insecure and not is_local(self.config.host) else _THIS_MACHINE
        self.dispatcher.figures = RequestFigures()
        queues = self._rpc.queues if self._rpc is not None else None
        report = HealthReport(self.play, self.dispatcher, self._streams, queues, is_played=self.config.play)
        self._health = HealthServer(base, port, report, share=self.config.share)

    def open_sockets(self) -> None:
        """Serve, on ports that are bound now unless they were before, and in shared memory where there is any."""
        rpc = self._rpc or self.bind_sockets()
        watchdog.start()
        if self.config.shm:
            self._open_shared_memory()
        rpc.start()
        self.open_editor()

    def open_editor(self) -> None:
        """Listen for browsers, if the config says so; ConfigError where the editor is asked for and not installed.

        Beyond this machine only encrypted, or where everything is open: what a page types would be readable else.
        """
        if self.config.web is False or (self.config.web is None and not is_installed()):
            return
        is_open = is_local(self.config.host) or self.config.tls is not None or self.config.insecure
        host = self.config.host if is_open and not self.config.host.startswith("ipc://") else "127.0.0.1"
        self._editor = self._parts.editor = EditorProcess(
            self.dispatcher,
            self._registry,
            prepare=self._viewport.prepare_file,
            host=host.replace("localhost", "127.0.0.1"),
            port=self.config.web_port,
            token=self.config.web_token,
            share=self.config.share,
            tls=self.config.tls,
        )

    def _open_shared_memory(self) -> None:
        reply_bytes = _largest_reply(self.play.manager) if self.play.is_playing else 0
        try:
            self._shm = SharedMemory(self.dispatcher, self._registry, reply_bytes=reply_bytes)
        except ShmUnavailable as missing:
            log.warning("no shared memory, clients use ZeroMQ: %s (--no-shm ends this message)", missing)
            return
        self._parts.shared_memory = self._shm
        self._add_publisher(self._shm.streams)
        self._shm.start()

    def _add_publisher(self, publisher: ScenePublisher) -> None:
        """Let a publisher follow the scene that plays, and all that will."""
        self._publishers.append(publisher)
        if self.play.is_playing:
            self._attach(publisher, self.play.manager)

    def _attach_publishers(self, manager: Manager) -> None:
        silent = len(manager.capture.cameras) - _most_streamed_cameras()
        if silent > 0 and self.config.camera_streams:
            log.warning(
                "%d of %d cameras do not stream, as this process may open only %d files (ulimit -n); steps have their "
                "pictures all the same",
                silent,
                len(manager.capture.cameras),
                os.sysconf("SC_OPEN_MAX"),
            )
        for publisher in self._publishers:
            self._attach(publisher, manager)

    def _attach(self, publisher: ScenePublisher, manager: Manager) -> None:
        capture = manager.capture
        streamed = list(capture.cameras.values()) if self.config.camera_streams else []
        streamed = streamed[: _most_streamed_cameras()]
        cameras = [StreamedCamera(one.name, one.topic, one.owner, one.key, one.frame_bytes) for one in streamed]
        publisher.attach(StreamSource(manager, self.config.rows), cameras)
        for camera in streamed:
            camera.subscribed.append(partial(publisher.wants, camera.topic))
        capture.on_frame.append(lambda camera, frame: publisher.publish(camera.topic, frame.metadata(), frame.data))
        publisher.on_subscriber = capture.wake
        capture.wake()

    def _detach_publishers(self, manager: Manager) -> None:
        manager.capture.on_frame.clear()
        for publisher in self._publishers:
            publisher.detach()

    def endpoints(self) -> dict[str, Any]:
        """Where everything is; what this server does not have is None."""
        streams = self._streams.endpoints() if self._streams is not None else _NO_STREAMS
        return {
            "pid": os.getpid(),
            "step": self._rpc.endpoint if self._rpc is not None else None,
            **{name: streams[name] for name in ("state", "control", "info")},
            "web": self.web_url,
            "metrics": self.metrics_url,
            "project": str(self.project.folder),
            "cameras": streams["cameras"],
        }

    @property
    def metrics_url(self) -> str | None:
        """Where the health checks and figures are, if they were asked for."""
        return self._health.url if self._health is not None else None

    @property
    def web_url(self) -> str | None:
        """The editor's page, with its token, if there is one."""
        return self._editor.url if self._editor is not None else None

    @property
    def shm_folder(self) -> Path | None:
        """Where the regions of shared memory are, if there are any."""
        return self._shm.folder if self._shm is not None else None

    def write_ready_file(self) -> None:
        """Tell the process that waits for it that everything is up."""
        write_ready_file(self.config.ready_file, self.endpoints())

    def remove_ready_file(self) -> None:
        """Remove the ready file, ours or one that a killed server left behind."""
        remove_ready_file(self.config.ready_file)

    def leave_no_files(self) -> None:
        """For a process that ends at once, without `close`."""
        if self._shm is not None:
            self._shm.remove_files()

    def close(self) -> None:
        """Stop playing (an unsaved recording is kept) and close every socket."""
        if self._editor is not None:
            self._editor.close()
            self._editor = self._parts.editor = None
        self.dispatcher.drain()
        self._exports.jobs.close()
        self.world.importer.close()
        try:
            self.play.stop(_CLOSE_LIMIT_S)
        except OpTimeout as busy:
            log.warning("closing anyway: %s", busy.message)
        if self._shm is not None:
            self._shm.close()
            self._shm = self._parts.shared_memory = None
        if self._record_refusal in access.refusals.listeners:
            access.refusals.listeners.remove(self._record_refusal)
        if self._rpc is not None:
            self._rpc.stop()
            self._rpc = None
        if self._streams is not None:
            self._streams.close()
            self._streams = self._parts.streams = None
        if self._health is not None:
            self._health.close()
            self._health = None
        self._publishers.clear()
        self._viewport.close()
        self._decomposer.close()
        if self._recovery is not None:
            self._recovery.join(_CLOSE_LIMIT_S)
        self._log_buffer.detach()


_ROOTS = ("model_roots", "write_roots")


class LaunchOptions(TypedDict, total=False):
    """What `launch` takes beside its own arguments; `launch` says what each means."""

    web_port: int
    web_token: str
    plugins: str | Sequence[str]
    model_roots: str | Path | Sequence[str | Path]
    write_roots: str | Path | Sequence[str | Path]
    save_debug_xml: bool


def launch(
    target: str | Path | Sequence[str | Path] | None = None,
    *,
    step_mode: StepMode | str = StepMode.DIRECT,
    observations: str = "standard",
    sim_options: Mapping[str, Any] | None = None,
    project: Path | str | None = None,
    play: bool = True,
    render_profile: RenderProfile | str = RenderProfile.AUTO,
    web: bool = False,
    start_timeout_s: float | None = None,
    **options: Unpack[LaunchOptions],
) -> URLabClient:
    """Start a server inside this process and return a connected client; closing the client ends the server.

    ``target`` is a level's name, a model file, or several model files; None is the shipped demo level. There are no
    ports and no second process. When this returns, the simulation is there; if it cannot be, the error says why.

    - ``step_mode``: "direct" (default; time moves when you step), "live", "puppet", or "auto" for the mode in force.
    - ``observations``: what replies carry: "minimal", "standard" (default) or "full".
    - ``sim_options``: physics options to begin with, as `client.runtime.set_sim_options` takes them, for example
      ``{"timestep": 0.001}``; by default those of the level and its models.
    - ``project``: the folder for levels, imports and recordings; by default the per-user data folder.
    - ``play``: False stays in the editor, with nothing simulated until ``client.sim.start()``.
    - ``render_profile``: "auto" (default), "fast" or "quality".
    - ``web``: True opens the browser editor on a port of this machine; ``client.show()`` shows it in a notebook, and
      ``client.viewport.editor_url()`` is its address.
    - ``web_port``, ``web_token``: its port (8080, or any free one) and its token (one is made).
    - ``plugins``: the name of a module to import first, or several; see `urlab.plugins`.
    - ``start_timeout_s``: give up with `ConfigError` if compiling takes longer; by default it takes what it takes.
    - ``model_roots``, ``write_roots``: folders that file ops may read and write; by default they have your own rights.
    - ``save_debug_xml``: True writes the compiled scene to ``Saved/URLab`` of the project.
    """
    _refuse_unknown_options(options)
    chosen: dict[str, Any] = {**options, "play": play, "render_profile": render_profile, "web": web}
    chosen |= {name: _several(value) for name, value in chosen.items() if name in ("plugins", *_ROOTS)}
    chosen |= {name: tuple(Path(root) for root in chosen[name]) for name in _ROOTS if name in chosen}
    if project is not None:
        chosen["project"] = Path(project)
    mode = StepMode(step_mode)
    targets = _several(target or ())
    server = Server(replace(ServerConfig(), **chosen), targets, in_process=True)
    try:
        server.begin(mode, threading.TIMEOUT_MAX if start_timeout_s is None else start_timeout_s)
        _refuse_failed_start(server, start_timeout_s)
        server.open_editor()
    except BaseException:
        server.close()
        raise
    transport = InProcessTransport(server.dispatcher.handle, on_close=server.close)
    client = URLabClient("inproc://urlab", step_mode=mode, transport=transport)
    try:
        client.discover(observations)
        if sim_options:
            client.runtime.set_sim_options(**sim_options)
    except BaseException:
        client.close()
        raise
    return client


def _several(given: str | Path | Sequence[str | Path]) -> tuple[str | Path, ...]:
    """One or several, as several."""
    return (given,) if isinstance(given, str | Path) else tuple(given)


def _refuse_unknown_options(options: Mapping[str, Any]) -> None:
    fields = set(LaunchOptions.__annotations__)
    of_sockets = {field.name for field in dataclasses.fields(ServerConfig)} - {*inspect.signature(launch).parameters}
    for name in options:
        if name in OPTION_FIELDS:
            raise TypeError(
                f"launch() has no option {name!r}, which is one of the simulation: "
                f"launch(..., sim_options={{{name!r}: ...}}), or client.runtime.set_sim_options({name}=...)"
            )
        if name in of_sockets - fields:
            raise TypeError(
                f"launch() has no option {name!r}: it is one of `urlab serve`, and launch() opens no sockets"
            )
        if name not in fields:
            exist = sorted({*inspect.signature(launch).parameters, *fields} - {"target", "options"})
            close = difflib.get_close_matches(name, exist, n=1)
            hint = f"did you mean {close[0]!r}? " if close else ""
            raise TypeError(f"launch() has no option {name!r}; {hint}There are: {', '.join(exist)}")


def open_project(folder: Path) -> Project:
    """The project in that folder, with what is shipped."""
    return Project(
        folder.expanduser().resolve(),
        shipped_models={name: robots.model_path(name) for name in robots.model_names()},
        shipped_levels={name: robots.level_path(name) for name in robots.level_names()},
    )


def _most_streamed_cameras() -> int:
    """So many that half of the file descriptors that this process may have are left for everything else."""
    return int(os.sysconf("SC_OPEN_MAX")) // 2 // _DESCRIPTORS_PER_CAMERA


def _warn_of_unwritable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        writable = os.access(folder, os.W_OK)
    except OSError:
        writable = False
    if not writable:
        log.warning("the project folder %s cannot be written: nothing can be saved. Choose another: --project", folder)


def _sweep(project: Project) -> None:
    """Remove what killed processes of this user have left, here and among the temporary files."""
    replays = [project.replays_dir, *(one for one in project.replays_dir.glob("**/") if not one.is_symlink())]
    sweep([project.levels_dir, project.converted_meshes_dir, *replays])
    sweep([Path(tempfile.gettempdir())], f"urlab-*-{WORK}*")
    sweep([Path(tempfile.gettempdir())], "urlab-*-supervise-*")
    sweep([Path(tempfile.gettempdir())], "urlab-*-watch-*")
    sweep([Path(tempfile.gettempdir())], f"urlab-*-{EDITOR_WORK}*")
    sweep_stored(project.imports_dir)
    sweep_stored(project.uploads_dir)


def _largest_reply(manager: Manager) -> int:
    """The bytes of a reply at the full level, generously, with the pictures of all cameras."""
    pictures = sum(one.frame_bytes for one in manager.capture.cameras.values())
    with manager.engine.locked():
        return pictures + _FULL_TO_STANDARD * len(StreamSource(manager).state())


def _refuse_failed_start(server: Server, limit_s: float | None) -> None:
    status = server.play.status()
    if server.config.play and status.state is PIEState.COMPILING and limit_s is not None:
        raise ConfigError(f"the scene was still compiling after start_timeout_s = {limit_s:g} s")
    if server.config.play and status.state is not PIEState.READY:
        raise ConfigError(f"the scene cannot be played: {status.compile_error}")

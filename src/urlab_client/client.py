"""`URLabClient`: one session with a server, and the scene that it shows."""

import os
from collections.abc import Iterable, Mapping
from typing import Any, Self

import msgspec
import mujoco

from urlab_client.batch import URLabBatch
from urlab_client.enums import CameraTiming, ObservationLevel, StepMode, coerce, wire
from urlab_client.errors import counted
from urlab_client.handles.articulation import URLabArticulation
from urlab_client.handles.entity import URLabEntity
from urlab_client.html import EditorView, client_html
from urlab_client.namespaces.debug import DebugNamespace
from urlab_client.namespaces.outliner import OutlinerNamespace
from urlab_client.namespaces.recording import URLabRecordingAPI
from urlab_client.namespaces.replay import URLabReplayAPI
from urlab_client.namespaces.runtime import RuntimeNamespace
from urlab_client.namespaces.scene import SceneNamespace
from urlab_client.namespaces.sim import SimNamespace
from urlab_client.namespaces.viewport import ViewportNamespace
from urlab_client.rpc import payload_of
from urlab_client.session import ClientSession
from urlab_client.transports import (
    ClientKey,
    ServerAddress,
    Transport,
    check_base,
    check_ports,
    find_key,
    open_transport,
)
from urlab_wire.codec import Tree
from urlab_wire.ops.stepping import ModelWrites, ResetRequest

Cameras = bool | str | Iterable[str] | Mapping[str, str]
"""``include_cameras`` of a step: all or none, one camera or several by name, or ``{camera: "sync" | "latest"}``."""

JointValues = Mapping[str, Mapping[str, Any]]
"""``{prefix: {joint: value}}``; a value is a number, several for a ball or free joint, or an array of them."""

_PUPPET, _DIRECT = StepMode.PUPPET, StepMode.DIRECT
_LEVELS: Mapping[str, str] = {level.value: level.value for level in ObservationLevel}
_SYNC = CameraTiming.SYNC.value


class LevelOfDiscover(str):
    """The default of ``step(observations=...)``: the level of ``discover()``, whose own default is this word."""

    __slots__ = ()


_LEVEL_OF_DISCOVER = LevelOfDiscover(ObservationLevel.STANDARD.value)


class URLabClient(ClientSession):
    """A client of one server: ``discover()``, then ``step()``.

    ```python
    from urlab_client import URLabClient

    with URLabClient("tcp://localhost", step_mode="direct") as client:
        client.discover()
        for name, robot in client.articulations.items():
            print(name, robot.qpos_array)
        client.step(10)
    ```

    ``address`` is a base (``tcp://host`` or ``ipc:///path``) to which ports are appended. ``transport`` is "zmq",
    "shm" (the server's shared memory, on the same machine; what cannot go there goes over ZeroMQ, and the log says why;
    ``shm_dir`` names the folder if it is not where the handshake says), or a `Transport`, which is used as it is.

    ``step_mode`` is "direct", "puppet" or "live", which ``discover()`` asks the server for, or "auto": then the mode in
    force is taken, and ``client.step_mode`` says which. A client that ends up in another mode than it asked for warns
    (`URLabModeWarning`). ``close()`` gives back a mode that this client changed: the one that it found.
    ``auto_promote_step_mode=False`` asks for none.

    With ``local_model=False`` there is no ``model`` and no ``data``: handles show what replies tell. With
    ``fetch_model=False`` (extension) the model, which may be large, is not even sent: there are no ``model`` and no
    ``data`` then, and robots have no parts (joints, actuators, sensors, bodies). ``observer``
    (extension) looks on without taking the session over and without driving: its ``step()`` only reads. ``operator``
    (extension) does not take it over either, but may change the world: pause, reset, spawn. It asks for no step mode
    of its own; its ``step()`` sends only setpoints that were changed here, and runs a live simulation that is paused;
    ``step(0)`` only reads.

    In live and auto mode every camera with an endpoint is streamed into its view, and rendered for that; with
    ``camera_streams=False`` (extension) none is.

    ``key`` (extension) is the file that `urlab keys new` wrote, for a server that asks for keys; without it the
    environment variable URLAB_KEY may name one. ``takeover`` (extension) takes the driver's seat from another caller
    that uses it; without it ``discover()`` is refused then.

    A ``state_port`` other than 5555 is used as it is; else the handshake may tell another one.

    ``rcv_timeout_ms`` is how long to wait for a server that listens and for its answer. A time below the default of
    5000 is kept to; else an op waits at least for the server's own limit, 5 s (hello 30 s, steps with pictures 60 s)
    and 2 s more. Slow ops always wait for theirs and 2 s more: create_level, load_level, save_level, stop_pie,
    spawn_actor, duplicate_actor, list_actors, find_actors and get_actor_bounds 30 s; spawn_grid, recording_save,
    replay_load and screenshots 60 s; import_xml and add_quick_convert 120 s; ``sim.start`` its ``timeout_s`` and 5 s.

    ``data`` follows the server at every step from the moment that it is first read, until a handshake makes a new one.
    Before that a step only stores what the reply says: ``data``, ``model`` and the handles bring it into the local
    data when they are read, with the same result. A loop that needs no more than replies, sensors and ``qpos_array``
    does not pay for the rest.

    Calls may come from any thread and are served one at a time. State (``model``, ``data``, handles) belongs to the
    stepping thread: others hold ``_data_lock`` while they read it. Handles (robots, their parts, entities, cameras)
    stay good over ``discover()``, ``sim.stop()`` and ``sim.start()`` while the scene has what they stand for;
    afterwards they raise `URLabGoneError`. Attributes are read-only, and one that does not exist cannot be set.
    """

    def __init__(
        self,
        address: str = "tcp://localhost",
        *,
        step_mode: str | StepMode = "auto",
        step_port: int = 5559,
        state_port: int = 5555,
        ctrl_port: int = 5556,
        info_port: int = 5557,
        mujoco_version_check: bool = True,
        local_model: bool = True,
        rcv_timeout_ms: int = 5000,
        auto_promote_step_mode: bool = True,
        transport: str | Transport = "zmq",
        shm_dir: str | None = None,
        observer: bool = False,
        camera_streams: bool = True,
        operator: bool = False,
        takeover: bool = False,
        key: ClientKey | str | os.PathLike[str] | None = None,
        fetch_model: bool = True,
    ) -> None:
        if observer and operator:
            raise ValueError("a client is an observer or an operator, not both: an observer may not change the world")
        check_base(address, own_transport=not isinstance(transport, str))
        check_ports(step_port=step_port, state_port=state_port, ctrl_port=ctrl_port, info_port=info_port)
        own_key = find_key(key) if isinstance(transport, str) else None
        where = ServerAddress(address, step_port, state_port, rcv_timeout_ms, shm_dir, own_key)
        super().__init__(
            open_transport(transport, where) if isinstance(transport, str) else transport,
            coerce(StepMode, step_mode),
            rcv_timeout_ms=rcv_timeout_ms,
            local_model=local_model and fetch_model,
            fetch_model=fetch_model,
            mujoco_version_check=mujoco_version_check,
            auto_promote_step_mode=auto_promote_step_mode,
            observer=observer,
            camera_streams=camera_streams,
            operator=operator,
            takeover=takeover,
        )
        self._address = address
        self._ports = {"step": step_port, "state": state_port, "ctrl": ctrl_port, "info": info_port}
        self._scene = SceneNamespace(self)
        self._sim = SimNamespace(self)
        self._runtime = RuntimeNamespace(self)
        self._outliner = OutlinerNamespace(self)
        self._debug = DebugNamespace(self)
        self._viewport = ViewportNamespace(self)
        self._recording = URLabRecordingAPI(self)
        self._replay = URLabReplayAPI(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def show(self, *, height: int = 600) -> EditorView:
        """The browser editor of this server (extension): shown in a notebook, elsewhere its address.

        RuntimeError when the server has none: `urlab serve --web`, or ``urlab.launch(..., web=True)``.
        """
        return EditorView(self.viewport.editor_url(), height)

    def __repr__(self) -> str:
        if not self.session_id:
            return (
                f"URLabClient({self._address!r}, {self._step_mode.value}, {'closed' if self._closed else 'no session'})"
            )
        scene = counted(len(self._articulations), "robot") if self._manager_present else "nothing plays"
        clock = f"step {self.step_count}, t={self.sim_time:.4g} s"
        closed = ", closed" if self._closed else ""
        return f"URLabClient({self._address!r}, {self._step_mode.value}, {scene}, {clock}{closed})"

    def _repr_html_(self) -> str:
        return client_html(self)

    @property
    def address(self) -> str:
        """The base address, without a port."""
        return self._address

    @property
    def step_port(self) -> int:
        """The port of requests."""
        return self._ports["step"]

    @property
    def state_port(self) -> int:
        """The port of the state stream, as the constructor had it; ``streams`` has the server's."""
        return self._ports["state"]

    @property
    def ctrl_port(self) -> int:
        """The port of control messages."""
        return self._ports["ctrl"]

    @property
    def info_port(self) -> int:
        """The port of the lists of actuators and cameras."""
        return self._ports["info"]

    @property
    def scene(self) -> SceneNamespace:
        """Levels, imports and actors."""
        return self._scene

    @property
    def sim(self) -> SimNamespace:
        """Start and stop the simulation."""
        return self._sim

    @property
    def runtime(self) -> RuntimeNamespace:
        """Change and read the running simulation."""
        return self._runtime

    @property
    def outliner(self) -> OutlinerNamespace:
        """Look through the level."""
        return self._outliner

    @property
    def debug(self) -> DebugNamespace:
        """Drawings and texts in every view."""
        return self._debug

    @property
    def viewport(self) -> ViewportNamespace:
        """The camera of the viewport, and its pictures."""
        return self._viewport

    @property
    def recording(self) -> URLabRecordingAPI:
        """Record the running simulation."""
        return self._recording

    @property
    def replay(self) -> URLabReplayAPI:
        """Show recordings again."""
        return self._replay

    def step(
        self,
        n_steps: int = 1,
        *,
        include_cameras: Cameras = False,
        observations: str | ObservationLevel | None = _LEVEL_OF_DISCOVER,
    ) -> Tree:
        """Advance physics and observe; returns the reply. Afterwards ``data`` and all handles are current.

        direct: the server steps ``n_steps`` times with the setpoints of ``ctrl_array``; 0 (extension) only observes,
        and what waits to be sent goes on waiting. puppet: ``data`` is stepped here (0 = not at all) and pushed. live
        and auto: setpoints are stamped and the state is read. Wrenches of ``apply_xfrc`` are sent once.
        ``observations`` is for this step only; left out (or None) it is the level of ``discover()``, which is
        "standard" unless that named another.

        ``include_cameras``: a name or several (frames of exactly this step), True (all, the newest frames), or
        ``{camera: "sync" | "latest"}``. The frames are in the camera views afterwards, and raw in ``reply["cameras"]``
        under the names asked for. In live mode that also has the frames of the streams as soon as there are any:
        ``[prefix][camera]["pixels"]``.
        """
        self._refuse_without_session("step")
        level = self._level if observations is _LEVEL_OF_DISCOVER else self._level_word(observations)
        request = self._step_request(n_steps)
        request["observations"] = level
        cameras = request["include_cameras"] = cameras_field(include_cameras)
        patience_ms = self._channel.picture_timeout_ms() if cameras else None
        reply = self._channel.call("step", request, expected_op="step_ok", rcv_timeout_ms=patience_ms)
        self._absorb_step_reply(reply)
        self._show_streamed_frames(reply)
        return reply

    def batch(
        self, num: int, *, threads: int = 0, randomize: Mapping[str, Mapping[str, Any]] | None = None
    ) -> URLabBatch:
        """``num`` copies of the running scene as it stands now, stepped together on the server (extension).

        ``threads`` is 0 for as many as the server has cores. ``randomize`` has entries as `reset` takes them, but for
        noise of cameras and textures; ``batch.reset(seeds=...)`` draws them.
        """
        self._refuse_without_session("batch")
        return URLabBatch(self, num, threads=threads, randomize=randomize)

    def reset(
        self,
        keyframe_name: str | None = None,
        seed: int | None = None,
        per_articulation_qpos: JointValues | None = None,
        *,
        scope: str | None = None,
        randomize: bool | Mapping[str, Mapping[str, Any]] | None = None,
    ) -> Tree:
        """Go back to the start or to a keyframe, with joint overrides ``{prefix: {joint: value}}``.

        ``scope`` (extension): ``"state"`` lets the time go on, ``"time"`` lets only the time go back.

        A ``seed`` draws what the level's ``[randomize]`` table says, or (extension) the entries of ``randomize``: those
        of docs/randomisation.md, by name. ``False`` draws nothing, ``True`` draws without a seed too. What was drawn is
        in ``reply["randomized"]``, and ``model`` follows. Without either the model is as it was compiled.

        Returns a reply of the shape of ``step()``, mirrored into ``data`` in every mode. ``ctrl_array`` is filled with
        the setpoints that the reset has put in force, where the reply tells them, and else stays as it is.
        """
        self._refuse_without_session("reset")
        if self._step_mode is not _PUPPET:
            self._edits.look(self._model)
        qpos = per_articulation_qpos
        request = ResetRequest(
            keyframe_name=keyframe_name,
            seed=seed,
            per_articulation_qpos=None if qpos is None else {prefix: dict(joints) for prefix, joints in qpos.items()},
            scope=scope,
            randomize=_entries(randomize),
        )
        reply = self._rpc("reset", payload_of(request), expected_op=("reset_ok", "step_ok"))
        with self._data_lock:
            if reply.get("model"):
                self._take_model(msgspec.convert(reply["model"], ModelWrites))
            if self._mirror is not None:
                self._mirror.reset()
            self._absorb_step_reply(reply, authoritative=True)
            self._seed_setpoints(reply.get("setpoints") or {})
        return reply

    def _level_word(self, observations: str | None) -> str:
        return self._level if observations is None else level_word(observations)

    def _step_request(self, n_steps: int) -> Tree:
        """A step's fields, as a map: making one of a typed request for the transport takes 1.1 us of 21."""
        if self._observer or (n_steps == 0 and self._step_mode is _DIRECT and not self._operator):
            return {"n_steps": 0, "per_articulation": {}}
        if self._step_mode is not _PUPPET:
            if self._edits.suspected:
                self._edits.look(self._model)
            blocks = commands(self._articulations, self._plain_entities, changed_only=self._operator)
            return {"n_steps": n_steps, "per_articulation": blocks}
        if not self._local_model:
            raise RuntimeError(
                "puppet mode steps a local model: make the client with local_model=True and fetch_model=True"
            )
        if self._data is None:
            raise RuntimeError("puppet mode steps a local model, and there is none yet: start one with sim.start()")
        with self._data_lock:
            state = puppet_state(self._model, self._written_data(), self._articulations.values(), n_steps)
        return {"mode": _PUPPET.value, "n_steps": n_steps, **state, "per_articulation": {}}


def _entries(randomize: bool | Mapping[str, Mapping[str, Any]] | None) -> bool | dict[str, Any] | None:
    return {key: dict(one) for key, one in randomize.items()} if isinstance(randomize, Mapping) else randomize


def commands(
    articulations: Mapping[str, URLabArticulation], entities: Iterable[URLabEntity], *, changed_only: bool = False
) -> Tree:
    """What direct and live steps send: every articulation's setpoints, and the wrenches that wait.

    With ``changed_only`` articulations are left out whose setpoints and wrenches did not change here.
    """
    blocks = {prefix: one.command() for prefix, one in articulations.items() if not changed_only or one.has_news}
    for entity in entities:
        if entity._pending_xfrc:
            blocks[entity._name] = {"xfrc_applied": entity._take_xfrc()}
    return blocks


def puppet_state(
    model: mujoco.MjModel, data: mujoco.MjData, articulations: Iterable[URLabArticulation], n_steps: int
) -> Tree:
    """Step the local data ``n_steps`` times (0 = not at all), with the setpoints that changed; returns its state."""
    for one in articulations:
        one.write_ctrl(data, changed_only=True)
    if n_steps > 0:
        mujoco.mj_step(model, data, nstep=n_steps)
    vectors = {name: getattr(data, name).tolist() for name in ("qpos", "qvel", "ctrl")}
    return {"time": float(data.time), **vectors}


def level_word(observations: str) -> str:
    """The plain word of an observation level."""
    known = _LEVELS.get(observations) if isinstance(observations, str) else None
    return known or coerce(ObservationLevel, observations).value


def cameras_field(include_cameras: Cameras) -> bool | dict[str, str]:
    """``include_cameras`` as it travels; cameras by name alone are those of exactly this step."""
    if include_cameras is False or include_cameras is True:
        return include_cameras
    if isinstance(include_cameras, Mapping):
        return {name: wire(timing) for name, timing in include_cameras.items()}
    if include_cameras is not None and not isinstance(include_cameras, Iterable):
        raise TypeError(
            f"include_cameras is a bool, a name, several names or {{name: timing}}, not {include_cameras!r}"
        )
    names = [include_cameras] if isinstance(include_cameras, str) else list(include_cameras or ())
    return dict.fromkeys(names, _SYNC) if names else False

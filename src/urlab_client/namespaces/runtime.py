"""``client.runtime``: change and read a running simulation."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Unpack

import msgspec
import numpy as np

from urlab_client.checks import Vector, finite, maybe_numbers, numbers, switch
from urlab_client.enums import CameraMode, ControlSource, StepMode, coerce
from urlab_client.enums import wire as wire_word
from urlab_client.handles.articulation import FREE_QPOS, Index, URLabArticulation
from urlab_client.handles.camera import URLabCameraView
from urlab_client.mirror import mirror_options
from urlab_client.namespaces.base import RpcNamespace, Target, targeted
from urlab_client.results import result_of
from urlab_client.rpc import payload_of
from urlab_client.types import (
    CameraStreaming,
    Contact,
    ContactsResult,
    KeyframeInfo,
    MocapPose,
    SimOptions,
    SimOptionValues,
    StateInfo,
)
from urlab_wire.codec import Tree
from urlab_wire.ops import runtime as wire
from urlab_wire.ops.stepping import ForwardRequest, ModelChange, RestoreStateRequest

StreamOrder = bool | Mapping[str, Any]
"""On or off, or some of ``zmq`` (bool), ``shm`` (bool) and ``rate_hz`` (float)."""


ModelParam = Mapping[str, Any] | tuple[str, str, str, Any]
"""A changed parameter: ``kind``, ``name``, ``field`` and ``value``, by these names or in this order."""


class RuntimeNamespace(RpcNamespace):
    """Mutators and readers of live physics. All of them need a running simulation."""

    NAME = "runtime"

    def set_paused(self, paused: bool) -> bool:
        """Halt or resume live physics, or the replay that live mode plays; returns the state in force."""
        wanted = switch("paused", paused)
        return self._ask(wire.SetPausedRequest(paused=wanted), absent={"paused": wanted}).paused

    def set_sim_speed(self, percent: float) -> float:
        """Pace live physics and replays (100 = real time); returns the percentage in force, within 5 and 100."""
        wanted = finite("percent", percent)
        return self._ask(wire.SetSimSpeedRequest(percent=wanted), absent={"percent": wanted}).percent

    def set_control_source(self, source: str, *, articulation: str | None = None) -> None:
        """Let the actuators follow the wire ("zmq") or a user interface ("ui"), for one articulation or all."""
        word = coerce(ControlSource, source).value
        self._ask(wire.SetControlSourceRequest(source=word, articulation=articulation))

    def set_twist(
        self,
        articulation: str,
        *,
        linear: Vector = (0, 0, 0),
        angular: Vector = (0, 0, 0),
        actions: int | None = None,
    ) -> None:
        """Command a twist: linear (vx, vy, -) m/s, angular (-, -, yaw rate) rad/s, and (extension) action bits."""
        speed, turn = numbers("linear", linear), numbers("angular", angular)
        self._ask(wire.SetTwistRequest(articulation=articulation, linear=speed, angular=turn, actions=actions))

    def set_qpos(self, target: Target, qpos: Vector, *, by_name: bool = False, qvel: Vector | None = None) -> None:
        """Write an articulation's whole qpos, or the seven numbers of its free root, here and on the server.

        Metres, radians, quaternions w, x, y, z; in joint order.

        ``qvel`` (extension) are the velocities of the same joints; they alone are written when ``qpos`` is empty. Here
        they show with the next step.
        """
        name, by = targeted(target, by_name)
        speeds = None if qvel is None else [float(value) for value in qvel]
        places = [float(value) for value in qpos]
        reply = self._ask(wire.SetQposRequest(target=name, target_by=by, qpos=places, qvel=speeds))
        written = reply.qpos
        index = self._written_index(reply)
        client = self._client
        with client._data_lock:
            if written and index is not None and client._mirror is not None:
                client._mirror.write_qpos(index, written)
            robot = self._written_robot(reply)
            if written and robot is not None:
                robot._observed.qpos = [*written, *robot._observed.qpos[len(written) :]]

    def set_mocap_pose(self, body: str, *, pos: Vector | None = None, quat: Vector | None = None) -> MocapPose:
        """Move a mocap body, by compiled name: ``pos`` metres, ``quat`` w, x, y, z. Returns the pose in force."""
        if pos is None and quat is None:
            raise ValueError("set_mocap_pose needs pos or quat")
        place, turn = maybe_numbers("pos", pos), maybe_numbers("quat", quat, 4)
        pose = result_of(MocapPose, self._ask(wire.SetMocapPoseRequest(body=body, pos=place, quat=turn)))
        client = self._client
        with client._data_lock:
            if client._mirror is not None:
                client._mirror.write_mocap(pose.body or body, pose.pos, pose.quat)
        return pose

    def read_mocap_pose(self, body: str) -> MocapPose:
        """The pose of a mocap body, by compiled name: metres and w, x, y, z, world frame."""
        return result_of(MocapPose, self._ask(wire.ReadMocapPoseRequest(body=body)))

    def get_contacts(
        self,
        *,
        body1: str | None = None,
        body2: str | None = None,
        geom1: str | None = None,
        geom2: str | None = None,
        max_contacts: int = 64,
    ) -> ContactsResult:
        """The active contacts that match every given name (compiled, or short where that is unique).

        At most ``max_contacts``; see `Contact` for units and frames.
        """
        names = wire.ContactFilter(body1=body1, body2=body2, geom1=geom1, geom2=geom2)
        request = wire.GetContactsRequest(
            max_contacts=int(max_contacts), filter=None if names == wire.ContactFilter() else names
        )
        reply = self._ask(request)
        contacts = [result_of(Contact, block) for block in reply.contacts]
        return ContactsResult(reply.n_contacts or len(contacts), reply.truncated, contacts)

    def list_keyframes(self) -> list[KeyframeInfo]:
        """The keyframes of the compiled model, by compiled name, flat arrays in the model's order."""
        return [result_of(KeyframeInfo, block) for block in self._ask(wire.ListKeyframesRequest()).keyframes]

    def set_sim_options(self, **opts: Unpack[SimOptionValues]) -> SimOptions:
        """Patch physics options (timestep, gravity, integrator, ...) on the server and in ``client.model.opt``.

        The fields are those of `SimOptions`, SI units; None is left out. Returns those in force. All or nothing: an
        unknown option or a wrong value is ``bad_value``, and nothing is changed.
        """
        given: Tree = {name: value for name, value in opts.items() if value is not None}
        if not given:
            raise ValueError("set_sim_options needs at least one field")
        echoed = self._ask(wire.SetSimOptionsRequest(options=given)).options
        client = self._client
        with client._data_lock:
            model = client.model
            if model is not None:
                mirror_options(model.opt, echoed)
                self._client._edits.follow(model)
        return _sim_options(echoed)

    def set_mode(self, mode: str | StepMode) -> StepMode:
        """Switch the step mode; returns the one in force, which becomes ``client.step_mode``."""
        return self._client._switch_mode(coerce(StepMode, mode))

    def set_camera_mode(self, camera: str | URLabCameraView, mode: str | CameraMode) -> CameraMode:
        """Switch what a camera sees (extension); returns the mode in force, which its view follows.

        The view has no frame then until one of the new mode arrives.
        """
        name = camera if isinstance(camera, str) else camera.full_name
        wanted = coerce(CameraMode, mode)
        reply = self._ask(wire.SetCameraModeRequest(camera=name, mode=wanted.value))
        in_force = coerce(CameraMode, reply.mode or None, default=wanted)
        view = self._client._camera_keys.get(name)
        if view is not None:
            view.follow_mode(in_force)
        return in_force

    def set_camera_streaming(self, cameras: Mapping[str, StreamOrder] | bool) -> dict[str, CameraStreaming]:
        """Switch streams of cameras on or off, or change their rate (extension); returns what is in force, by name.

        ``{"wrist": False}``, ``{"arm/eye": {"zmq": True, "rate_hz": 10}}``. ``True`` or ``False`` is for all cameras,
        those of scenes to come included. This client listens accordingly.
        """
        asked = cameras if isinstance(cameras, bool) else {name: _stream_order(one) for name, one in cameras.items()}
        reply = self._ask(wire.SetCameraStreamingRequest(cameras=asked))
        orders = dict.fromkeys(reply.cameras, asked) if isinstance(asked, bool) else asked
        in_force = {
            name: result_of(CameraStreaming, block, zmq_topic=block.zmq_topic or None)
            for name, block in reply.cameras.items()
        }
        for name, order in orders.items():
            self._follow_stream(name, order, in_force.get(name))
        self._client._sync_streams()
        return in_force

    def forward(self, *, include_cameras: bool | Mapping[str, str] = False) -> Tree:
        """Run mj_forward on the server (no integration) and observe; returns the reply, as ``step()`` does.

        ``include_cameras`` (extension) is as in ``step()``.
        """
        cameras = include_cameras if isinstance(include_cameras, bool) else _timings(include_cameras)
        patience_ms = self._client._channel.picture_timeout_ms() if cameras else None
        request = payload_of(ForwardRequest(include_cameras=cameras or None))
        reply = self._client._rpc("forward", request, rcv_timeout_ms=patience_ms)
        self._client._absorb_step_reply(reply)
        return reply

    # -- extensions: forces, setpoints of a user interface, states, constraints ----------------------------------

    def perturb(
        self,
        body: str,
        *,
        force: Vector | None = None,
        torque: Vector | None = None,
        point: Vector | None = None,
        target: Vector | None = None,
        target_quat: Vector | None = None,
        stiffness: float | None = None,
    ) -> None:
        """Hold a body (extension): push it, or drag it by a spring as MuJoCo's viewer does, until it is released.

        A push is a ``force`` (N) and a ``torque`` (N m), in the world frame. A drag pulls ``point`` to ``target`` (m,
        world), or turns the body to ``target_quat`` (w, x, y, z), or both; ``stiffness`` (1/s^2) is the model's
        unless given. ``point`` is on the body, in its own frame (m); without it the centre of mass is meant. It acts in
        every sub-step of direct and live mode; in puppet mode it is put on ``data`` after each step. Another call for
        the same body replaces it. A reset, `close()` and a new `discover()` end it.
        """
        request = wire.PerturbRequest(
            body=body,
            force=maybe_numbers("force", force),
            torque=maybe_numbers("torque", torque),
            point=maybe_numbers("point", point),
            target=maybe_numbers("target", target),
            target_quat=maybe_numbers("target_quat", target_quat, 4),
            stiffness=None if stiffness is None else float(stiffness),
        )
        self._ask(request)
        self._client._holds_bodies = True

    def release(self, body: str | None = None) -> list[str]:
        """Let go of one body, or of all that this client holds (extension); the names of those that were held."""
        return self._ask(wire.ReleasePerturbationRequest(body=body)).released

    def set_ui_controls(
        self,
        target: Target,
        ctrl: Vector | None = None,
        *,
        ctrl_map: Mapping[str, float] | None = None,
        by_name: bool = False,
    ) -> list[float]:
        """Write a user interface's setpoints (extension): all in actuator order, or some by actuator name.

        They count while ``set_control_source("ui")`` is in force. Returns all of them.
        """
        name, by = targeted(target, by_name)
        request = wire.SetUiControlsRequest(
            target=name,
            target_by=by,
            ctrl=None if ctrl is None else [float(value) for value in ctrl],
            ctrl_map=None if ctrl_map is None else {key: float(value) for key, value in ctrl_map.items()},
        )
        return self._ask(request).setpoints

    def save_state(self, name: str | None = None) -> bytes:
        """The whole state of the simulation (extension): give it to `restore_state`, in this play or a later one.

        With a ``name`` the server keeps it as well, until play stops.
        """
        return self._ask(wire.SaveStateRequest(name=name)).state

    def restore_state(self, state: str | bytes) -> Tree:
        """Go to a state (extension): the bytes of `save_state`, or the name under which the server keeps one.

        From there direct mode goes on bit for bit as it did from the saved state. Returns a reply of the shape of
        ``step()``, which is in ``data`` and the handles in every mode; ``ctrl_array`` has the restored setpoints. The
        step counter goes on; the time goes back.
        """
        if not isinstance(state, str | bytes | bytearray | memoryview):
            raise TypeError(f"restore_state takes the bytes of save_state or the name of a kept state, not {state!r}")
        request = RestoreStateRequest(name=state) if isinstance(state, str) else RestoreStateRequest(state=bytes(state))
        client = self._client
        reply = client._rpc("restore_state", payload_of(request))
        with client._data_lock:
            if client._mirror is not None:
                client._mirror.reset()
            client._absorb_step_reply(reply, authoritative=True)
            client._seed_setpoints(reply.get("setpoints") or {})
            if client._mirror is not None and reply.get("equalities"):
                client._mirror.write_equalities(reply["equalities"])
        return reply

    def list_states(self) -> list[StateInfo]:
        """The states that the server keeps (extension)."""
        return [result_of(StateInfo, block) for block in self._ask(wire.ListStatesRequest()).states]

    def delete_state(self, name: str) -> bool:
        """Forget a state that the server keeps (extension); whether there was one."""
        return self._ask(wire.DeleteStateRequest(name=name)).was_found

    def set_equality(self, name: str, active: bool) -> None:
        """Switch an equality constraint on or off (extension), until the next reset. Short names will do."""
        reply = self._ask(wire.SetEqualityRequest(name=name, active=switch("active", active)))
        client = self._client
        with client._data_lock:
            if client._mirror is not None:
                client._mirror.write_equalities({reply.name: reply.active})

    def set_model_params(self, *changes: ModelParam, until: str = "stop") -> list[dict[str, Any]]:
        """Change parameters of the running model (extension), all of them or none; returns what is in force.

        A change is a map of ``kind``, ``name``, ``field`` and ``value``, or these four in a tuple:
        ``("body", "cube", "mass", 0.3)``. docs/randomisation.md lists kinds and fields. They stay until play stops, or
        with ``until="reset"`` until the next reset. The local ``model`` follows; copies of other clients do not, and
        their next step warns of it.
        """
        request = wire.SetModelParamsRequest(changes=[_model_change(one) for one in changes], until=until)
        reply, client = self._ask(request), self._client
        with client._data_lock:
            client._take_model(reply.model)
        return [msgspec.to_builtins(one) for one in reply.changes]

    def call(self, op: str, **fields: Any) -> Tree:
        """Any op by its name (extension), such as one of a plugin; the reply as a map."""
        return self._client._rpc(op, fields)

    def _follow_stream(self, name: str, order: bool | wire.CameraStreamOrder, in_force: CameraStreaming | None) -> None:
        """Let a view listen where its camera streams now, unless the caller switched it off."""
        view = self._client._camera_keys.get(name)
        if view is None:
            return
        switches = [order] if isinstance(order, bool) else [order.zmq, order.shm]
        wanted = any(switches) if any(one is not None for one in switches) else None
        where = (None, None) if in_force is None else (in_force.zmq_endpoint, in_force.zmq_topic)
        view.follow_stream(wanted, *where)

    def _written_index(self, reply: wire.SetQposReply) -> Index | None:
        """Where a set_qpos reply's numbers are in ``client.data.qpos``."""
        client = self._client
        names = (reply.actor_name, reply.target)
        found = self._written_robot(reply)
        if found is not None and not reply.free_base_shortcut:
            return found._qpos_index
        free = found or next((client.entities[name] for name in names if name in client.entities), None)
        if free is None or free.qpos_offset is None:
            return None
        return slice(free.qpos_offset, free.qpos_offset + FREE_QPOS)

    def _written_robot(self, reply: wire.SetQposReply) -> URLabArticulation | None:
        """The articulation that a set_qpos reply is about, if it is about one."""
        client = self._client
        names = (reply.actor_name, reply.target)
        by_id = client.articulations_by_id.get(reply.actor_id or "")
        return by_id or next((client.articulations[name] for name in names if name in client.articulations), None)


def _sim_options(echoed: Tree) -> SimOptions:
    """The options that this client knows."""
    known: Tree = {one.name: echoed[one.name] for one in fields(SimOptions) if one.name in echoed}
    vectors = {name: tuple(numbers(name, value)) for name, value in known.items() if isinstance(value, list)}
    return SimOptions(**known | vectors)


def _model_change(change: ModelParam) -> ModelChange:
    """A change as it travels; arrays and tuples of numbers as lists."""
    if isinstance(change, Mapping):
        given = dict(change)
    elif isinstance(change, tuple | list) and len(change) == 4:
        given = dict(zip(("kind", "name", "field", "value"), change, strict=True))
    else:
        raise TypeError(f"a change is a map of kind, name, field and value, or these four in a tuple, not {change!r}")
    if isinstance(given.get("value"), np.ndarray | np.generic | tuple):
        given["value"] = np.asarray(given["value"]).tolist()
    return msgspec.convert(given, ModelChange)


def _timings(cameras: Mapping[str, str]) -> dict[str, str]:
    return {name: wire_word(timing) for name, timing in cameras.items()}


def _stream_order(order: StreamOrder) -> bool | wire.CameraStreamOrder:
    if isinstance(order, bool):
        return order
    return wire.CameraStreamOrder(zmq=order.get("zmq"), shm=order.get("shm"), rate_hz=order.get("rate_hz"))

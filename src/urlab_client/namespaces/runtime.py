"""``client.runtime``: change and read a running simulation."""

from collections.abc import Mapping
from typing import Any

from urlab_client.enums import CameraMode, ControlSource, StepMode, coerce
from urlab_client.handles.articulation import FREE_QPOS, Index, URLabArticulation
from urlab_client.handles.camera import URLabCameraView
from urlab_client.namespaces.base import RpcNamespace, Target, Vector, maybe, numbers, targeted
from urlab_client.options import mirror_options
from urlab_client.types import CameraStreaming, ContactsResult, KeyframeInfo, MocapPose, SimOptions

StreamOrder = bool | Mapping[str, Any]
"""On or off, or some of ``zmq`` (bool), ``shm`` (bool) and ``rate_hz`` (float)."""


class RuntimeNamespace(RpcNamespace):
    """Mutators and readers of live physics. All of them need a running simulation."""

    __slots__ = ()

    NAME = "runtime"

    def set_paused(self, paused: bool) -> bool:
        """Halt or resume live physics; returns the state in force."""
        return bool(self._ask("set_paused", paused=bool(paused)).get("paused", paused))

    def set_sim_speed(self, percent: float) -> float:
        """Pace live physics (100 = real time); returns the percentage in force, within 5 and 100."""
        return float(self._ask("set_sim_speed", percent=float(percent)).get("percent", percent))

    def set_control_source(self, source: str, *, articulation: str | None = None) -> None:
        """Let the actuators follow the wire ("zmq") or a user interface ("ui"), for one articulation or all."""
        self._ask("set_control_source", source=coerce(ControlSource, source).value, articulation=articulation)

    def set_twist(
        self,
        articulation: str,
        *,
        linear: Vector = (0, 0, 0),
        angular: Vector = (0, 0, 0),
        actions: int | None = None,
    ) -> None:
        """Command a twist: linear (vx, vy, -) m/s, angular (-, -, yaw rate) rad/s, and (extension) action bits."""
        self._ask(
            "set_twist",
            articulation=articulation,
            linear=numbers("linear", linear),
            angular=numbers("angular", angular),
            actions=actions,
        )

    def set_qpos(self, target: Target, qpos: Vector, *, by_name: bool = False, qvel: Vector | None = None) -> None:
        """Write an articulation's whole qpos, or the seven numbers of its free root, here and on the server.

        ``qvel`` (extension) are the velocities of the same joints; they alone are written when ``qpos`` is empty. Here
        they are seen with the next step.
        """
        speeds = None if qvel is None else [float(value) for value in qvel]
        reply = self._ask("set_qpos", **targeted(target, by_name), qpos=[float(value) for value in qpos], qvel=speeds)
        written = reply.get("qpos")
        index = self._written_index(reply)
        client = self._client
        with client._data_lock:
            if written and index is not None and client._mirror is not None:
                client._mirror.write_qpos(index, written)
            robot = self._written_robot(reply)
            if written and robot is not None:
                robot.observed.qpos = [*written, *robot.observed.qpos[len(written) :]]

    def set_mocap_pose(self, body: str, *, pos: Vector | None = None, quat: Vector | None = None) -> MocapPose:
        """Move a mocap body, by compiled name: ``pos`` metres, ``quat`` w, x, y, z. Returns the pose in force."""
        if pos is None and quat is None:
            raise ValueError("set_mocap_pose needs pos or quat")
        reply = self._ask("set_mocap_pose", body=body, pos=maybe("pos", pos), quat=maybe("quat", quat, 4))
        pose = MocapPose.from_wire(reply)
        client = self._client
        with client._data_lock:
            if client._mirror is not None:
                client._mirror.write_mocap(pose.body or body, pose.pos, pose.quat)
        return pose

    def read_mocap_pose(self, body: str) -> MocapPose:
        """The pose of a mocap body, by compiled name."""
        return MocapPose.from_wire(self._ask("read_mocap_pose", body=body))

    def get_contacts(
        self,
        *,
        body1: str | None = None,
        body2: str | None = None,
        geom1: str | None = None,
        geom2: str | None = None,
        max_contacts: int = 64,
    ) -> ContactsResult:
        """The active contacts that match every given compiled name."""
        asked = {"body1": body1, "body2": body2, "geom1": geom1, "geom2": geom2}
        names = {key: name for key, name in asked.items() if name is not None}
        return ContactsResult.from_wire(self._ask("get_contacts", max_contacts=int(max_contacts), filter=names or None))

    def list_keyframes(self) -> list[KeyframeInfo]:
        """The keyframes of the compiled model."""
        return [KeyframeInfo.from_wire(block) for block in self._ask("list_keyframes").get("keyframes") or ()]

    def set_sim_options(self, **opts: Any) -> SimOptions:
        """Patch physics options (timestep, gravity, integrator, ...) on the server and in ``client.model.opt``."""
        given = {name: value for name, value in opts.items() if value is not None}
        if not given:
            raise ValueError("set_sim_options needs at least one field")
        echoed: dict[str, Any] = self._ask("set_sim_options", options=given).get("options") or {}
        client = self._client
        with client._data_lock:
            if client.model is not None:
                mirror_options(client.model.opt, echoed)
        return SimOptions.from_wire(echoed)

    def set_mode(self, mode: str | StepMode) -> StepMode:
        """Switch the step mode; returns the one in force, which becomes ``client.step_mode``."""
        return self._client._switch_mode(coerce(StepMode, mode))

    def set_camera_mode(self, camera: str | URLabCameraView, mode: str | CameraMode) -> CameraMode:
        """Switch what a camera sees (extension); returns the mode in force, which its view follows.

        The view has no frame then until one of the new mode arrives.
        """
        name = camera if isinstance(camera, str) else camera.full_name
        asked = coerce(CameraMode, mode)
        reply = self._ask("set_camera_mode", camera=name, mode=asked.value)
        in_force = coerce(CameraMode, reply.get("mode"), default=asked)
        view = self._client._camera_keys.get(name)
        if view is not None:
            view.follow_mode(in_force)
        return in_force

    def set_camera_streaming(self, cameras: Mapping[str, StreamOrder]) -> dict[str, CameraStreaming]:
        """Switch streams of cameras on or off, or change their rate (extension); returns what is in force, by name.

        ``{"wrist": False}``, ``{"arm/eye": {"zmq": True, "rate_hz": 10}}``. This client listens accordingly.
        """
        orders = {name: order if isinstance(order, bool) else dict(order) for name, order in cameras.items()}
        reply = self._ask("set_camera_streaming", cameras=orders)
        told = {name: CameraStreaming.from_wire(block) for name, block in (reply.get("cameras") or {}).items()}
        for name, order in orders.items():
            self._follow_stream(name, order, told.get(name))
        self._client._sync_streams()
        return told

    def forward(self) -> dict[str, Any]:
        """Run mj_forward on the server (no integration) and observe; returns the reply, as ``step()`` does."""
        reply = self._ask("forward")
        self._client._absorb_step_reply(reply)
        return reply

    def _follow_stream(self, name: str, order: StreamOrder, told: CameraStreaming | None) -> None:
        """Let a view listen where its camera streams now, unless the caller switched it off."""
        view = self._client._camera_keys.get(name)
        if view is None:
            return
        wishes = [order] if isinstance(order, bool) else [order.get("zmq"), order.get("shm")]
        if any(wish is not None for wish in wishes):
            view.wanted = any(wishes)
        if told is not None:
            view.zmq_endpoint = told.zmq_endpoint or view.zmq_endpoint
            view.zmq_topic = told.zmq_topic or view.zmq_topic

    def _written_index(self, reply: dict[str, Any]) -> Index | None:
        """Where a set_qpos reply's numbers are in ``client.data.qpos``."""
        client = self._client
        names = (reply.get("actor_name"), reply.get("target"))
        found = self._written_robot(reply)
        if found is not None and not reply.get("free_base_shortcut"):
            return found._qpos_index
        free = found or next((client.entities[name] for name in names if name in client.entities), None)
        if free is None or free.qpos_offset is None:
            return None
        return slice(free.qpos_offset, free.qpos_offset + FREE_QPOS)

    def _written_robot(self, reply: dict[str, Any]) -> URLabArticulation | None:
        """The articulation that a set_qpos reply is about, if it is about one."""
        client = self._client
        names = (reply.get("actor_name"), reply.get("target"))
        by_id = client.articulations_by_id.get(reply.get("actor_id") or "")
        return by_id or next((client.articulations[name] for name in names if name in client.articulations), None)

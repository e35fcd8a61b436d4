"""A session with a server: joining it, its step mode, its streams, leaving it."""

import logging
import threading
import warnings
from collections.abc import Iterable, Mapping
from importlib import metadata
from typing import Any

from urlab_client.enums import ObservationLevel, StepMode, coerce
from urlab_client.errors import CLIENT_CLOSED, NO_SESSION, URLabRPCError
from urlab_client.handles.build import UnreadableModelError, is_foreign
from urlab_client.handles.camera import GLOBAL, URLabCameraView
from urlab_client.rpc import AnyReply, ReplyOp, RpcChannel, op_of, payload_of, read_reply, reply_type
from urlab_client.state import SceneState, read_hello
from urlab_client.transports import Transport
from urlab_wire.codec import Tree
from urlab_wire.enums import Encoding
from urlab_wire.envelope import Request, ok_op
from urlab_wire.errors import ErrorCode
from urlab_wire.ops.runtime import SetModeRequest
from urlab_wire.ops.session import HelloRequest

STEPPED = (StepMode.DIRECT, StepMode.PUPPET)
GOODBYE_TIMEOUT_MS = 1000

_log = logging.getLogger(__name__)


class CameraFeeds:
    """Feeds views from streams: those that `follow` was last given, at the endpoints that they had then."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._lock = threading.Lock()
        self._fed: list[tuple[URLabCameraView, str | None, str | None]] = []

    def follow(self, views: Iterable[URLabCameraView]) -> None:
        """Feed these views, as far as they stream, and no others. Nothing happens where nothing changed."""
        wanted = [(view, view.zmq_endpoint, view.zmq_topic) for view in views if view.streams]
        with self._lock:
            if wanted == self._fed:
                return
            self._transport.stop_camera_streams()
            for view, endpoint, topic in wanted:
                self._transport.start_camera_stream(view.owner, view.name, endpoint or "", topic or "", view.take)
            self._fed = wanted

    def stop(self) -> None:
        """Feed no view any more; the frames that are there stay."""
        self.follow(())

    def frames(self) -> dict[str, Tree]:
        """What the streams have brought so far, newest frames only. The caller holds the data lock."""
        shown: dict[str, Tree] = {}
        for view, _, _ in self._fed:
            frame = view.latest if view.streamed else None
            if frame is not None:
                shown.setdefault(view.owner or GLOBAL, {})[view.name] = {
                    "pixels": frame.pixels,
                    "mode": frame.mode,
                    "resolution": frame.resolution,
                    "frame_count": view.frame_count,
                }
        return shown


class ClientSession(SceneState):
    """The part of a client that talks to the server about being there. See `URLabClient` for the meaning of its
    arguments."""

    def __init__(
        self,
        transport: Transport,
        step_mode: StepMode,
        *,
        rcv_timeout_ms: int,
        local_model: bool,
        mujoco_version_check: bool,
        auto_promote_step_mode: bool,
        observer: bool,
        camera_streams: bool,
        operator: bool,
    ) -> None:
        super().__init__(step_mode, local_model=local_model, mujoco_version_check=mujoco_version_check)
        self.auto_promote_step_mode = auto_promote_step_mode
        self.observer = observer
        self.operator = operator
        self.camera_streams = camera_streams
        self._feeds = CameraFeeds(transport)
        self._channel = RpcChannel(transport, rcv_timeout_ms)
        self._level: str = ObservationLevel.STANDARD.value
        self._ops_meta: dict[str, Tree] = {}
        self._latest_state_snapshot: Tree | None = None
        self._state_msg_count = 0
        self._promoted = False
        self._closed = False
        self._holds_bodies = False

    @property
    def session_id(self) -> str:
        """The id of the session; empty before ``discover()``."""
        return self._channel.session_id

    @session_id.setter
    def session_id(self, session_id: str) -> None:
        self._channel.session_id = session_id

    def discover(self, observations: str | ObservationLevel = "standard") -> None:
        """Open a session, load the model, build the handles and show the server's state (where its handshake tells it).

        May be called again, to rejoin or to refresh.

        ``observations`` (minimal, standard, full) becomes the level of later steps that name none. A session that
        another client took over is not reopened silently: ops then raise ``session_expired`` until this is called.
        """
        self._level = coerce(ObservationLevel, observations).value
        self._absorb_handshake(self._hello())
        self._ops_meta = self._fetch_meta()
        self._join_simulation()

    def close(self) -> None:
        """Give the step mode back, stop the streams and close the transport. Idempotent, never raises."""
        if self._closed:
            return
        self._closed = True
        self._sync_streams()
        self._let_go()
        self._give_mode_back()
        self._channel.transport.close()

    def _rpc(
        self,
        op: str,
        payload: Mapping[str, Any] | None = None,
        expected_op: ReplyOp | None = None,
        rcv_timeout_ms: int | None = None,
    ) -> Tree:
        """One op as maps: what returns raw replies, and ops that only the server knows."""
        self._refuse_when_closed(op)
        return self._channel.call(op, payload, expected_op=expected_op, rcv_timeout_ms=rcv_timeout_ms)

    def _ask(self, request: Request[AnyReply], absent: Mapping[str, Any] | None = None) -> AnyReply:
        """One op, typed on both ends. ``absent`` is what fields mean that the reply of another server lacks."""
        op = op_of(request)
        return read_reply(reply_type(request), self._rpc(op, payload_of(request), expected_op=ok_op(op)), absent)

    def _refuse_when_closed(self, op: str) -> None:
        if self._closed:
            raise URLabRPCError(CLIENT_CLOSED, "this client is closed: make a new one", op=op)

    def _refuse_without_session(self, op: str) -> None:
        self._refuse_when_closed(op)
        if not self._channel.session_id:
            raise URLabRPCError(NO_SESSION, "there is no session with a server yet: call discover() first", op=op)

    def _hello(self, *, include_assets: bool = False) -> Tree:
        request = HelloRequest(
            client_version=client_version(),
            observations=self._level,
            encoding=Encoding.MSGPACK,
            include_assets=include_assets or None,
            observer=self.observer or None,
            operator=self.operator or None,
        )
        return self._rpc("hello", {"session_id": None, **payload_of(request)})

    def _fetch_meta(self) -> dict[str, Tree]:
        try:
            reply = self._rpc("meta", {}, expected_op="meta_ok")
        except URLabRPCError as refused:
            if refused.code not in (ErrorCode.UNKNOWN_OP, ErrorCode.MISSING_OP):
                raise
            return {}
        return {entry["name"]: entry for entry in reply.get("ops") or ()}

    def _absorb_handshake(self, reply: Tree) -> None:
        """Apply a handshake; a model that this MuJoCo build cannot load is asked for again, as XML and assets."""
        hello = read_hello(reply)
        if is_foreign(hello) and not self.mujoco_version_check and hello.mjb:
            reply = self._hello(include_assets=True)
        try:
            self._apply_handshake(reply)
        except UnreadableModelError as unreadable:
            warnings.warn(f"{unreadable}; loading its XML and assets instead", stacklevel=3)
            self._apply_handshake(self._hello(include_assets=True))

    def _apply_handshake(self, reply: Tree) -> None:
        super()._apply_handshake(reply)
        self.session_id = str(reply.get("session_id") or self.session_id)
        self._channel.transport.absorb_handshake(reply)

    def _join_simulation(self) -> None:
        """Once a simulation runs: ask for the mode that the caller named, and listen where the mode streams."""
        if self.manager_present and self._promotes:
            self._promote()
        self._sync_streams()

    @property
    def _drives(self) -> bool:
        """Whether this client has the plain session, and not one beside it."""
        return not (self.observer or self.operator)

    @property
    def _promotes(self) -> bool:
        """Whether the server is to be asked for this client's step mode."""
        return self.auto_promote_step_mode and self._drives and self.step_mode in STEPPED

    def _promote(self) -> None:
        try:
            self._switch_mode(self.step_mode)
            self._promoted = True
        except URLabRPCError as refused:
            if refused.code != ErrorCode.MODE_LOCKED_BY_SERVER:
                raise
            warnings.warn(f"the server's step mode is pinned: {refused.message}", stacklevel=4)

    def _switch_mode(self, mode: StepMode) -> StepMode:
        reply = self._ask(SetModeRequest(mode=mode.value))
        self.step_mode = coerce(StepMode, reply.current_mode or None, default=mode)
        self._sync_streams()
        return self.step_mode

    def _sync_streams(self) -> None:
        """Listen to what a running simulation streams in this mode, at the places that the handshake names."""
        if self._closed or self.step_mode in STEPPED or not self.manager_present:
            self._channel.transport.stop_state_stream()
            self._feeds.stop()
        else:
            self._channel.transport.start_state_stream(self._on_state)
            self._feeds.follow(self._camera_views() if self.camera_streams else ())

    def _show_streamed_frames(self, reply: Tree) -> None:
        """Put the frames that streams have brought into the reply of a live step, beside those that it asked for:
        ``{prefix: {camera: {pixels, mode, resolution, frame_count}}}``, the prefix of the scene's own being ``global``.
        Where a name that was asked for is also a prefix, the frame goes first.
        """
        if self.step_mode in STEPPED:
            return
        with self._data_lock:
            streamed = self._feeds.frames()
        if streamed:
            reply["cameras"] = {**streamed, **(reply.get("cameras") or {})}

    def _on_state(self, snapshot: Tree) -> None:
        with self._data_lock:
            self._latest_state_snapshot = snapshot
            self._state_msg_count += 1

    def _let_go(self) -> None:
        """Release the bodies that this session may hold: the server does so only when the next client comes."""
        if self._holds_bodies:
            try:
                self._channel.call("release_perturbation", rcv_timeout_ms=GOODBYE_TIMEOUT_MS)
            except Exception as lost:  # noqa: BLE001 - whatever is wrong with the server, closing goes on
                _log.debug("the bodies that were held could not be released: %s", lost)

    def _give_mode_back(self) -> None:
        if not (self._promoted and self.session_id and self.manager_present and self.step_mode in STEPPED):
            return
        try:
            request = SetModeRequest(mode=StepMode.LIVE.value)
            self._channel.call("set_mode", payload_of(request), rcv_timeout_ms=GOODBYE_TIMEOUT_MS)
        except Exception as lost:  # noqa: BLE001 - whatever is wrong with the server, closing goes on
            _log.debug("the step mode could not be given back: %s", lost)


def client_version() -> str:
    """How this client names itself in the handshake."""
    try:
        return f"urlab_client/{metadata.version('urlab-headless')}"
    except metadata.PackageNotFoundError:
        return "urlab_client/0+unknown"

"""A session with a server: joining it, its step mode, its streams, leaving it."""

import contextlib
import gc
import logging
import os
import sys
import threading
import warnings
import weakref
from collections.abc import Mapping
from importlib import metadata
from typing import Any

from urlab_client.enums import ObservationLevel, StepMode, coerce
from urlab_client.errors import CLIENT_CLOSED, NO_SESSION, URLabModeWarning, URLabRPCError
from urlab_client.feeds import CameraFeeds, StateFeed
from urlab_client.handles.build import UnreadableModelError, is_foreign
from urlab_client.rpc import AnyReply, ReplyOp, RpcChannel, op_of, payload_of, read_reply, reply_type
from urlab_client.state import SceneState, read_hello
from urlab_client.transports import Transport
from urlab_wire.catalogue import PRE_SESSION
from urlab_wire.codec import Tree
from urlab_wire.enums import Encoding
from urlab_wire.envelope import Request, ok_op
from urlab_wire.errors import ErrorCode
from urlab_wire.ops.runtime import SetModeRequest
from urlab_wire.ops.session import HelloRequest
from urlab_wire.ops.stepping import StepReply
from urlab_wire.stream_messages import StateFull

STEPPED = (StepMode.DIRECT, StepMode.PUPPET)
GOODBYE_TIMEOUT_MS = 1000

_log = logging.getLogger(__name__)


class Departure:
    """How a client leaves its server: it gives back the step mode that it changed, and closes the transport.

    It refers to the channel and not to the client, so that a client that was dropped without `close` leaves as well.
    """

    def __init__(self, channel: RpcChannel) -> None:
        self._channel = channel
        self._process = os.getpid()
        self._found: StepMode | None = None
        self._in_force: StepMode | None = None

    def note_switch(self, before: StepMode, now: StepMode) -> None:
        """This client has switched the mode; the first one that it found is the one to give back."""
        self._found = before if self._found is None else self._found
        self._in_force = now

    def note_start(self, now: StepMode) -> None:
        """A simulation was started in this mode: there is nothing older to give back than live."""
        self._found, self._in_force = StepMode.LIVE, now

    def note_stop(self) -> None:
        """Nothing plays any more, and with it went the mode."""
        self._found = self._in_force = None

    @property
    def is_ours(self) -> bool:
        """Whether the client was made in this process, and not in one from which this was forked."""
        return self._process == os.getpid()

    @property
    def owes_mode(self) -> StepMode | None:
        """The mode to give back; None when this client changed none."""
        return self._found if self._found is not self._in_force else None

    def leave(self) -> None:
        """Give the mode back and close the transport. Never raises."""
        mode, self._found = self.owes_mode, None
        try:
            if mode is not None and self._channel.session_id:
                request = SetModeRequest(mode=mode.value)
                self._channel.call("set_mode", payload_of(request), rcv_timeout_ms=GOODBYE_TIMEOUT_MS)
        except Exception as lost:  # noqa: BLE001 - whatever is wrong with the server, closing goes on
            _log.debug("the step mode could not be given back: %s", lost)
        self._channel.transport.close()

    def leave_at_exit(self) -> None:
        """`leave`, unless a thread waits for an answer: the end of the program does not wait for that."""
        if self._channel.transport.wait_until_free(GOODBYE_TIMEOUT_MS / 1000):
            self.leave()


_open: "weakref.WeakSet[ClientSession]" = weakref.WeakSet()
"""Clients of this process that have joined a server and are not closed."""

_leaving: list[threading.Thread] = []
"""Threads that let dropped clients leave."""


def _collect_dropped() -> None:
    """Let clients leave that the program has dropped: in a notebook, what the cell made when it ran before.

    A client and its handles refer to each other, so that without this it stays, with its threads and its server, until
    Python's collector happens to come by. Programs do not pay for it (a collection takes up to 0.3 s): only where lines
    are typed in (``sys.ps1``; IPython and notebooks have it) are clients made anew and again.
    """
    if not _open or not hasattr(sys, "ps1"):
        return
    gc.collect()
    while _leaving:
        _leaving.pop().join(GOODBYE_TIMEOUT_MS / 1000)


def _leave_unclosed(departure: Departure) -> None:
    """For a client that was dropped, or that the end of the program finds open."""
    if not departure.is_ours:
        return
    if departure.owes_mode is not None:
        text = "a client that had changed the server's step mode was never closed: use `with URLabClient(...)`"
        with contextlib.suppress(ResourceWarning):  # as an error it would be lost here, and what follows with it
            warnings.warn(text, ResourceWarning, stacklevel=2)
    if threading.main_thread().is_alive():  # a garbage collection, on whichever thread: it must not wait here
        leaving = threading.Thread(target=departure.leave, name="urlab-leave", daemon=True)
        leaving.start()
        _leaving[:] = [*(one for one in _leaving if one.is_alive()), leaving]
    else:
        departure.leave_at_exit()


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
        takeover: bool,
        fetch_model: bool,
    ) -> None:
        super().__init__(step_mode, local_model=local_model, mujoco_version_check=mujoco_version_check)
        self._asked_mode = step_mode
        self._play_mode: StepMode | None = None
        self._auto_promote_step_mode = auto_promote_step_mode
        self._observer = observer
        self._operator = operator
        self._takeover = takeover
        self._fetch_model = fetch_model
        self._camera_streams = camera_streams
        self._feeds = CameraFeeds(transport)
        self._state_feed = StateFeed(self._data_lock)
        self._channel = RpcChannel(transport, rcv_timeout_ms)
        self._level: str = ObservationLevel.STANDARD.value
        self._ops_meta: dict[str, Tree] = {}
        self._closed = False
        self._departure = Departure(self._channel)
        self._leave = weakref.finalize(self, _leave_unclosed, self._departure)
        self._holds_bodies = False

    @property
    def session_id(self) -> str:
        """The id of the session; empty before ``discover()``."""
        return self._channel.session_id

    @property
    def auto_promote_step_mode(self) -> bool:
        """Whether ``discover()`` and ``sim.start()`` ask the server for the step mode that the constructor named."""
        return self._auto_promote_step_mode

    @property
    def observer(self) -> bool:
        """Whether this client only looks on (extension)."""
        return self._observer

    @property
    def operator(self) -> bool:
        """Whether this client changes the world beside the one that drives it (extension)."""
        return self._operator

    @property
    def camera_streams(self) -> bool:
        """Whether cameras are streamed into their views in live mode (extension)."""
        return self._camera_streams

    @property
    def _latest_state_snapshot(self) -> Tree | None:
        """The newest message of the state stream, as it came."""
        return self._state_feed.snapshot

    @property
    def _state_msg_count(self) -> int:
        """How many messages the state stream has brought."""
        return self._state_feed.count

    @property
    def latest_state(self) -> StateFull | None:
        """The newest state of a live simulation, also without ``step()``: time, step, every robot and entity, typed.

        It is that of the state stream, and None until the first one has come. Where there is no stream (in process) the
        server is asked. In direct and puppet mode it is None: there the state is that of the last reply.
        """
        self._refuse_without_session("latest_state")
        if self._step_mode in STEPPED or not self._manager_present:
            return None
        if self._channel.transport.has_state_stream:
            return self._state_feed.newest()
        observed = read_reply(StepReply, self._rpc("step", {"n_steps": 0, "per_articulation": {}}))
        return StateFull(
            time=observed.time,
            step=observed.step,
            sim_time=observed.sim_time,
            wall_time=observed.wall_time,
            per_articulation=observed.per_articulation,
            entities=observed.entities or {},
        )

    def discover(self, observations: str | ObservationLevel = "standard") -> None:
        """Open a session, load the model, make the handles and show the server's state (where its handshake tells it).

        May be called again, to rejoin or to refresh: handles stay good while their robots are there.

        ``observations`` (minimal, standard, full) becomes the level of later steps that name none. A session that
        another client took over is not reopened silently: ops then raise ``session_expired`` until this is called.

        Where a simulation runs, the server is then asked for the step mode that the constructor named; in "auto" its
        own is taken, and ``step_mode`` says which. `URLabModeWarning` when another one than asked for is in force.
        """
        self._level = coerce(ObservationLevel, observations).value
        if self not in _open:
            _collect_dropped()
            _open.add(self)
        in_force = self._absorb_handshake(self._hello())
        self._ops_meta = self._fetch_meta()
        self._join_simulation(in_force)

    def close(self) -> None:
        """Give a step mode back that this client changed, stop the streams and close the transport.

        Idempotent, never raises. A client that is dropped without it leaves too, some time later.
        """
        if self._closed:
            return
        self._closed = True
        _open.discard(self)
        self._leave.detach()
        self._sync_streams()
        self._let_go()
        self._departure.leave()

    def _rpc(
        self,
        op: str,
        payload: Mapping[str, Any] | None = None,
        expected_op: ReplyOp | None = None,
        rcv_timeout_ms: int | None = None,
    ) -> Tree:
        """One op as maps: what returns raw replies, and ops that only the server knows."""
        (self._refuse_when_closed if op in PRE_SESSION else self._refuse_without_session)(op)
        return self._channel.call(op, payload, expected_op=expected_op, rcv_timeout_ms=rcv_timeout_ms)

    def _ask(self, request: Request[AnyReply], absent: Mapping[str, Any] | None = None) -> AnyReply:
        """One op, typed on both ends. ``absent`` is what fields mean that the reply of another server lacks."""
        op = op_of(request)
        return read_reply(reply_type(request), self._rpc(op, payload_of(request), expected_op=ok_op(op)), absent)

    def _refuse_when_closed(self, op: str) -> None:
        if self._closed:
            raise URLabRPCError(CLIENT_CLOSED, "this client is closed: make a new one", op=op)

    def _refuse_without_session(self, op: str) -> None:
        if self._closed:
            self._refuse_when_closed(op)
        if not self._channel.session_id:
            raise URLabRPCError(NO_SESSION, "there is no session with a server yet: call discover() first", op=op)

    def _hello(self, *, include_assets: bool = False) -> Tree:
        request = HelloRequest(
            client_version=client_version(),
            observations=self._level,
            encoding=Encoding.MSGPACK,
            include_assets=include_assets or None,
            observer=self._observer or None,
            operator=self._operator or None,
            takeover=self._takeover or None,
            include_model=None if self._fetch_model else False,
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

    def _absorb_handshake(self, reply: Tree) -> StepMode | None:
        """Apply a handshake; returns the step mode in force, where it tells that.

        A model that this MuJoCo build cannot load is asked for again, as XML and assets.
        """
        hello = read_hello(reply)
        if is_foreign(hello) and not self._mujoco_version_check and hello.mjb:
            reply = self._hello(include_assets=True)
        try:
            self._apply_handshake(reply)
        except UnreadableModelError as unreadable:
            warnings.warn(f"{unreadable}; loading its XML and assets instead", stacklevel=3)
            self._apply_handshake(self._hello(include_assets=True))
        return _mode_or_none(hello.step_mode)

    def _apply_handshake(self, reply: Tree) -> None:
        super()._apply_handshake(reply)
        self._feeds.renew()
        self._state_feed.forget()
        self._channel.session_id = str(reply.get("session_id") or self._channel.session_id)
        self._channel.transport.absorb_handshake(reply)

    # -- the step mode --------------------------------------------------------------------------------------------

    @property
    def _drives(self) -> bool:
        """Whether this client has the plain session, and not one beside it."""
        return not (self._observer or self._operator)

    @property
    def _wanted_mode(self) -> StepMode | None:
        """The mode that the server is to be asked for; None when it is to be left alone."""
        wanted = self._play_mode or self._asked_mode
        asks = self._drives and self._auto_promote_step_mode and wanted is not StepMode.AUTO
        return wanted if asks else None

    def _join_simulation(self, in_force: StepMode | None) -> None:
        """Once a simulation runs: get the mode that the caller named, and listen where the mode streams."""
        if not self._manager_present:
            self._departure.note_stop()
        elif self._drives:
            wanted = self._play_mode or self._asked_mode
            if self._wanted_mode is not None:
                self._promote(wanted, in_force)
            elif wanted is StepMode.AUTO:
                self._take_mode(in_force)
            elif in_force is not None and in_force is not wanted:
                self._warn_of_mode(wanted, in_force, "auto_promote_step_mode is False: call runtime.set_mode()")
        self._sync_streams()

    def _note_stop(self) -> None:
        """This client has stopped the simulation."""
        self._manager_present, self._play_mode = False, None
        self._departure.note_stop()
        self._sync_streams()

    def _take_mode(self, in_force: StepMode | None) -> None:
        self._step_mode = in_force or StepMode.AUTO
        if in_force in STEPPED:
            _log.info("the server is in %s mode: only steps move it; runtime.set_mode('live') lets it run", in_force)

    def _promote(self, wanted: StepMode, in_force: StepMode | None) -> None:
        try:
            reply = self._request_mode(wanted)
        except URLabRPCError as refused:
            if refused.code != ErrorCode.MODE_LOCKED_BY_SERVER:
                raise
            self._step_mode = in_force or wanted
            if in_force is None or in_force is not wanted:
                self._warn_of_mode(wanted, in_force, refused.message)
            return
        self._absorb_first_state(reply.get("state"))
        if self._step_mode is not wanted:
            self._warn_of_mode(wanted, self._step_mode, "the server chose it: call runtime.set_mode()")

    def _switch_mode(self, mode: StepMode) -> StepMode:
        """Change the mode as the caller asks, from now on."""
        self._request_mode(mode)
        self._asked_mode, self._play_mode = self._step_mode, None
        self._sync_streams()
        return self._step_mode

    def _request_mode(self, mode: StepMode) -> Tree:
        reply = self._rpc("set_mode", payload_of(SetModeRequest(mode=mode.value)))
        self._step_mode = coerce(StepMode, reply.get("current_mode") or None, default=mode)
        self._departure.note_switch(_mode_or_none(reply.get("previous_mode")) or StepMode.LIVE, self._step_mode)
        return reply

    def _warn_of_mode(self, wanted: StepMode, in_force: StepMode | None, why: str) -> None:
        now = f"is in {in_force} mode" if in_force is not None else "keeps its own step mode"
        text = f"the server {now}, and this client asked for {wanted}: {why}"
        _log.warning(text)
        warnings.warn(text, URLabModeWarning, stacklevel=5)

    # -- streams --------------------------------------------------------------------------------------------------

    def _sync_streams(self) -> None:
        """Listen to what a running simulation streams in this mode, at the places that the handshake names."""
        if self._closed or self._step_mode in STEPPED or not self._manager_present:
            self._channel.transport.stop_state_stream()
            self._feeds.stop()
        else:
            self._channel.transport.start_state_stream(self._state_feed.take)
            self._feeds.follow(self._camera_views() if self._camera_streams else ())

    def _show_streamed_frames(self, reply: Tree) -> None:
        """Put the frames that streams have brought into the reply of a live step, beside those that it asked for:
        ``{prefix: {camera: {pixels, mode, resolution, frame_count}}}``, the prefix of the scene's own being ``global``.
        Where a name that was asked for is also a prefix, the frame goes first.
        """
        if self._step_mode in STEPPED:
            return
        with self._data_lock:
            streamed = self._feeds.frames()
        if streamed:
            reply["cameras"] = {**streamed, **(reply.get("cameras") or {})}

    def _let_go(self) -> None:
        """Release the bodies that this session may hold: the server does so only when the next client comes."""
        if self._holds_bodies:
            try:
                self._channel.call("release_perturbation", rcv_timeout_ms=GOODBYE_TIMEOUT_MS)
            except Exception as lost:  # noqa: BLE001 - whatever is wrong with the server, closing goes on
                _log.debug("the bodies that were held could not be released: %s", lost)


def client_version() -> str:
    """How this client names itself in the handshake."""
    try:
        return f"urlab_client/{metadata.version('urlab-headless')}"
    except metadata.PackageNotFoundError:
        return "urlab_client/0+unknown"


def _mode_or_none(word: object) -> StepMode | None:
    """The mode of that word; None for no word, and for one of another vocabulary."""
    return StepMode(word) if isinstance(word, str) and word in set(StepMode) else None

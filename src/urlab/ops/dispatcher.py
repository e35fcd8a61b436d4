"""Frame in, frame out. Every failure becomes an error reply; nothing that a client sends ends the server."""

import logging
import time
from typing import NamedTuple, cast

from urlab.access import LOCAL, Role, RpcCaller
from urlab.errors import (
    CompileError,
    EditError,
    FileError,
    MissingField,
    NotAllowed,
    NotInEditor,
    ObserverReadOnly,
    PathNotWritable,
    ShuttingDown,
    UnknownOp,
    UrlabError,
    excerpt,
    known,
    shortage,
)
from urlab.monitoring.metrics import RequestFigures
from urlab.ops.context import HANDLERS, Context, Parts
from urlab.ops.parsing import (
    SPEC_OF,
    RequestKey,
    decode_request,
    key_of,
    long_texts,
    peek,
    read_envelope,
    read_request,
)
from urlab.ops.session import Session, SessionTable
from urlab.scene.blueprint_record import asked_path
from urlab_wire import CATALOGUE, ErrorCode, OpSpec, Reply, Request, encode
from urlab_wire.catalogue import DEFAULT_LIMIT_S, PRE_SESSION
from urlab_wire.codec import looks_like_json
from urlab_wire.enums import Encoding, OpCategory
from urlab_wire.envelope import ErrorReply, error
from urlab_wire.ops.runtime import PerturbRequest
from urlab_wire.ops.scene import SpawnActorRequest, SpawnGridRequest
from urlab_wire.ops.stepping import StepRequest

log = logging.getLogger("urlab.ops")


class Call(NamedTuple):
    """A request as it was read. ``request`` is None when its frame is not in order, and has to be looked into.

    ``of_scene`` says that it is about the running scene, and quick while no other thread has that; ``pool`` what it
    waits for otherwise: "simulation", "reading" (only for a thread) or "editing".
    """

    frame: bytes
    request: Request[Reply] | None
    takes_long: bool = False
    of_scene: bool = True
    pool: str = "simulation"

    @property
    def key(self) -> RequestKey | None:
        """Session and id of a request that has an id, and whose frame is in order."""
        request = self.request
        if request is None or request.request_id is None:
            return None
        session_id, request_id = request.session_id, request.request_id
        return (session_id, request_id) if session_id else key_of(None, request_id)

    @property
    def holder(self) -> str | None:
        """The session for which this request takes hold of a body, if it does."""
        if type(self.request) is not PerturbRequest:
            return None
        session_id = self.request.session_id
        return session_id if session_id and len(session_id) <= _SESSION_ID_LENGTH else None


class Dispatcher:
    """Serves requests from any number of threads."""

    def __init__(self, parts: Parts) -> None:
        self.sessions = SessionTable()
        self._parts = parts
        self._play = parts.play
        self._draining = False
        self.figures: RequestFigures | None = None
        """Counts requests, if the server's figures were asked for."""

        self.sessions.on_end.append(lambda ended: self.let_go(ended.id))
        self.sessions.on_end.append(lambda ended: parts.batches.end(ended.id))
        self._play.on_stop.append(lambda _: parts.batches.clear())

    def let_go(self, session_id: str) -> None:
        """Release what a session holds in the running scene: it has ended, or its client is gone. Any thread."""
        running = self._play.running
        if running is not None:
            running.release(session_id)

    def drain(self) -> None:
        """From now on every request is answered `shutting_down`."""
        self._draining = True

    def read(self, frame: bytes) -> Call:
        """What a frame asks, and whether serving it may take so long that others should not wait behind it."""
        request = decode_request(frame)
        if type(request) is StepRequest:
            return Call(frame, request, self._is_long(request.n_steps) or bool(request.include_cameras))
        if request is not None:
            spec = SPEC_OF[type(request)]
            return Call(frame, request, _takes_long(spec), _is_of_scene(spec), _pool_of(spec))
        op, n_steps = peek(frame)
        if op not in CATALOGUE:
            return Call(frame, None, of_scene=False, pool="reading")
        spec = CATALOGUE[op]
        takes_long = self._is_long(n_steps) if op == "step" else _takes_long(spec)
        return Call(frame, None, takes_long, _is_of_scene(spec), _pool_of(spec))

    def handle(self, frame: bytes) -> bytes:
        """Serve one request frame."""
        return self.serve(self.parse(frame))

    def parse(self, frame: bytes) -> Call:
        """What a frame asks, for `serve`; `read` finds out as well what serving it has to wait for."""
        return Call(frame, decode_request(frame))

    def serve_now(self, call: Call, caller: RpcCaller = LOCAL) -> bytes | None:
        """Serve what does not take long; None, and nothing is done, if it would have to wait for the simulation.

        What needs the simulation is served with the physics lock held, so that nothing comes between.
        """
        manager = self._play.running if call.of_scene else None
        if manager is None:
            return self.serve(call, caller)
        if not manager.engine.try_lock():
            return None
        try:
            return self.serve(call, caller)
        finally:
            manager.engine.unlock()

    def serve(self, call: Call, caller: RpcCaller = LOCAL) -> bytes:
        """Serve what was read, to the caller that sent it."""
        if self.figures is None:
            return self._serve(call, caller)[0]
        begin = time.perf_counter()
        reply, op, outcome = self._serve(call, caller)
        self.figures.add(op, outcome, time.perf_counter() - begin)
        return reply

    def _serve(self, call: Call, caller: RpcCaller) -> tuple[bytes, str, str]:
        """The reply, the op ("" when there is none of that name), and "ok" or the error's code."""
        session = spec = None
        outcome = "ok"
        try:
            if self._draining:
                raise ShuttingDown("the server is stopping")
            good = call.request
            if good is not None:
                spec = SPEC_OF[type(good)]
                session = self._session(spec.name, good.session_id, call.frame, caller)
                reply = self._run(spec, good, session, caller)
            else:
                session, request, spec = self._diagnose(call.frame, caller)
                reply = self._run(spec, request, session, caller)
            if isinstance(reply, bytes):
                return reply, spec.name if spec is not None else "", outcome
        except UrlabError as failed:
            reply, outcome = _failure(failed, spec), failed.code.value
            reply.message = _without_echo(reply.message, call)
            self._note(spec, session, caller, reply)
        except Exception as crashed:
            op = spec.name if spec is not None else "?"
            missing = shortage(crashed)
            log.error("op %r %s", op, missing or "crashed", exc_info=None if missing else crashed)
            message = f"{op} {missing}" if missing else f"{op}: {type(crashed).__name__}: {crashed}"
            reply = error(ErrorCode.INTERNAL_ERROR, _without_echo(message, call))
            outcome = ErrorCode.INTERNAL_ERROR.value
            self._note(spec, session, caller, reply)
        encoding = session.encoding if session is not None else _encoding_of(call.frame)
        return self._encode(reply, encoding), spec.name if spec is not None else "", outcome

    def _is_long(self, n_steps: float | None) -> bool:
        return n_steps is not None and n_steps > _LONG_S / self._play.seconds_per_step()

    # -- the checks, in the protocol's order --------------------------------------------------------------------

    def _diagnose(
        self, frame: bytes, caller: RpcCaller
    ) -> "tuple[Session, Request[Reply] | UrlabError, OpSpec | None]":
        """What a frame is that could not be read at once."""
        op, session_id = read_envelope(frame)
        session = self._session(op, session_id, frame, caller)
        spec = CATALOGUE.get(op)
        if spec is None:
            return session, UnknownOp(f"there is no op {excerpt(op)}; there are: {known(CATALOGUE, limit=100)}"), None
        return session, read_request(spec, frame), spec

    def _session(self, op: str, session_id: str | None, frame: bytes, caller: RpcCaller) -> Session:
        if op in PRE_SESSION:
            return Session(encoding=_encoding_of(frame), caller=caller)
        return self.sessions.find(session_id, caller)

    def _run(
        self, spec: OpSpec | None, request: Request[Reply] | UrlabError, session: Session, caller: RpcCaller
    ) -> Reply | bytes:
        if spec is None or isinstance(request, MissingField):
            raise cast("UrlabError", request)
        running = self._play.manager if spec.category is OpCategory.MANAGER_REQUIRED else None
        if session.observer and not spec.reads:
            raise ObserverReadOnly(f"{spec.name} changes the world, and this session is an observer")
        if caller is not LOCAL:
            _check_role(spec, session, caller)
        handler = HANDLERS.get(spec.name)
        if handler is None:
            raise NotInEditor(f"{spec.name} is part of the protocol, but this server does not offer it")
        if isinstance(request, UrlabError):
            raise request
        context = Context(self._parts, self.sessions, session, running, caller)
        reply = handler(context, request)
        if not spec.reads:  # of a step, nothing more is done
            event = _AUDITED.get(spec.name) or ("wrote" if _imports_file(request) else None)
            if event is not None:
                context.record(event, op=spec.name, **(_paths(request) | _paths(reply)))
            self._note(spec, session, caller)
        return reply

    def _note(
        self, spec: OpSpec | None, session: Session | None, caller: RpcCaller, refusal: ErrorReply | None = None
    ) -> None:
        """Keep for the log that an op changed the world, or was to; steps, and what only reads, are not kept."""
        if spec is None or spec.reads or spec.name == "forward":
            return
        kind = None if session is None else session.kind
        if refusal is None:
            self._parts.log.note_op(spec.name, caller.name, kind)
        else:
            self._parts.log.note_op(spec.name, caller.name, kind, refusal.code, refusal.message)

    def _encode(self, reply: Reply, encoding: Encoding) -> bytes:
        try:
            return encode(reply, encoding)
        except Exception as crashed:
            log.exception("a reply cannot be encoded")
            return encode(error(ErrorCode.INTERNAL_ERROR, f"the reply cannot be encoded: {crashed}"), encoding)


_LONG_S = 0.02
_SESSION_ID_LENGTH = 36
_AUDITED = {
    "recording_save": "wrote",
    "recording_export": "wrote",
    "create_level": "wrote",
    "save_level": "wrote",
    "import_xml": "wrote",
    "upload_asset": "wrote",
    "destroy_asset": "deleted",
}
"""Ops that write or delete files, and what the audit log calls it."""

_OF_ADMINS = frozenset({"editor_address", *(op for op, event in _AUDITED.items() if event == "deleted")})
"""Ops that only admins may call: the editor's token gives the rights of the server's user."""


def _check_role(spec: OpSpec, session: Session, caller: RpcCaller) -> None:
    """NotAllowed unless the caller's role covers the op. What a hello may ask for is checked by its handler."""
    needed = Role.OBSERVER if spec.reads else Role.OPERATOR
    if spec.name in _OF_ADMINS:
        needed = Role.ADMIN
    elif spec.name not in PRE_SESSION and not (session.observer or session.operator):
        needed = Role.DRIVER
    if not caller.role.covers(needed):
        raise NotAllowed(f"{spec.name} needs the role {needed}, and the key of {caller.name!r} has {caller.role}")


def _imports_file(request: object) -> bool:
    """Whether a request spawns what becomes an import of the project first: a file, or ground from heights."""
    if not isinstance(request, SpawnActorRequest | SpawnGridRequest):
        return False
    return getattr(request, "heightfield", None) is not None or asked_path(request.blueprint).file is not None


def _paths(message: object) -> dict[str, str]:
    """The paths that a request or a reply names, for the audit log."""
    fields = getattr(message, "__struct_fields__", ())
    names = (name for name in fields if name in ("path", "blueprint") or name.endswith("_path"))
    return {name: value for name in names if isinstance(value := getattr(message, name), str)}


_IMMEDIATE = frozenset({"pie_status", "export_status", "export_cancel", "recent_log"})
"""Ops that wait for nothing and are done at once, beside those of the running scene."""

_OF_SCENE = frozenset({"replay_seek"})
"""Ops of the running scene, as quick as those of runtime, in other namespaces."""

_ELSEWHERE = frozenset({"set_camera_mode", "set_camera_streaming"})
"""Ops of the running scene that have to do with other threads than that of the simulation."""


def _is_of_scene(spec: OpSpec) -> bool:
    """Whether an op is quick while it has the running scene for itself."""
    if spec.category is not OpCategory.MANAGER_REQUIRED or spec.name in _ELSEWHERE:
        return False
    return spec.namespace in ("", "runtime") or spec.name in _OF_SCENE


def _takes_long(spec: OpSpec) -> bool:
    """Whether an op may take long, or wait for something else than the simulation."""
    return spec.name not in _IMMEDIATE and not _is_of_scene(spec)


def _pool_of(spec: OpSpec) -> str:
    if spec.reads and spec.name != "step" and (spec.limit_s <= DEFAULT_LIMIT_S or spec.name in PRE_SESSION):
        return "reading"
    return "simulation" if _is_of_scene(spec) else "editing"


def _encoding_of(frame: bytes) -> Encoding:
    return Encoding.JSON if looks_like_json(frame) else Encoding.MSGPACK


_LONG_MESSAGE = 600
_LONGEST_MESSAGE = 4000


def _without_echo(message: str, call: Call) -> str:
    """A message in which long texts of the request are cut short: what a client sends does not come back to it."""
    if len(message) <= _LONG_MESSAGE:
        return message
    for text in sorted(long_texts(call.frame), key=len, reverse=True):
        for shown in (repr(text), repr(text)[1:-1], text):
            message = message.replace(shown, excerpt(text))
    if len(message) <= _LONGEST_MESSAGE:
        return message
    half = _LONGEST_MESSAGE // 2
    return f"{message[:half]} ... {message[-half:]}"


def _failure(failed: UrlabError, spec: OpSpec | None) -> ErrorReply:
    """What goes wrong with files, models and actors has the code of the op, where the protocol gives it one."""
    if spec is not None and spec.failure is not None and isinstance(failed, _OF_THE_OP):
        return error(spec.failure, failed.message)
    path = failed.absolute_path if isinstance(failed, PathNotWritable) else None
    return error(failed.code, failed.message, absolute_path=path)


_OF_THE_OP = (EditError, FileError, CompileError)

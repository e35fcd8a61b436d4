"""Frame in, frame out. Every failure becomes an error reply; nothing that a client sends ends the server."""

import logging

import msgspec

from urlab.config import ServerConfig
from urlab.errors import (
    BadRequest,
    MissingField,
    NotInEditor,
    ObserverReadOnly,
    PathNotWritable,
    ShuttingDown,
    UnknownOp,
    UrlabError,
    known,
)
from urlab.manager import Play
from urlab.ops.context import Context
from urlab.ops.parsing import read_envelope, read_request
from urlab.ops.registry import HANDLERS
from urlab.ops.session import Session, SessionTable
from urlab_wire import CATALOGUE, ErrorCode, OpSpec, Reply, encode
from urlab_wire.catalogue import PRE_SESSION
from urlab_wire.codec import looks_like_json
from urlab_wire.enums import Encoding, OpCategory
from urlab_wire.envelope import Envelope, error

log = logging.getLogger("urlab.ops")


class Dispatcher:
    """Serves requests from any number of threads."""

    def __init__(self, config: ServerConfig, play: Play) -> None:
        self.sessions = SessionTable()
        self._config = config
        self._play = play
        self._draining = False

    def drain(self) -> None:
        """From now on every request is answered `shutting_down`."""
        self._draining = True

    def handle(self, frame: bytes) -> bytes:
        """Serve one request frame."""
        op, encoding = "", Encoding.JSON if looks_like_json(frame) else Encoding.MSGPACK
        try:
            envelope = self._admit(frame)
            op = envelope.op or ""
            session = self._session(envelope, encoding)
            encoding = session.encoding
            reply = self._run(_spec(op), frame, session)
            encoding = session.encoding
        except UrlabError as failed:
            reply = _failure(failed)
        except Exception as crashed:
            log.exception("op %r crashed", op)
            reply = error(ErrorCode.INTERNAL_ERROR, f"{op}: {type(crashed).__name__}: {crashed}")
        return self._encode(reply, encoding)

    def takes_long(self, frame: bytes) -> bool:
        """Whether serving a request may take so long that others should not wait behind it."""
        try:
            peek = _peek.decode(frame)
        except (msgspec.DecodeError, msgspec.ValidationError, ValueError, RecursionError):
            return False
        if peek.op == "step":
            return peek.n_steps is not None and peek.n_steps > _MANY_STEPS
        return peek.op in _SLOW_OPS

    # -- the checks, in the protocol's order --------------------------------------------------------------------

    def _admit(self, frame: bytes) -> Envelope:
        if self._draining:
            raise ShuttingDown("the server is stopping")
        return read_envelope(frame)

    def _session(self, envelope: Envelope, encoding: Encoding) -> Session:
        if envelope.op in PRE_SESSION:
            return Session(encoding=encoding)
        return self.sessions.find(envelope.session_id)

    def _run(self, spec: OpSpec, frame: bytes, session: Session) -> Reply:
        request = read_request(spec, frame)
        if isinstance(request, MissingField | BadRequest):
            raise request
        if spec.category is OpCategory.MANAGER_REQUIRED:
            self._play.require_playing()
        if session.observer and not spec.reads:
            raise ObserverReadOnly(f"{spec.name} changes the world, and this session is an observer")
        handler = HANDLERS.get(spec.name)
        if handler is None:
            raise NotInEditor(f"{spec.name} is part of the protocol, but this server does not offer it")
        if isinstance(request, UrlabError):
            raise request
        return handler(Context(self._config, self._play, self.sessions, session), request)

    def _encode(self, reply: Reply, encoding: Encoding) -> bytes:
        try:
            return encode(reply, encoding)
        except Exception as crashed:
            log.exception("a reply cannot be encoded")
            return encode(error(ErrorCode.INTERNAL_ERROR, f"the reply cannot be encoded: {crashed}"), encoding)


class _Peek(msgspec.Struct):
    op: str | None = None
    n_steps: int | None = None


_peek = msgspec.msgpack.Decoder(_Peek)
_MANY_STEPS = 100
_SLOW_OPS = frozenset(name for name, spec in CATALOGUE.items() if spec.limit_s > 5 and name != "hello")


def _spec(op: str) -> OpSpec:
    spec = CATALOGUE.get(op)
    if spec is None:
        raise UnknownOp(f"there is no op {op!r}; there are: {known(CATALOGUE, limit=100)}")
    return spec


def _failure(failed: UrlabError) -> Reply:
    path = failed.absolute_path if isinstance(failed, PathNotWritable) else None
    return error(failed.code, failed.message, absolute_path=path)

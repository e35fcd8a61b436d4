"""What can go wrong, each with the code that a client sees.

UrlabError
├── RequestError            the request itself is at fault
│   ├── BadRequest  MissingOp  UnknownOp  NotInEditor  SessionExpired  ObserverReadOnly  NotAllowed
│   └── MissingField  BadValue  BadMode  DimMismatch  InvalidCount  TooManyCells
├── LookupFailed            a name that does not exist; the message lists those that do
│   └── UnknownArticulation  UnknownBody  UnknownKeyframe  ReplaySessionNotFound
├── StateError              the right request at the wrong time, or of the wrong thing
│   ├── NoActiveManager  NotReady  ShuttingDown  StepTimeout  OpTimeout  ModeLocked  DriverBusy  RateLimited
│   ├── NotMocapBody  NoJoints  NoTwistController  NoController  ControllerSchemaViolation
│   └── RecordingAlreadyActive  RecordingNotActive  ReplayRequiresStepped
├── FileError               a file that cannot be used, with the reason
│   └── PathNotWritable  PathNotReadable  ImportFailed  UploadFailed  LoadLevelFailed
├── EditError               an edit of the level that cannot be made; the client sees the code of its op
│   └── UnknownActor  NoBounds
├── ViewError               a view that cannot be had
│   └── NoViewport  InvalidMode
├── CompileError            a scene that MuJoCo refuses; names the actor
├── PhysicsError            MuJoCo cannot step this state; a reset or a new start mends it
├── PluginError             a function of a plugin failed; the message names it
├── ActorsLost              the same work has cost several actors of a Ray cluster their lives
├── ChildFailed             a child process did not start, or ended before its work was done; has its last words
└── ConfigError             the server was started with options that cannot work
"""

import difflib
import errno
from collections.abc import Iterable
from typing import ClassVar

from urlab_wire import ErrorCode


class UrlabError(Exception):
    """Base: a message for people and a code for programs."""

    code: ClassVar[ErrorCode] = ErrorCode.INTERNAL_ERROR

    @property
    def message(self) -> str:
        """What was asked, what is wrong, what exists."""
        return str(self.args[0]) if self.args else self.code.meaning


class RequestError(UrlabError):
    """The request itself is at fault."""

    code = ErrorCode.BAD_VALUE


class BadRequest(RequestError):
    """The frame cannot be parsed."""

    code = ErrorCode.BAD_REQUEST


class MissingOp(RequestError):
    """There is no op."""

    code = ErrorCode.MISSING_OP


class UnknownOp(RequestError):
    """There is no such op."""

    code = ErrorCode.UNKNOWN_OP


class NotInEditor(RequestError):
    """The op exists, but not here."""

    code = ErrorCode.NOT_IN_EDITOR


class SessionExpired(RequestError):
    """The session is not open (any more)."""

    code = ErrorCode.SESSION_EXPIRED


class ObserverReadOnly(RequestError):
    """An observer tried to change the world."""

    code = ErrorCode.OBSERVER_READ_ONLY


class NotAllowed(RequestError):
    """The role of the caller's key does not cover this."""

    code = ErrorCode.NOT_ALLOWED


class MissingField(RequestError):
    """A required field is absent."""

    code = ErrorCode.MISSING_FIELD


class BadValue(RequestError):
    """A value of the wrong type, not finite, or not a known word."""

    code = ErrorCode.BAD_VALUE


class BadMode(RequestError):
    """Not a step mode."""

    code = ErrorCode.BAD_MODE


class DimMismatch(RequestError):
    """A vector of the wrong length."""

    code = ErrorCode.DIM_MISMATCH


class LookupFailed(UrlabError):
    """A name that does not exist."""

    code = ErrorCode.BAD_VALUE


class UnknownArticulation(LookupFailed):
    """No such articulation."""

    code = ErrorCode.UNKNOWN_ARTICULATION


class UnknownBody(LookupFailed):
    """No such body."""

    code = ErrorCode.UNKNOWN_BODY


class UnknownKeyframe(LookupFailed):
    """No such keyframe."""

    code = ErrorCode.UNKNOWN_KEYFRAME


class ReplaySessionNotFound(LookupFailed):
    """No recording of that name is loaded."""

    code = ErrorCode.REPLAY_SESSION_NOT_FOUND


class StateError(UrlabError):
    """The right request at the wrong time."""

    code = ErrorCode.NOT_READY


class NoActiveManager(StateError):
    """No simulation runs."""

    code = ErrorCode.NO_ACTIVE_MANAGER


class NotReady(StateError):
    """There is no compiled model."""

    code = ErrorCode.NOT_READY


class ShuttingDown(StateError):
    """The server is stopping."""

    code = ErrorCode.SHUTTING_DOWN


class StepTimeout(StateError):
    """A step did not finish in time."""

    code = ErrorCode.STEP_TIMEOUT


class OpTimeout(StateError):
    """An op did not get its turn in time."""

    code = ErrorCode.TIMEOUT


class ModeLocked(StateError):
    """The step mode was fixed at start."""

    code = ErrorCode.MODE_LOCKED_BY_SERVER


class DriverBusy(StateError):
    """Another caller has the driver's seat, and uses it."""

    code = ErrorCode.DRIVER_BUSY


class RateLimited(StateError):
    """A caller sends more than its share."""

    code = ErrorCode.RATE_LIMITED


class NotMocapBody(StateError):
    """The body is not a mocap body."""

    code = ErrorCode.NOT_MOCAP_BODY


class NoJoints(StateError):
    """The target has no joints."""

    code = ErrorCode.NO_JOINTS


class NoTwistController(StateError):
    """The articulation has no twist controller."""

    code = ErrorCode.NO_TWIST_CONTROLLER


class NoController(StateError):
    """The articulation has no controller."""

    code = ErrorCode.NO_CONTROLLER


class ControllerSchemaViolation(StateError):
    """Params that the controller refuses."""

    code = ErrorCode.CONTROLLER_SCHEMA_VIOLATION


class RecordingAlreadyActive(StateError):
    """A recording is running."""

    code = ErrorCode.RECORDING_ALREADY_ACTIVE


class RecordingNotActive(StateError):
    """There is no recording."""

    code = ErrorCode.RECORDING_NOT_ACTIVE


class ReplayRequiresStepped(StateError):
    """Replay was asked for in live mode."""

    code = ErrorCode.REPLAY_REQUIRES_STEPPED


class FileError(UrlabError):
    """A file that cannot be used."""

    code = ErrorCode.PATH_NOT_READABLE


class PathNotWritable(FileError):
    """The file cannot be written; ``absolute_path`` says which."""

    code = ErrorCode.PATH_NOT_WRITABLE

    def __init__(self, message: str, *, absolute_path: str | None = None) -> None:
        super().__init__(message)
        self.absolute_path = absolute_path


class PathNotReadable(FileError):
    """The file cannot be read."""

    code = ErrorCode.PATH_NOT_READABLE


class ImportFailed(FileError):
    """The model file or its sidecar cannot be used."""

    code = ErrorCode.IMPORT_FAILED


class UploadFailed(FileError):
    """What a client sent is no model, or holds none, or is not to be unpacked."""

    code = ErrorCode.UPLOAD_FAILED


class LoadLevelFailed(FileError):
    """The level cannot be loaded."""

    code = ErrorCode.LOAD_LEVEL_FAILED


class EditError(UrlabError):
    """An edit of the level that cannot be made."""

    code = ErrorCode.BAD_VALUE


class UnknownActor(EditError):
    """No such actor."""

    code = ErrorCode.UNKNOWN_ACTOR


class NoBounds(EditError):
    """The actor has no geometry."""

    code = ErrorCode.NO_BOUNDS


class InvalidCount(RequestError):
    """A grid without cells."""

    code = ErrorCode.INVALID_COUNT


class TooManyCells(RequestError):
    """A grid with more cells than a level takes at once."""

    code = ErrorCode.TOO_MANY_CELLS


class ViewError(UrlabError):
    """A view that cannot be had."""

    code = ErrorCode.NO_VIEWPORT


class NoViewport(ViewError):
    """Nothing can be drawn on this machine."""

    code = ErrorCode.NO_VIEWPORT


class InvalidMode(ViewError):
    """Not a viewport mode."""

    code = ErrorCode.INVALID_MODE


class CompileError(UrlabError):
    """MuJoCo refuses the scene."""

    code = ErrorCode.NOT_READY


class PhysicsError(UrlabError):
    """MuJoCo cannot go on from this state."""

    code = ErrorCode.PHYSICS_ERROR


class PluginError(UrlabError):
    """A function of a plugin failed."""


class ConfigError(UrlabError):
    """The server cannot start like this."""

    code = ErrorCode.BAD_VALUE


class ActorsLost(UrlabError):
    """The same work has cost several actors of a Ray cluster their lives."""


class ChildFailed(UrlabError):
    """A child process did not start, or ended before its work was done."""


def known(names: Iterable[str], *, limit: int = 20) -> str:
    """The names that exist, for the end of a message: ``a, b, c`` or ``a, b, ... (40 in all)``."""
    listed = sorted(names)
    if not listed:
        return "none"
    head = ", ".join(listed[:limit])
    return head if len(listed) <= limit else f"{head}, ... ({len(listed)} in all)"


_EXCERPT_CHARACTERS = 200


def excerpt(text: object) -> str:
    """What a client sent, quoted for a message; of a long text its beginning and its length."""
    whole = str(text)
    if len(whole) <= _EXCERPT_CHARACTERS:
        return repr(whole)
    return f"{whole[:_EXCERPT_CHARACTERS]!r}... ({len(whole)} characters)"


def did_you_mean(word: object, words: Iterable[str]) -> str:
    """`` (did you mean 'x'?)`` when one of the words is close, else nothing."""
    close = difflib.get_close_matches(str(word), list(words), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def shortage(crashed: Exception) -> str:
    """What the machine did not give, if that is why something failed: no fault of ours, so no traceback."""
    if isinstance(crashed, MemoryError):
        return "did not get the memory that it needs"
    if isinstance(crashed, RuntimeError) and "start new thread" in str(crashed):
        return "did not get a thread: this process has too many, or too little memory (ulimit -u, ulimit -v)"
    missing = _SHORT_OF.get(getattr(crashed, "errno", None) or 0)  # an OSError, or ZeroMQ's
    return f"did not get {missing}" if missing else ""


_SHORT_OF = {
    errno.EMFILE: "a file descriptor: this process has too many (ulimit -n)",
    errno.ENFILE: "a file descriptor: the machine has none left",
    errno.ENOSPC: "room on the disk",
    errno.ENOMEM: "the memory that it needs",
}

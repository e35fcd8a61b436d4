"""Words that travel on the wire, as string enums: a member serialises as its wire word."""

from enum import StrEnum

from urlab_wire.pixels import PixelFormat


class StepMode(StrEnum):
    """Who advances physics. ``AUTO`` means live."""

    AUTO = "auto"
    DIRECT = "direct"
    PUPPET = "puppet"
    LIVE = "live"


class ResetScope(StrEnum):
    """What goes back to the start: time and state, or one of them."""

    ALL = "all"
    STATE = "state"
    TIME = "time"


class ParamsUntil(StrEnum):
    """How long changed parameters of the model stay."""

    RESET = "reset"
    STOP = "stop"


class ControlMode(StrEnum):
    """What a step's ``ctrl`` means: setpoints for the controller, or raw actuator signals."""

    UE_CONTROLLER = "ue_controller"
    RAW = "raw"


class ControlSource(StrEnum):
    """Whose setpoints the actuators follow: those of the wire, or those of a user interface."""

    ZMQ = "zmq"
    UI = "ui"


class ActuatorType(StrEnum):
    """The kind of an actuator as its MJCF author wrote it; a ``<general>`` may be exactly one of the others."""

    MOTOR = "motor"
    POSITION = "position"
    VELOCITY = "velocity"
    INT_VELOCITY = "intvelocity"
    DAMPER = "damper"
    CYLINDER = "cylinder"
    MUSCLE = "muscle"
    ADHESION = "adhesion"
    DC_MOTOR = "dcmotor"
    GENERAL = "general"


class ControllerKind(StrEnum):
    """The controllers that an articulation can carry."""

    PD = "pd"
    PASSTHROUGH = "passthrough"


class CameraMode(StrEnum):
    """What a camera's pixels mean; ``pixel_format`` says how to read them, in every mode the same way for a format."""

    pixel_format: PixelFormat

    def __new__(cls, word: str, pixel_format: PixelFormat | None = None) -> "CameraMode":
        """A member is its word on the wire, and carries the format of its frames; ``CameraMode(word)`` finds it."""
        if pixel_format is None:
            raise TypeError(f"camera mode {word!r} says no pixel format")
        member = str.__new__(cls, word)
        member._value_ = word
        member.pixel_format = pixel_format
        return member

    REAL = "real", PixelFormat.COLOR_BGRA8
    DEPTH = "depth", PixelFormat.DEPTH_F32
    SEMANTIC = "semantic", PixelFormat.LABEL_BGRA8
    INSTANCE = "instance", PixelFormat.LABEL_BGRA8


def declare_camera_mode(word: str, pixel_format: PixelFormat) -> CameraMode:
    """One more camera mode, for this process: one of a plugin. ValueError when the word has another format already."""
    found = CameraMode._value2member_map_.get(word)
    if found is None:
        member = str.__new__(CameraMode, word)
        member._name_, member._value_, member.pixel_format = word.upper(), word, pixel_format
        CameraMode._member_names_.append(member.name)
        CameraMode._member_map_[member.name] = member
        CameraMode._value2member_map_[word] = member
        type.__setattr__(CameraMode, member.name, member)
        return member
    mode = CameraMode(word)
    if mode.pixel_format is not pixel_format:
        raise ValueError(f"camera mode {word!r} has the format {mode.pixel_format.name}, not {pixel_format.name}")
    return mode


class CameraTiming(StrEnum):
    """Whether a step waits for a fresh frame or ships the newest one at hand."""

    SYNC = "sync"
    LATEST = "latest"


class ObservationLevel(StrEnum):
    """How much of the state a reply carries."""

    MINIMAL = "minimal"
    STANDARD = "standard"
    FULL = "full"


class PIEState(StrEnum):
    """Where the play lifecycle stands."""

    OFF = "off"
    COMPILING = "compiling"
    COMPILE_FAILED = "compile_failed"
    TIMEOUT = "timeout"
    READY = "ready"


class ExportState(StrEnum):
    """How far an export is."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class LightKind(StrEnum):
    """The lights that ``spawn_light`` knows."""

    DIRECTIONAL = "directional"
    POINT = "point"
    SPOT = "spot"


class SpaceMode(StrEnum):
    """How an environment lays out its action and observation spaces."""

    FLAT = "flat"
    DICT = "dict"


class Encoding(StrEnum):
    """How a session's replies are encoded."""

    MSGPACK = "msgpack"
    JSON = "json"


class OpCategory(StrEnum):
    """What must be running for an op to be served."""

    EDITOR_ONLY = "editor_only"
    MANAGER_REQUIRED = "manager_required"
    NO_MANAGER = "no_manager"


class RowLayout(StrEnum):
    """The generation of the row layouts that the streams use."""

    V1 = "v1"
    V2 = "v2"

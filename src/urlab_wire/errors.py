"""Every error code of the protocol, with its meaning."""

from enum import StrEnum


class ErrorCode(StrEnum):
    """Short, stable codes of error replies. ``meaning`` is a sentence for people."""

    meaning: str

    def __new__(cls, code: str, meaning: str = "") -> "ErrorCode":
        member = str.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member

    BAD_REQUEST = "bad_request", "The frame is neither JSON nor msgpack, or not a map."
    MISSING_OP = "missing_op", "The request has no op."
    UNKNOWN_OP = "unknown_op", "No op of that name exists."
    NOT_IN_EDITOR = "not_in_editor", "The op exists but this server has no handler for it."
    NO_ACTIVE_MANAGER = "no_active_manager", "The op needs a running simulation: begin_pie first."
    SESSION_EXPIRED = "session_expired", "The session_id is not that of an open session: hello first."
    MISSING_FIELD = "missing_field", "A required field is absent."
    NOT_READY = "not_ready", "The physics engine has no model."
    BAD_MODE = "bad_mode", "set_mode got an unknown mode."
    BAD_VALUE = "bad_value", "A value has the wrong type, is not finite, or is not one of the known words."
    UNKNOWN_ARTICULATION = "unknown_articulation", "No articulation of that name exists."
    UNKNOWN_BODY = "unknown_body", "No body of that name exists."
    NOT_MOCAP_BODY = "not_mocap_body", "The body is not a mocap body."
    UNKNOWN_KEYFRAME = "unknown_keyframe", "No keyframe of that name exists."
    DIM_MISMATCH = "dim_mismatch", "A vector has the wrong length."
    NO_JOINTS = "no_joints", "The target has no joints."
    NO_TWIST_CONTROLLER = "no_twist_controller", "The articulation has no twist controller."
    NO_CONTROLLER = "no_controller", "The articulation has no controller."
    CONTROLLER_SCHEMA_VIOLATION = "controller_schema_violation", "The params break the controller's schema."
    MODE_LOCKED_BY_SERVER = "mode_locked_by_server", "The server was started with a fixed step mode."
    RECORDING_ALREADY_ACTIVE = "recording_already_active", "A recording is running."
    RECORDING_NOT_ACTIVE = "recording_not_active", "There is no recording."
    PATH_NOT_WRITABLE = "path_not_writable", "The file cannot be written."
    PATH_NOT_READABLE = "path_not_readable", "The file cannot be read."
    REPLAY_SESSION_NOT_FOUND = "replay_session_not_found", "No recording of that name is loaded."
    REPLAY_REQUIRES_STEPPED = "replay_requires_stepped", "Replay runs in direct or puppet mode only."
    STEP_TIMEOUT = "step_timeout", "A direct step did not finish within its time limit."
    SHUTTING_DOWN = "shutting_down", "The server is stopping."

    IMPORT_FAILED = "import_failed", "The model cannot be imported."
    CREATE_LEVEL_FAILED = "create_level_failed", "The level cannot be created."
    LOAD_LEVEL_FAILED = "load_level_failed", "The level cannot be loaded."
    SAVE_LEVEL_FAILED = "save_level_failed", "The level cannot be saved."
    NO_WORLD = "no_world", "There is no level."
    NO_ENGINE = "no_engine", "There is nothing to draw on."
    SPAWN_FAILED = "spawn_failed", "The actor cannot be spawned."
    INVALID_COUNT = "invalid_count", "A grid needs counts above zero."
    TOO_MANY_CELLS = "too_many_cells", "A grid has at most 1024 cells."
    DESTROY_FAILED = "destroy_failed", "The actor cannot be destroyed."
    DESTROY_ASSET_FAILED = "destroy_asset_failed", "The asset cannot be destroyed."
    SET_ACTOR_TRANSFORM_FAILED = "set_actor_transform_failed", "The actor cannot be moved."
    DUPLICATE_FAILED = "duplicate_failed", "The actor cannot be duplicated."
    ACTOR_HIERARCHY_FAILED = "actor_hierarchy_failed", "The hierarchy cannot be read."
    SNAPSHOT_FAILED = "snapshot_failed", "The scene cannot be read."
    LIST_ACTORS_FAILED = "list_actors_failed", "The actors cannot be listed."
    LIST_BLUEPRINTS_FAILED = "list_blueprints_failed", "The blueprints cannot be listed."
    FIND_ACTORS_FAILED = "find_actors_failed", "The actors cannot be searched."
    GET_ACTOR_BOUNDS_FAILED = "get_actor_bounds_failed", "The bounds cannot be computed."
    SELECT_FAILED = "select_failed", "The actor cannot be selected."
    ADD_QUICK_CONVERT_FAILED = "add_quick_convert_failed", "The actor cannot be converted."
    REMOVE_QUICK_CONVERT_FAILED = "remove_quick_convert_failed", "The conversion cannot be removed."
    NO_VIEWPORT = "no_viewport", "There is no viewport."
    UNKNOWN_ACTOR = "unknown_actor", "No actor of that name exists."
    NO_BOUNDS = "no_bounds", "The actor has no geometry."
    INVALID_MODE = "invalid_mode", "The viewport mode is unknown."
    TIMEOUT = "timeout", "The op did not finish within its time limit."
    WRONG_TRANSPORT = "wrong_transport", "The op is not served on this transport."
    REPLY_TOO_LARGE = "reply_too_large", "The reply does not fit this transport: ask again over ZMQ."

    NOT_ALLOWED = "not_allowed", "The caller's key has a role that may not do this."
    DRIVER_BUSY = "driver_busy", "Another caller drives: wait, ask it to close, or say hello with takeover."
    RATE_LIMITED = "rate_limited", "The caller's key has sent more than its share: wait a moment."
    OBSERVER_READ_ONLY = "observer_read_only", "An observer may look, but not drive or change the world."
    PHYSICS_ERROR = "physics_error", "MuJoCo cannot step this state: reset it, or start the simulation again."
    INTERNAL_ERROR = "internal_error", "The server failed on this request; its log has the details."

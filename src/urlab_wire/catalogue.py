"""Every op of the protocol: what it is called, what it needs, what it takes and what it answers.

`meta` is derived from this table, and so are the checks of the dispatcher. An op is in the table whether or not
this server has a handler for it yet.
"""

import types
import typing
from collections.abc import Iterator
from typing import Any

import msgspec

from urlab_wire.enums import OpCategory
from urlab_wire.envelope import Reply, Request, ok_op
from urlab_wire.errors import ErrorCode
from urlab_wire.ops import (
    debug,
    outliner,
    recording,
    replay,
    runtime,
    scene,
    session,
    sim,
    stepping,
    viewport,
)

DEFAULT_LIMIT_S = 5.0


class OpSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One op. ``reads`` says that an observer may call it; ``limit_s`` is its time limit in seconds.

    ``failure`` is the code of everything that can go wrong with the files, models and actors that the op works on.
    """

    name: str
    category: OpCategory
    namespace: str
    request: type[Request]
    reply: type[Reply]
    reads: bool = False
    limit_s: float = DEFAULT_LIMIT_S
    failure: ErrorCode | None = None

    @property
    def reply_op(self) -> str:
        """The ``op`` of its successful reply."""
        return ok_op(self.name)

    def required_fields(self) -> list[str]:
        """Fields without which the request is refused, in declared order."""
        return [field.encode_name for field in msgspec.structs.fields(self.request) if field.required]

    def reply_fields(self) -> list[str]:
        """``name:type`` of every reply field, with a trailing ``?`` where it may be absent."""
        fields = msgspec.structs.fields(self.reply)
        return ["op:string", *(_describe(field) for field in fields)]

    def meta(self) -> session.OpEntry:
        """The op's entry in the catalogue that `meta` answers."""
        return session.OpEntry(
            name=self.name,
            category=self.category,
            namespace=self.namespace,
            required_fields=self.required_fields() or None,
            reply_fields=self.reply_fields(),
        )


def op(name: str) -> OpSpec:
    """The spec of an op; KeyError when there is none."""
    return CATALOGUE[name]


def meta_ops() -> list[session.OpEntry]:
    """The catalogue as `meta` answers it, without hello and meta."""
    return [spec.meta() for spec in CATALOGUE.values() if spec.name not in PRE_SESSION]


def _describe(field: msgspec.structs.FieldInfo) -> str:
    optional = "" if field.required else "?"
    return f"{field.encode_name}:{_type_word(field.type)}{optional}"


def _type_word(annotation: Any) -> str:
    if isinstance(annotation, types.UnionType):
        (annotation,) = (arm for arm in typing.get_args(annotation) if arm is not types.NoneType)
    plain = typing.get_origin(annotation) or annotation
    return _TYPE_WORDS.get(plain, "object")


_TYPE_WORDS: dict[Any, str] = {
    str: "string", int: "int", float: "float", bool: "bool", bytes: "binary",
    list: "array", tuple: "array", dict: "object",
}  # fmt: skip


_FAILURES = {
    **{code.removesuffix("_failed"): code for code in ErrorCode if code.endswith("_failed")},
    **dict.fromkeys(("spawn_actor", "spawn_grid", "spawn_light", "ensure_manager"), ErrorCode.SPAWN_FAILED),
    "current_level": ErrorCode.NO_WORLD,
    "destroy_actor": ErrorCode.DESTROY_FAILED,
    "duplicate_actor": ErrorCode.DUPLICATE_FAILED,
    "import_xml": ErrorCode.IMPORT_FAILED,
    "select_actor": ErrorCode.SELECT_FAILED,
}


def _ops(
    namespace: str,
    module: types.ModuleType,
    category: OpCategory,
    names: str,
    *,
    reads: str = "",
    **limits: float,
) -> Iterator[OpSpec]:
    for name in names.split():
        stem = "".join(word.capitalize() for word in name.split("_"))
        yield OpSpec(
            name=name,
            category=category,
            namespace=namespace,
            request=getattr(module, f"{stem}Request"),
            reply=getattr(module, f"{stem}Reply"),
            reads=name in reads.split(),
            limit_s=limits.get(name, DEFAULT_LIMIT_S),
            failure=_FAILURES.get(name),
        )


def _all_ops() -> Iterator[OpSpec]:
    editor, manager = OpCategory.EDITOR_ONLY, OpCategory.MANAGER_REQUIRED
    yield from _ops("", session, OpCategory.NO_MANAGER, "hello meta", reads="hello meta", hello=30)
    yield from _ops("", stepping, manager, "step reset", reads="step")
    yield from _ops("runtime", stepping, manager, "forward")
    yield from _ops(
        "runtime", runtime, manager,
        "set_mode set_paused set_sim_speed set_control_source set_twist set_qpos set_mocap_pose read_mocap_pose "
        "get_contacts list_keyframes configure_controller set_sim_options set_camera_mode set_camera_streaming",
        reads="read_mocap_pose get_contacts list_keyframes",
    )  # fmt: skip
    yield from _ops(
        "recording", recording, manager, "recording_start recording_stop recording_save recording_clear",
        recording_save=60,
    )  # fmt: skip
    yield from _ops(
        "replay", replay, manager,
        "replay_load replay_list_sessions replay_set_active replay_start replay_stop",
        reads="replay_list_sessions", replay_load=60,
    )  # fmt: skip
    yield from _ops(
        "scene", scene, editor,
        "import_xml create_level load_level save_level current_level ensure_manager spawn_actor spawn_grid "
        "spawn_light destroy_actor destroy_asset set_actor_transform duplicate_actor actor_hierarchy snapshot",
        reads="current_level actor_hierarchy snapshot", import_xml=120, create_level=30, load_level=30,
        save_level=30, spawn_actor=30, spawn_grid=60, duplicate_actor=30,
    )  # fmt: skip
    yield from _ops("sim", sim, editor, "begin_pie stop_pie pie_status", reads="pie_status", begin_pie=120, stop_pie=30)
    yield from _ops(
        "outliner", outliner, editor,
        "list_actors list_blueprints find_actors get_actor_bounds select_actor add_quick_convert "
        "remove_quick_convert",
        reads="list_actors list_blueprints find_actors get_actor_bounds", list_actors=30, find_actors=30,
        get_actor_bounds=30, add_quick_convert=120,
    )  # fmt: skip
    yield from _ops(
        "debug", debug, editor,
        "draw_marker draw_line draw_box draw_arrow draw_axes clear_markers set_overlay_text",
    )  # fmt: skip
    yield from _ops(
        "viewport", viewport, editor,
        "set_camera get_camera frame_actor set_viewport_mode track_actor untrack viewport_screenshot",
        reads="get_camera viewport_screenshot", viewport_screenshot=60,
    )  # fmt: skip


def _table() -> dict[str, OpSpec]:
    table: dict[str, OpSpec] = {}
    for spec in _all_ops():
        if spec.name in table:
            raise ValueError(f"op {spec.name!r} is declared twice")
        table[spec.name] = spec
    return table


PRE_SESSION = ("hello", "meta")
CATALOGUE: dict[str, OpSpec] = _table()

"""Every op of the protocol: what it is called, what it needs, what it takes and what it answers.

`meta` is derived from this table, and so are the checks of the dispatcher. An op may be in the table without
this server having a handler for it: it then answers not_in_editor.
"""

import sys
import types
import typing
from collections.abc import Iterator
from typing import Any

import msgspec

from urlab_wire.enums import OpCategory
from urlab_wire.envelope import Reply, Request, ok_op
from urlab_wire.errors import ErrorCode
from urlab_wire.ops import batch, debug, outliner, recording, replay, runtime, scene, session, sim, stepping, viewport

DEFAULT_LIMIT_S = 5.0
PICTURE_LIMIT_S = 60.0
"""How long a picture may take, also one that comes with another reply: without a GPU the first ones are slow."""


class OpSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One op. ``reads`` says that an observer may call it; ``limit_s`` is its time limit in seconds.

    ``failure`` is the code of everything that can go wrong with the files, models and actors that the op works on.
    """

    name: str
    category: OpCategory
    namespace: str
    request: type[Request[Reply]]
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
        words = [f"{one.encode_name}:{_type_word(one.type)}{'' if one.required else '?'}" for one in fields]
        return ["op:string", *words]

    def meta(self) -> session.OpEntry:
        """The op's entry in the catalogue that `meta` answers."""
        return session.OpEntry(
            name=self.name,
            category=self.category,
            namespace=self.namespace,
            required_fields=self.required_fields() or None,
            reply_fields=self.reply_fields(),
        )


def meta_ops() -> list[session.OpEntry]:
    """The catalogue as `meta` answers it, without hello and meta."""
    return [spec.meta() for spec in CATALOGUE.values() if spec.name not in PRE_SESSION]


def _type_word(annotation: Any) -> str:
    if isinstance(annotation, types.UnionType):
        (annotation,) = (arm for arm in typing.get_args(annotation) if arm is not types.NoneType)
    plain = typing.get_origin(annotation) or annotation
    return _TYPE_WORDS.get(plain, "object")


_TYPE_WORDS: dict[Any, str] = {
    str: "string", int: "int", float: "float", bool: "bool", bytes: "binary",
    list: "array", tuple: "array", dict: "object",
}  # fmt: skip


def _op(
    request: type[Request[Reply]],
    *,
    reads: bool = False,
    limit_s: float = DEFAULT_LIMIT_S,
    failure: ErrorCode | None = None,
) -> OpSpec:
    """One op, whose place `_namespace` fills in: its request has its name for a tag, and names its reply."""
    (base,) = request.__dict__["__orig_bases__"]
    (reply,) = typing.get_args(base)
    return OpSpec(
        name=str(request.__struct_config__.tag),
        category=_ALWAYS,
        namespace="",
        request=request,
        reply=getattr(sys.modules[request.__module__], reply.__forward_arg__),
        reads=reads,
        limit_s=limit_s,
        failure=failure,
    )


def describe_op(
    request: type[Request[Reply]],
    namespace: str,
    category: OpCategory,
    *,
    reads: bool = False,
    limit_s: float = DEFAULT_LIMIT_S,
) -> OpSpec:
    """An op of a plugin, for the table: its request has its name for a tag, and names its reply."""
    described = _op(request, reads=reads, limit_s=limit_s)
    return msgspec.structs.replace(described, namespace=namespace, category=category)


def _namespace(name: str, category: OpCategory, *ops: OpSpec) -> Iterator[OpSpec]:
    for one in ops:
        yield msgspec.structs.replace(one, namespace=name, category=category)


def _table(*specs: OpSpec) -> dict[str, OpSpec]:
    table: dict[str, OpSpec] = {}
    for spec in specs:
        if spec.name in table:
            raise ValueError(f"op {spec.name!r} is declared twice")
        table[spec.name] = spec
    return table


_ALWAYS, _MANAGER, _EDITOR = OpCategory.NO_MANAGER, OpCategory.MANAGER_REQUIRED, OpCategory.EDITOR_ONLY

PRE_SESSION = ("hello", "meta")
CATALOGUE: dict[str, OpSpec] = _table(
    *_namespace("", _ALWAYS,
        _op(session.HelloRequest, reads=True, limit_s=30),
        _op(session.MetaRequest, reads=True),
    ),
    *_namespace("", _MANAGER,
        _op(stepping.StepRequest, reads=True),
        _op(stepping.ResetRequest),
    ),
    *_namespace("runtime", _MANAGER,
        _op(stepping.ForwardRequest),
        _op(runtime.SetModeRequest),
        _op(runtime.SetPausedRequest),
        _op(runtime.SetSimSpeedRequest),
        _op(runtime.SetControlSourceRequest),
        _op(runtime.SetTwistRequest),
        _op(runtime.SetQposRequest),
        _op(runtime.SetMocapPoseRequest),
        _op(runtime.ReadMocapPoseRequest, reads=True),
        _op(runtime.GetContactsRequest, reads=True),
        _op(runtime.ListKeyframesRequest, reads=True),
        _op(runtime.ConfigureControllerRequest),
        _op(runtime.SetSimOptionsRequest),
        _op(runtime.PerturbRequest),
        _op(runtime.ReleasePerturbationRequest),
        _op(runtime.SetUiControlsRequest),
        _op(runtime.SaveStateRequest),
        _op(stepping.RestoreStateRequest),
        _op(runtime.ListStatesRequest, reads=True),
        _op(runtime.DeleteStateRequest),
        _op(runtime.SetEqualityRequest),
        _op(runtime.SetModelParamsRequest),
        _op(runtime.SetCameraModeRequest),
        _op(runtime.SetCameraStreamingRequest),
    ),
    *_namespace("batch", _MANAGER,
        _op(batch.BatchOpenRequest, limit_s=60),
        _op(batch.BatchStepRequest, limit_s=60),
        _op(batch.BatchResetRequest, limit_s=60),
        _op(batch.BatchCloseRequest),
    ),
    *_namespace("recording", _MANAGER,
        _op(recording.RecordingStartRequest),
        _op(recording.RecordingStopRequest),
        _op(recording.RecordingSaveRequest, limit_s=60),
        _op(recording.RecordingClearRequest),
        _op(recording.RecordingStatusRequest, reads=True),
    ),
    *_namespace("recording", _ALWAYS,
        _op(recording.ListRecordingsRequest, reads=True),
        _op(recording.RecordingExportRequest, limit_s=60),
        _op(recording.ExportStatusRequest, reads=True),
        _op(recording.ExportCancelRequest),
    ),
    *_namespace("replay", _MANAGER,
        _op(replay.ReplayLoadRequest, limit_s=60),
        _op(replay.ReplayListSessionsRequest, reads=True),
        _op(replay.ReplaySetActiveRequest),
        _op(replay.ReplayStartRequest),
        _op(replay.ReplaySeekRequest),
        _op(replay.ReplayStopRequest),
    ),
    *_namespace("scene", _EDITOR,
        _op(scene.ImportXmlRequest, limit_s=120, failure=ErrorCode.IMPORT_FAILED),
        _op(scene.UploadAssetRequest, limit_s=60, failure=ErrorCode.UPLOAD_FAILED),
        _op(scene.CreateLevelRequest, limit_s=30, failure=ErrorCode.CREATE_LEVEL_FAILED),
        _op(scene.LoadLevelRequest, limit_s=30, failure=ErrorCode.LOAD_LEVEL_FAILED),
        _op(scene.SaveLevelRequest, limit_s=30, failure=ErrorCode.SAVE_LEVEL_FAILED),
        _op(scene.ListLevelsRequest, reads=True, failure=ErrorCode.NO_WORLD),
        _op(scene.CurrentLevelRequest, reads=True, failure=ErrorCode.NO_WORLD),
        _op(scene.EnsureManagerRequest, failure=ErrorCode.SPAWN_FAILED),
        _op(scene.SpawnActorRequest, limit_s=30, failure=ErrorCode.SPAWN_FAILED),
        _op(scene.SpawnGridRequest, limit_s=60, failure=ErrorCode.SPAWN_FAILED),
        _op(scene.SpawnLightRequest, failure=ErrorCode.SPAWN_FAILED),
        _op(scene.DestroyActorRequest, failure=ErrorCode.DESTROY_FAILED),
        _op(scene.DestroyAssetRequest, failure=ErrorCode.DESTROY_ASSET_FAILED),
        _op(scene.SetActorTransformRequest, failure=ErrorCode.SET_ACTOR_TRANSFORM_FAILED),
        _op(scene.DuplicateActorRequest, limit_s=30, failure=ErrorCode.DUPLICATE_FAILED),
        _op(scene.UndoRequest, failure=ErrorCode.UNDO_FAILED),
        _op(scene.RedoRequest, failure=ErrorCode.REDO_FAILED),
        _op(scene.ActorHierarchyRequest, reads=True, failure=ErrorCode.ACTOR_HIERARCHY_FAILED),
        _op(scene.SnapshotRequest, reads=True, failure=ErrorCode.SNAPSHOT_FAILED),
    ),
    *_namespace("sim", _EDITOR,
        _op(sim.BeginPieRequest, limit_s=120),
        _op(sim.StopPieRequest, limit_s=30),
        _op(sim.PieStatusRequest, reads=True),
        _op(sim.RecentLogRequest, reads=True),
    ),
    *_namespace("outliner", _EDITOR,
        _op(outliner.ListActorsRequest, reads=True, limit_s=30, failure=ErrorCode.LIST_ACTORS_FAILED),
        _op(outliner.ListBlueprintsRequest, reads=True, failure=ErrorCode.LIST_BLUEPRINTS_FAILED),
        _op(
            outliner.BlueprintPictureRequest,
            reads=True,
            limit_s=PICTURE_LIMIT_S,
            failure=ErrorCode.BLUEPRINT_PICTURE_FAILED,
        ),
        _op(outliner.FindActorsRequest, reads=True, limit_s=30, failure=ErrorCode.FIND_ACTORS_FAILED),
        _op(outliner.GetActorBoundsRequest, reads=True, limit_s=30, failure=ErrorCode.GET_ACTOR_BOUNDS_FAILED),
        _op(outliner.SelectActorRequest, failure=ErrorCode.SELECT_FAILED),
        _op(outliner.AddQuickConvertRequest, limit_s=120, failure=ErrorCode.ADD_QUICK_CONVERT_FAILED),
        _op(outliner.RemoveQuickConvertRequest, failure=ErrorCode.REMOVE_QUICK_CONVERT_FAILED),
    ),
    *_namespace("debug", _EDITOR,
        _op(debug.DrawMarkerRequest),
        _op(debug.DrawLineRequest),
        _op(debug.DrawBoxRequest),
        _op(debug.DrawArrowRequest),
        _op(debug.DrawAxesRequest),
        _op(debug.ClearMarkersRequest),
        _op(debug.SetOverlayTextRequest),
        _op(debug.SetOverlayChoiceRequest),
    ),
    *_namespace("viewport", _EDITOR,
        _op(viewport.SetCameraRequest),
        _op(viewport.GetCameraRequest, reads=True),
        _op(viewport.FrameActorRequest),
        _op(viewport.SetViewportModeRequest),
        _op(viewport.TrackActorRequest),
        _op(viewport.UntrackRequest),
        _op(viewport.LookThroughRequest),
        _op(viewport.SetViewportOverlaysRequest),
        _op(viewport.ReadViewRequest, reads=True, limit_s=30),
        _op(viewport.EditorAddressRequest),
        _op(viewport.ViewportScreenshotRequest, reads=True, limit_s=PICTURE_LIMIT_S),
    ),
)  # fmt: skip

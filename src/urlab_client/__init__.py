"""The typed Python client of URLab servers.

```python
from urlab_client import URLabClient

with URLabClient("tcp://localhost", step_mode="direct") as client:
    client.discover()
    client.step()
```

`client` is the public class, on `session` (joining, step mode, leaving) and `state` (what is known of the scene);
`awaited` is the same for asyncio. Requests go through `rpc` to a transport (`transports`), streams come in by
`feeds`. `namespaces` are the ops by group, `handles` the parts of the scene, `mirror` the local copy of the server's
state. `following` stays with a server through its restarts. `types` (each one of `results`), `enums` and `errors` are
what callers get;
`lookup` and `checks` refuse wrong names and arguments before anything is sent; `html` is what notebooks show.
"""

from urlab_client.awaited import AsyncURLabClient
from urlab_client.client import URLabClient
from urlab_client.enums import (
    ActuatorType,
    CameraMode,
    CameraTiming,
    ControllerKind,
    ControlMode,
    ControlSource,
    ExportState,
    LightKind,
    ObservationLevel,
    PIEState,
    SpaceMode,
    StepMode,
)
from urlab_client.errors import (
    URLabControllerError,
    URLabGoneError,
    URLabLocalEditWarning,
    URLabLookupError,
    URLabModeWarning,
    URLabPIEError,
    URLabRPCError,
    URLabTimeoutError,
    URLabValueError,
    URLabVersionMismatch,
)
from urlab_client.handles.articulation import URLabArticulation
from urlab_client.handles.camera import URLabCameraView
from urlab_client.handles.controller import URLabController, URLabPDController
from urlab_client.handles.entity import URLabEntity
from urlab_client.handles.frame import CameraFrame
from urlab_client.handles.parts import Actuator, Body, Joint, Sensor
from urlab_client.lookup import NamedTable
from urlab_client.namespaces.recording import URLabRecordingAPI
from urlab_client.namespaces.replay import URLabReplayAPI
from urlab_client.transports import InProcessTransport, Transport, ZmqTransport
from urlab_client.types import (
    ActorBounds,
    ActorHierarchyNode,
    ActorInfo,
    BlueprintInfo,
    CameraPose,
    CameraStreaming,
    Contact,
    ContactsResult,
    EditStep,
    ExportStatus,
    KeyframeInfo,
    LevelInfo,
    LevelStatus,
    LogEntry,
    MocapPose,
    PIEStartResult,
    PIEStatus,
    RecordingHandle,
    RecordingInfo,
    RecordingStatus,
    RecordingSummary,
    ReplaySession,
    ReplayStatus,
    SceneSnapshot,
    SceneSnapshotActor,
    SegmentInfo,
    SimOptions,
    StateInfo,
    UploadedAsset,
    URLabAsset,
    URLabBlueprint,
    URLabLightHandle,
    URLabSpawnHandle,
)
from urlab_wire.stream_messages import StateFull

__all__ = [
    "ActorBounds",
    "ActorHierarchyNode",
    "ActorInfo",
    "Actuator",
    "ActuatorType",
    "AsyncURLabClient",
    "BlueprintInfo",
    "Body",
    "CameraFrame",
    "CameraMode",
    "CameraPose",
    "CameraStreaming",
    "CameraTiming",
    "Contact",
    "ContactsResult",
    "ControlMode",
    "ControlSource",
    "ControllerKind",
    "EditStep",
    "ExportState",
    "ExportStatus",
    "InProcessTransport",
    "Joint",
    "KeyframeInfo",
    "LevelInfo",
    "LevelStatus",
    "LightKind",
    "LogEntry",
    "MocapPose",
    "NamedTable",
    "ObservationLevel",
    "PIEStartResult",
    "PIEState",
    "PIEStatus",
    "RecordingHandle",
    "RecordingInfo",
    "RecordingStatus",
    "RecordingSummary",
    "ReplaySession",
    "ReplayStatus",
    "SceneSnapshot",
    "SceneSnapshotActor",
    "SegmentInfo",
    "Sensor",
    "SimOptions",
    "SpaceMode",
    "StateFull",
    "StateInfo",
    "StepMode",
    "Transport",
    "URLabArticulation",
    "URLabAsset",
    "URLabBlueprint",
    "URLabCameraView",
    "URLabClient",
    "URLabController",
    "URLabControllerError",
    "URLabEntity",
    "URLabGoneError",
    "URLabLightHandle",
    "URLabLocalEditWarning",
    "URLabLookupError",
    "URLabModeWarning",
    "URLabPDController",
    "URLabPIEError",
    "URLabRPCError",
    "URLabRecordingAPI",
    "URLabReplayAPI",
    "URLabSpawnHandle",
    "URLabTimeoutError",
    "URLabValueError",
    "URLabVersionMismatch",
    "UploadedAsset",
    "ZmqTransport",
]

"""The typed Python client of URLab servers.

from urlab_client import URLabClient

with URLabClient("tcp://localhost", step_mode="direct") as client:
    client.discover()
    client.step()

`client` is the public class, on `session` (joining, streams, leaving) and `state` (what is known of the scene).
Requests go through `rpc` to a transport (`transports`). `namespaces` are the ops by group, `handles` the parts of the
scene, `mirror` the local copy of the server's state. `following` stays with a server through its restarts. `types`,
`enums` and `errors` are what callers get; `checks` refuses wrong arguments before anything is sent.
"""

from urlab_client.client import URLabClient
from urlab_client.enums import (
    ActuatorType,
    CameraMode,
    CameraTiming,
    ControllerKind,
    ControlMode,
    ControlSource,
    LightKind,
    ObservationLevel,
    PIEState,
    SpaceMode,
    StepMode,
)
from urlab_client.errors import URLabPIEError, URLabRPCError, URLabTimeoutError, URLabVersionMismatch
from urlab_client.handles.articulation import URLabArticulation
from urlab_client.handles.camera import URLabCameraView
from urlab_client.handles.controller import URLabController, URLabPDController
from urlab_client.handles.entity import URLabEntity
from urlab_client.handles.frame import CameraFrame
from urlab_client.handles.parts import Actuator, Body, Joint, Sensor
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
    KeyframeInfo,
    MocapPose,
    PIEStartResult,
    PIEStatus,
    RecordingHandle,
    RecordingStatus,
    RecordingSummary,
    ReplaySession,
    ReplayStatus,
    SceneSnapshot,
    SceneSnapshotActor,
    SegmentInfo,
    SimOptions,
    StateInfo,
    URLabAsset,
    URLabBlueprint,
    URLabLightHandle,
    URLabSpawnHandle,
)

__all__ = [
    "ActorBounds",
    "ActorHierarchyNode",
    "ActorInfo",
    "Actuator",
    "ActuatorType",
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
    "InProcessTransport",
    "Joint",
    "KeyframeInfo",
    "LightKind",
    "MocapPose",
    "ObservationLevel",
    "PIEStartResult",
    "PIEState",
    "PIEStatus",
    "RecordingHandle",
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
    "StateInfo",
    "StepMode",
    "Transport",
    "URLabArticulation",
    "URLabAsset",
    "URLabBlueprint",
    "URLabCameraView",
    "URLabClient",
    "URLabController",
    "URLabEntity",
    "URLabLightHandle",
    "URLabPDController",
    "URLabPIEError",
    "URLabRPCError",
    "URLabRecordingAPI",
    "URLabReplayAPI",
    "URLabSpawnHandle",
    "URLabTimeoutError",
    "URLabVersionMismatch",
    "ZmqTransport",
]

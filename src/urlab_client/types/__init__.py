"""Typed results and arguments of the namespaces."""

from urlab_client.types.cameras import CameraStreaming, SegmentInfo
from urlab_client.types.outliner import (
    ActorBounds,
    ActorHierarchyNode,
    ActorInfo,
    BlueprintInfo,
    SceneSnapshot,
    SceneSnapshotActor,
)
from urlab_client.types.runtime import CameraPose, Contact, ContactsResult, KeyframeInfo, MocapPose, SimOptions
from urlab_client.types.scene import URLabAsset, URLabBlueprint, URLabLightHandle, URLabSpawnHandle
from urlab_client.types.sim import (
    PIEStartResult,
    PIEStatus,
    RecordingHandle,
    RecordingSummary,
    ReplaySession,
    ReplayStatus,
)

__all__ = [
    "ActorBounds",
    "ActorHierarchyNode",
    "ActorInfo",
    "BlueprintInfo",
    "CameraPose",
    "CameraStreaming",
    "Contact",
    "ContactsResult",
    "KeyframeInfo",
    "MocapPose",
    "PIEStartResult",
    "PIEStatus",
    "RecordingHandle",
    "RecordingSummary",
    "ReplaySession",
    "ReplayStatus",
    "SceneSnapshot",
    "SceneSnapshotActor",
    "SegmentInfo",
    "SimOptions",
    "URLabAsset",
    "URLabBlueprint",
    "URLabLightHandle",
    "URLabSpawnHandle",
]

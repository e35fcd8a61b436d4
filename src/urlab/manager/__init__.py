"""The manager: a thin coordinator of one running scene, and the lifecycle around it."""

from urlab.manager.manager import Manager, StepCounter
from urlab.manager.observation import Observation, PlainBlocks, View
from urlab.manager.play import Play, PlayStatus
from urlab.manager.scene_view import StageSource
from urlab.manager.stream_source import StreamSource

__all__ = [
    "Manager",
    "Observation",
    "PlainBlocks",
    "Play",
    "PlayStatus",
    "StageSource",
    "StepCounter",
    "StreamSource",
    "View",
]

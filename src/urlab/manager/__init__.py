"""The manager: a thin coordinator of one running scene, and the lifecycle around it."""

from urlab.manager.manager import Manager, Observation, View
from urlab.manager.play import Play, PlayStatus

__all__ = ["Manager", "Observation", "Play", "PlayStatus", "View"]

"""A level: actors and lights in order, and the physics options that it overrides."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from urlab.scene.actor import Actor
from urlab.scene.light import Light

LEVELS_PACKAGE = "/Game/Levels/"
MANAGER_NAME = "MjManager"


@dataclass(frozen=True, slots=True)
class Level:
    """What exists, as data. Immutable: an edit makes another level.

    ``has_manager`` says that the level brings the actor which the original needs in order to simulate.
    """

    name: str
    actors: tuple[Actor, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    lights: tuple[Light, ...] = ()
    has_manager: bool = False

    @property
    def path(self) -> str:
        """Its path in the protocol."""
        return f"{LEVELS_PACKAGE}{self.name}"

    def path_of(self, actor_name: str) -> str:
        """An actor's path in the protocol."""
        return f"{self.path}.{self.name}:PersistentLevel.{actor_name}"

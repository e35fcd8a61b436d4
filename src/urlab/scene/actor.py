"""An actor: one model, placed in a level."""

from dataclasses import dataclass, field

from urlab.geometry import Pose


@dataclass(frozen=True, slots=True)
class Actor:
    """``name`` prefixes every compiled name; ``actor_id`` is the handle that a client chose, or empty.

    ``keyframe`` names the keyframe of its model that it starts from (joints and controls), or is empty.

    ``blueprint`` is the name of an import or of a shipped model, or the path of a model file.
    """

    name: str
    blueprint: str
    actor_id: str = ""
    pose: Pose = field(default_factory=Pose)
    keyframe: str = ""

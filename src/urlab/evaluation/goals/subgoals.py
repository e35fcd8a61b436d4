"""The subgoals that task files can name, by their names in GenManip's registry (without the prefixes)."""

from urlab.evaluation.goals.joint_subgoals import JointAngle, Status
from urlab.evaluation.goals.pose_subgoals import AxisAlign, MatchOrientation, OrientationRange, Range
from urlab.evaluation.goals.relation_subgoals import CountRelationship, Relationship
from urlab.evaluation.goals.subgoal import Subgoal

__all__ = [
    "SUBGOALS",
    "AxisAlign",
    "CountRelationship",
    "JointAngle",
    "MatchOrientation",
    "OrientationRange",
    "Range",
    "Relationship",
    "Status",
]

_ALL: tuple[type[Subgoal], ...] = (
    Relationship,
    CountRelationship,
    Range,
    AxisAlign,
    MatchOrientation,
    JointAngle,
    Status,
)

SUBGOALS: dict[str, type[Subgoal]] = {str(kind.__struct_config__.tag): kind for kind in _ALL}

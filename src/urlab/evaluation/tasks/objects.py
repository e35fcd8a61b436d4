"""Objects of tasks: what they are, and the model that MuJoCo simulates."""

from urlab.evaluation.tasks.mjcf import object_mjcf
from urlab.evaluation.tasks.object_spec import COLORS, ObjectSpec, Placement

__all__ = ["COLORS", "ObjectSpec", "Placement", "object_mjcf"]

"""The table of every task, as an object that goals can name: a slab whose top is at `TABLE_TOP_Z_M`."""

from urlab.evaluation.embodiments import TABLE_TOP_Z_M
from urlab.evaluation.tasks.object_spec import ObjectSpec, Placement
from urlab.evaluation.tasks.pose import Pose
from urlab.evaluation.tasks.shapes.solids import Box

TABLE_NAME = "table"
TABLE_SIZE_M = (1.2, 1.6, 0.05)
TABLE = ObjectSpec(TABLE_NAME, Box(TABLE_SIZE_M), Placement((0.0, 0.0), (0.0, 0.0)), "brown", ("table",), fixed=True)
TABLE_POSE_W = Pose((0.0, 0.0, TABLE_TOP_Z_M - TABLE_SIZE_M[2] / 2))

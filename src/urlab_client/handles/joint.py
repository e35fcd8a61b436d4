"""One joint of an articulation."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Joint:
    """Where a joint's numbers are.

    ``jnt_type`` is 0 free, 1 ball, 2 slide, 3 hinge. The offsets point into ``client.data``, the local ones into
    the articulation's ``qpos_array`` and ``qvel_array``. ``range`` is None when unlimited.
    """

    name: str
    id: int
    jnt_type: int
    body_id: int
    qpos_offset: int
    qpos_local_offset: int
    qpos_dim: int
    qvel_offset: int
    qvel_local_offset: int
    qvel_dim: int
    range: tuple[float, float] | None

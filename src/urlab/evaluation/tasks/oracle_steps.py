"""How a task can be done: the steps of a script for a robot that knows where everything is.

Positions and heights are in metres, in the world's axes unless said otherwise; ``arm`` is one of the embodiment's arms
and may be left out when there is only one. A step begins and ends with the arm clear of what it touched, and with the
gripper open unless it holds something.
"""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

import msgspec

from urlab.evaluation.tasks.objects import named_objects

Length = Annotated[float, msgspec.Meta(ge=-2.0, le=2.0)]
Offset = tuple[Length, Length, Length]
Yaw = Annotated[float, msgspec.Meta(ge=-360.0, le=360.0)]
Height = Annotated[float, msgspec.Meta(ge=0.0, le=0.5)]
Count = Annotated[int, msgspec.Meta(ge=1, le=2000)]


class OracleStep(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="do"):
    """One step. Declaring one with a ``tag`` in this file makes it known to task files.

    A step that ``carries`` moves its ``object`` about, so that must be one that can be moved.
    """

    carries: ClassVar[bool] = False

    def references(self) -> Iterator[tuple[str, str]]:
        """The objects (or links, ``object/link``) that it names: (field, name)."""
        return named_objects(self)

    def arms(self) -> Iterator[tuple[str, str | None]]:
        """The arms that it names: (field, name); None is the only arm."""
        for field in ("arm", "to_arm"):
            if hasattr(self, field):
                yield field, getattr(self, field)


class Pick(OracleStep, frozen=True, tag="pick"):
    """Grasp the object from above and lift it by ``lift``.

    The tool goes down at ``offset`` from the object's origin, in the object's frame. The fingers close along the
    object's x axis turned by ``yaw_deg``, or along whatever quarter turn of that is the easiest if ``any_yaw``.
    """

    carries: ClassVar[bool] = True
    object: str
    arm: str | None = None
    offset: Offset = (0.0, 0.0, 0.0)
    yaw_deg: Yaw = 0.0
    any_yaw: bool = False
    lift: Height = 0.15


class Place(OracleStep, frozen=True, tag="place"):
    """Put the object that the arm holds onto, into or beside ``target`` and let go.

    Its origin comes to the target's origin (or to the middle between ``target`` and ``other``) plus ``offset`` in x and
    y. It rests on the target's surface, or the table with ``surface = "table"``; it is let go ``offset`` z above that.
    The offset is in the world's axes, or in the target's with ``frame = "target"``. ``yaw_deg`` is the object's yaw in
    the same axes; left out, the object keeps the yaw that it has.
    """

    carries: ClassVar[bool] = True
    object: str
    target: str
    other: str | None = None
    arm: str | None = None
    offset: Offset = (0.0, 0.0, 0.005)
    frame: Literal["world", "target"] = "world"
    surface: Literal["target", "table"] = "target"
    yaw_deg: Yaw | None = None


class Operate(OracleStep, frozen=True, tag="operate"):
    """Open or close ``joint`` until it is at ``to`` (metres or degrees).

    Closed fingers come down beside the handle, on the side from which it has to be driven: behind the bar of a drawer
    that is to be opened, before it when it is to be closed.
    """

    object: str
    joint: str
    to: float
    arm: str | None = None


class LiftTogether(OracleStep, frozen=True, tag="lift_together"):
    """Grasp the object with both arms at ``left_offset`` and ``right_offset`` in its frame, and raise it by ``height``.

    The fingers close along the object's x axis turned by ``yaw_deg``. The hands keep hold.
    """

    carries: ClassVar[bool] = True
    object: str
    left_offset: Offset
    right_offset: Offset
    height: Height
    yaw_deg: Yaw = 0.0


class HandOver(OracleStep, frozen=True, tag="hand_over"):
    """``arm`` holds the object: it brings it to ``at``, ``to_arm`` grasps it there, and ``arm`` lets go and retreats.

    ``at`` is where the object's origin comes to, ``object_yaw_deg`` its yaw. ``to_arm`` grasps from above at ``offset``
    from the origin, in the object's frame, with its fingers along the object's x axis turned by ``yaw_deg``.
    """

    carries: ClassVar[bool] = True
    object: str
    arm: str
    to_arm: str
    at: Offset
    object_yaw_deg: Yaw = 0.0
    offset: Offset = (0.0, 0.0, 0.0)
    yaw_deg: Yaw = 0.0


class Wait(OracleStep, frozen=True, tag="wait"):
    """Hold still for some control steps."""

    steps: Count


class Home(OracleStep, frozen=True, tag="home"):
    """Bring the arm (or all arms) back to where the episode began."""

    arm: str | None = None

    def arms(self) -> Iterator[tuple[str, str | None]]:
        if self.arm is not None:
            yield "arm", self.arm


ORACLE_STEPS: dict[str, type[OracleStep]] = {
    str(kind.__struct_config__.tag): kind for kind in OracleStep.__subclasses__()
}
"""All steps above, by the word that task files name them with."""

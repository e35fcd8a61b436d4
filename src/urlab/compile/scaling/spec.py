"""Scaling a model: what its author would have written for one that is larger or smaller.

Lengths scale. What the author states in other units stays: masses, forces, stiffness, damping, gears and gains, times
and angles. A mass that follows from a density follows the new volume (of a shell: the new surface), and a stated
inertia scales as that of the same mass spread wider. This is what MuJoCo's own frame scale calls "geometry", except
that there stated masses follow the volume; and the numbers are changed where they stand, so that whatever reads or
changes the spec afterwards need not know of the scale.

Lengths are also: the range of a slide joint and the setpoints of a servo that drives one, everything about a spatial
tendon, torsional and rolling friction, the widths of solver impedances, cutoffs and noise of sensors that measure
metres, the polynomials of equalities (by the units of both sides), keyframes. Custom data, the options of the
simulation, plugins of actuators and sensors, and default classes (elements have theirs applied) are left alone.
"""

import math
from typing import Any

from urlab.compile.scaling.coordinates import (
    Coordinates,
    scale_actuators,
    scale_equalities,
    scale_keyframes,
    scale_pairs,
    scale_sensors,
    scale_tendons,
)
from urlab.compile.scaling.shapes import scale_assets, scale_flexes, scale_skins, scale_tree
from urlab.compile.scaling.stretch import Space, Stretch, grow, spelled
from urlab.errors import EditError
from urlab.geometry import Vec3


def scale_spec(spec: Any, scale: Vec3, *, is_articulation: bool) -> None:
    """Scale ``spec``, a private copy that is not compiled yet, along the x, y and z axes of the world.

    EditError says why it cannot; the spec may then be scaled in part and is of no use any more.

    Different factors stretch a model. Positions follow exactly and orientations stay, so that a shape must be one
    that is still of its kind when it is stretched along its own axes: an aligned mesh, box, ellipsoid, heightfield or
    plane, or a cylinder across which the factors agree. Sites, which are marks, are stretched as well as can be.
    """
    if not all(math.isfinite(factor) and factor > 0 for factor in scale):
        raise EditError(f"a scale has three positive factors, not {spelled(scale)}")
    whole = Stretch.along_axes(scale)
    if not whole.is_uniform:
        _refuse_uneven(spec, scale, is_articulation)
    space, coordinates = Space(whole), Coordinates(spec, whole.mean)
    scale_keyframes(spec, whole, coordinates)
    scale_tree(spec, space)
    scale_assets(spec, space)
    scale_flexes(spec, whole)
    scale_skins(spec, whole)
    scale_tendons(spec, coordinates)
    scale_equalities(spec, space, coordinates)
    scale_pairs(spec, whole.mean)
    scale_sensors(spec, coordinates)
    scale_actuators(spec, coordinates)
    _scale_statistic(spec.stat, whole)


def _refuse_uneven(spec: Any, scale: Vec3, is_articulation: bool) -> None:
    if is_articulation:
        raise EditError(f"an articulation takes one factor for all axes, not {spelled(scale)}")
    for kind, elements in (("tendon", spec.tendons), ("flex", spec.flexes), ("skin", spec.skins)):
        if elements:
            raise EditError(
                f"{kind} {elements[0].name!r} takes one factor for all axes, not {spelled(scale)}: "
                "its lengths have no direction"
            )


def _scale_statistic(statistic: Any, whole: Stretch) -> None:
    """The author's idea of how large the model is; what is not stated is NaN and stays so."""
    grow(statistic, whole.mean, "extent", "meansize")
    statistic.center = whole.point(statistic.center)

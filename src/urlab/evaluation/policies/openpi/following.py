"""How LIBERO's controller follows a goal.

A row sets the goal that far from where the hand is, and a spring pulls the hand there until the next row sets another.
In free motion the hand covers about a quarter of what rows say. Stiffness and damping are the defaults of robosuite, on
which LIBERO is built. What the arm's own inertia and friction take off that is left out: measured there, about a tenth
of a motion, and more of a turn about the vertical.
"""

import math

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

STIFFNESS_PER_S2 = 150.0
"""Of the spring, by unit of mass; its damping is critical."""

_RATE_PER_S = math.sqrt(STIFFNESS_PER_S2)


def follow(way: Vector, velocity: Vector, time_s: float) -> tuple[Vector, Vector]:
    """How much of the ``way`` to the goal is covered in that time, and the velocity at its end."""
    fading = math.exp(-_RATE_PER_S * time_s)
    pull = velocity - _RATE_PER_S * way
    left = (way - pull * time_s) * fading
    return way - left, pull * fading + _RATE_PER_S * left

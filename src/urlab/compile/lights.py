"""Lights of a level as MuJoCo lights."""

from typing import Any

import mujoco

from urlab.geometry import rotate
from urlab.scene.light import DEFAULT_INTENSITY, Light
from urlab_wire.enums import LightKind

_FORWARD = (1.0, 0.0, 0.0)
_USUAL_BRIGHTNESS = 0.7
"""MuJoCo's own default for a light's diffuse colour."""

_ALL_ROUND_DEG = 180.0
"""MuJoCo's renderer leaves out lights of its type point; a spot that opens all the way is one, and is drawn."""

_TYPES = {
    LightKind.DIRECTIONAL: mujoco.mjtLightType.mjLIGHT_DIRECTIONAL,
    LightKind.POINT: mujoco.mjtLightType.mjLIGHT_SPOT,
    LightKind.SPOT: mujoco.mjtLightType.mjLIGHT_SPOT,
}


def add_light(root: Any, light: Light) -> None:
    """Put a light into the world; brightness follows the intensity in proportion."""
    brightness = _USUAL_BRIGHTNESS * light.intensity / DEFAULT_INTENSITY
    added = root.worldbody.add_light(name=light.name, type=_TYPES[light.kind], pos=light.pose.pos)
    added.dir = rotate(light.pose.quat_wxyz, _FORWARD)
    added.diffuse = [brightness * part for part in light.color]
    added.specular = [brightness * part / 2 for part in light.color]
    added.intensity = light.intensity
    if light.kind is LightKind.POINT:
        added.cutoff, added.exponent = _ALL_ROUND_DEG, 0.0

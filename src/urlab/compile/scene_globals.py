"""What a model has only one of: options, visuals, statistics and sizes. A scene takes them from its leader."""

from collections.abc import Sequence
from typing import Any

_BUFFERS = ("memory", "nemax", "njmax", "nconmax", "nstack")
_USER_WIDTHS = {
    "nuser_body": "bodies", "nuser_jnt": "joints", "nuser_geom": "geoms", "nuser_site": "sites",
    "nuser_cam": "cameras", "nuser_tendon": "tendons", "nuser_actuator": "actuators", "nuser_sensor": "sensors",
}  # fmt: skip


def take_globals(root: Any, leader: Any, specs: Sequence[Any]) -> None:
    """Give the root spec the leader's settings, and room for what every one of ``specs`` (one per actor) asks for."""
    root.option, root.visual, root.stat = leader.option, leader.visual, leader.stat
    root.compiler.fitaabb = leader.compiler.fitaabb
    root.compiler.LRopt = leader.compiler.LRopt
    if len(specs) == 1:
        root.compiler.settotalmass = leader.compiler.settotalmass
    distinct = list({id(spec): spec for spec in specs}.values())
    for size in _BUFFERS:
        setattr(root, size, _sum_of_stated(getattr(root, size), [getattr(spec, size) for spec in specs]))
    root.nuserdata = max(spec.nuserdata for spec in distinct)
    for size, plural in _USER_WIDTHS.items():
        setattr(root, size, max(_user_width(spec, size, plural) for spec in distinct))


def share_globals(child: Any, root: Any) -> None:
    """Let a model that is about to be attached agree with the root, so that MuJoCo sees no conflict."""
    child.option, child.visual, child.stat = root.option, root.visual, root.stat
    for size in (*_BUFFERS, *_USER_WIDTHS, "nuserdata"):
        setattr(child, size, getattr(root, size))


def _sum_of_stated(unstated: int, asked: Sequence[int]) -> int:
    stated = [number for number in asked if number > 0]
    return sum(stated) if stated else unstated


def _user_width(spec: Any, size: str, plural: str) -> int:
    """What the author states, or as many numbers as any element carries."""
    stated = int(getattr(spec, size))
    return stated if stated >= 0 else max((len(element.userdata) for element in getattr(spec, plural)), default=0)

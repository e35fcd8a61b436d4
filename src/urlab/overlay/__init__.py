"""Debug drawings and overlay texts, as data that every view draws. Nothing here knows of physics or of pixels."""

from urlab.overlay.drawings import (
    DEFAULT_AXES_SCALE_M,
    DEFAULT_THICKNESS_PX,
    HEAD_SHARE,
    MARKER_RADIUS_M,
    MAX_REACH_M,
    Arrow,
    Axes,
    Color,
    Drawing,
    Line,
    Marker,
    WireBox,
)
from urlab.overlay.overlay import DEFAULT_ANCHOR, Drawings, Overlay

__all__ = [
    "DEFAULT_ANCHOR",
    "DEFAULT_AXES_SCALE_M",
    "DEFAULT_THICKNESS_PX",
    "HEAD_SHARE",
    "MARKER_RADIUS_M",
    "MAX_REACH_M",
    "Arrow",
    "Axes",
    "Color",
    "Drawing",
    "Drawings",
    "Line",
    "Marker",
    "Overlay",
    "WireBox",
]

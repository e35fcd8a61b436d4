"""Debug drawings and overlay texts, as data that every view draws. Nothing here knows of physics or of pixels."""

from urlab.overlay.drawings import Arrow, Axes, Box, Color, Drawing, Line, Marker
from urlab.overlay.overlay import Drawings, Overlay

__all__ = ["Arrow", "Axes", "Box", "Color", "Drawing", "Drawings", "Line", "Marker", "Overlay"]

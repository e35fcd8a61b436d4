"""Debug drawings, overlay texts and choices over the wire."""

from collections.abc import Sequence
from typing import Any

from urlab.authoring.placement import read_rotation, vector
from urlab.errors import BadValue, MissingField
from urlab.geometry import IDENTITY_WXYZ, Quat, Vec3, xyzw_from_wxyz
from urlab.numbers import finite_number
from urlab.ops.context import Context, handler
from urlab.overlay import (
    DEFAULT_ANCHOR,
    DEFAULT_AXES_SCALE_M,
    DEFAULT_THICKNESS_PX,
    MAX_REACH_M,
    Arrow,
    Axes,
    Color,
    Drawing,
    Line,
    Marker,
    WireBox,
)
from urlab_wire.ops import debug as wire
from urlab_wire.ops.viewport import DrawingBlock


@handler("draw_marker")
def draw_marker(context: Context, request: wire.DrawMarkerRequest) -> wire.DrawMarkerReply:
    """A small sphere, with a text beside it."""
    place, color = _place("location", request.location), _color(request.color)
    context.parts.overlay.add(Marker(place, color, request.label or "", **_lasting(request)))
    return wire.DrawMarkerReply()


@handler("draw_line")
def draw_line(context: Context, request: wire.DrawLineRequest) -> wire.DrawLineReply:
    """A line; its thickness is in pixels."""
    context.parts.overlay.add(Line(*_stroke(request), **_lasting(request)))
    return wire.DrawLineReply()


@handler("draw_box")
def draw_box(context: Context, request: wire.DrawBoxRequest) -> wire.DrawBoxReply:
    """The edges of a box."""
    center, half_extents = _place("center", request.center), _half_extents(request.half_extents)
    box = WireBox(center, half_extents, _color(request.color), _rotation(request), **_lasting(request))
    context.parts.overlay.add(box)
    return wire.DrawBoxReply()


@handler("draw_arrow")
def draw_arrow(context: Context, request: wire.DrawArrowRequest) -> wire.DrawArrowReply:
    """A line that ends in a head."""
    stroke = _stroke(request)
    head = None if request.arrow_size is None else _size("arrow_size", request.arrow_size, 0.0)
    context.parts.overlay.add(Arrow(*stroke, head, **_lasting(request)))
    return wire.DrawArrowReply()


@handler("draw_axes")
def draw_axes(context: Context, request: wire.DrawAxesRequest) -> wire.DrawAxesReply:
    """A coordinate frame."""
    place, turn = _place("location", request.location), _rotation(request)
    scale = _size("scale", request.scale, DEFAULT_AXES_SCALE_M)
    context.parts.overlay.add(Axes(place, turn, scale, **_lasting(request)))
    return wire.DrawAxesReply()


def drawing_block(drawing: Drawing) -> DrawingBlock:
    """A drawing as viewers are told of it: in the words of the op that drew it."""
    match drawing:
        case Marker():
            return DrawingBlock("marker", list(drawing.location), list(drawing.color), drawing.label or None)
        case Line():
            ends = list(drawing.from_), list(drawing.to)
            return DrawingBlock("line", None, list(drawing.color), None, *ends, thickness=drawing.thickness)
        case WireBox():
            turn = list(xyzw_from_wxyz(drawing.quat_wxyz))
            half = list(drawing.half_extents)
            return DrawingBlock("box", list(drawing.center), list(drawing.color), half_extents=half, rotation_quat=turn)
        case Arrow():
            ends, size = (list(drawing.from_), list(drawing.to)), drawing.arrow_size
            return DrawingBlock(
                "arrow", None, list(drawing.color), None, *ends, thickness=drawing.thickness, arrow_size=size
            )
        case Axes():
            turn = list(xyzw_from_wxyz(drawing.quat_wxyz))
            return DrawingBlock("axes", list(drawing.location), rotation_quat=turn, scale=drawing.scale)
    raise TypeError(f"there is no block for a {type(drawing).__name__}")


@handler("clear_markers")
def clear_markers(context: Context, request: wire.ClearMarkersRequest) -> wire.ClearMarkersReply:
    """Remove the drawings of a tag, or all."""
    context.parts.overlay.clear(request.tag or None)
    return wire.ClearMarkersReply()


@handler("set_overlay_text")
def set_overlay_text(context: Context, request: wire.SetOverlayTextRequest) -> wire.SetOverlayTextReply:
    """Show a text in every view, or clear it."""
    context.parts.overlay.set_text(request.text, request.anchor or DEFAULT_ANCHOR)
    return wire.SetOverlayTextReply()


@handler("set_overlay_choice")
def set_overlay_choice(context: Context, request: wire.SetOverlayChoiceRequest) -> wire.SetOverlayChoiceReply:
    """Offer a choice in every view, or choose."""
    overlay, chosen = context.parts.overlay, request.chosen
    if request.options is None and chosen is None:
        raise MissingField("set_overlay_choice needs options or chosen")
    if request.options is not None and chosen is not None and chosen not in request.options:
        raise BadValue(f"chosen must be one of the options, not {chosen!r}")
    in_force = None if request.options is None else overlay.offer_choice(request.name, request.options)
    if chosen is not None:
        in_force = overlay.choose(request.name, chosen)
    return wire.SetOverlayChoiceReply(chosen=in_force)


def _place(field: str, numbers: Sequence[float]) -> Vec3:
    place = vector(field, numbers)
    if max(map(abs, place)) > MAX_REACH_M:
        raise BadValue(f"{field} must be within {MAX_REACH_M:g} m of the origin, but is {list(place)}")
    return place


def _half_extents(numbers: Sequence[float]) -> Vec3:
    half = _place("half_extents", numbers)
    if min(half) < 0:
        raise BadValue(f"half_extents must not be below 0, but are {list(half)}")
    return half


def _color(numbers: Sequence[float]) -> Color:
    color = vector("color", numbers)
    if not all(0 <= part <= 1 for part in color):
        raise BadValue(f"color is red, green and blue in 0..1, but is {list(color)}")
    return color


def _size(field: str, value: float | None, default: float) -> float:
    size = default if value is None else finite_number(field, value)
    if not 0 <= size <= MAX_REACH_M:
        raise BadValue(f"{field} must be between 0 and {MAX_REACH_M:g}, but is {size}")
    return size


def _stroke(request: wire.DrawLineRequest | wire.DrawArrowRequest) -> tuple[Vec3, Vec3, Color, float]:
    """Both ends, the colour and the thickness in pixels."""
    begin, end = _place("from", request.from_), _place("to", request.to)
    return begin, end, _color(request.color), _size("thickness", request.thickness, DEFAULT_THICKNESS_PX)


def _lasting(request: Any) -> dict[str, Any]:
    """How long any drawing stays, and its tag."""
    return {"ttl_s": 0.0 if request.ttl is None else finite_number("ttl", request.ttl), "tag": request.tag or ""}


def _rotation(request: wire.DrawBoxRequest | wire.DrawAxesRequest) -> Quat:
    return read_rotation(request.rotation_quat, request.rotation_euler) or IDENTITY_WXYZ

"""Debug drawings, overlay texts, choices. Positions are metres, colours (r, g, b) in 0..1.

``ttl`` is in wall seconds: 0 shows in the next picture only, a negative one stays until cleared.
"""

import msgspec

from urlab_wire.envelope import Name, Reply, Request, Text


class DrawMarkerRequest(Request["DrawMarkerReply"], tag="draw_marker"):
    """A small sphere."""

    location: list[float]
    color: list[float]
    ttl: float | None = None
    label: Text | None = None
    tag: Name | None = None


class DrawMarkerReply(Reply, tag="draw_marker_ok"):
    """It was done; there is nothing more to say."""


class DrawLineRequest(Request["DrawLineReply"], tag="draw_line"):
    """A line."""

    from_: list[float] = msgspec.field(name="from")
    to: list[float]
    color: list[float]
    ttl: float | None = None
    thickness: float | None = None
    tag: Name | None = None


class DrawLineReply(Reply, tag="draw_line_ok"):
    """It was done; there is nothing more to say."""


class DrawBoxRequest(Request["DrawBoxReply"], tag="draw_box"):
    """A wire box."""

    center: list[float]
    half_extents: list[float]
    color: list[float]
    rotation_quat: list[float] | None = None
    rotation_euler: list[float] | None = None
    ttl: float | None = None
    tag: Name | None = None


class DrawBoxReply(Reply, tag="draw_box_ok"):
    """It was done; there is nothing more to say."""


class DrawArrowRequest(Request["DrawArrowReply"], tag="draw_arrow"):
    """An arrow; ``arrow_size`` is in metres."""

    from_: list[float] = msgspec.field(name="from")
    to: list[float]
    color: list[float]
    ttl: float | None = None
    thickness: float | None = None
    arrow_size: float | None = None
    tag: Name | None = None


class DrawArrowReply(Reply, tag="draw_arrow_ok"):
    """It was done; there is nothing more to say."""


class DrawAxesRequest(Request["DrawAxesReply"], tag="draw_axes"):
    """A coordinate frame."""

    location: list[float]
    rotation_quat: list[float] | None = None
    rotation_euler: list[float] | None = None
    scale: float | None = None
    ttl: float | None = None
    tag: Name | None = None


class DrawAxesReply(Reply, tag="draw_axes_ok"):
    """It was done; there is nothing more to say."""


class ClearMarkersRequest(Request["ClearMarkersReply"], tag="clear_markers"):
    """Remove the drawings of one tag, or all."""

    tag: Name | None = None


class ClearMarkersReply(Reply, tag="clear_markers_ok"):
    """It was done; there is nothing more to say."""


class SetOverlayTextRequest(Request["SetOverlayTextReply"], tag="set_overlay_text"):
    """Show a text in a corner of every view; an empty one clears it."""

    text: Text
    anchor: Name | None = None


class SetOverlayTextReply(Reply, tag="set_overlay_text_ok"):
    """It was done; there is nothing more to say."""


class SetOverlayChoiceRequest(Request["SetOverlayChoiceReply"], tag="set_overlay_choice"):
    """Let people choose one of the ``options`` in every view for 10 s (none: take it away), or say what is ``chosen``.

    An extension. Offered again, it keeps what is chosen.
    """

    name: Name
    options: list[Name] | None = None
    chosen: Name | None = None


class SetOverlayChoiceReply(Reply, tag="set_overlay_choice_ok"):
    """``chosen`` is what is chosen now; absent when the choice was taken away."""

    chosen: str | None = None

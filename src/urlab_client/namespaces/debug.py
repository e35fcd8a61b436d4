"""``client.debug``: drawings and text in every view.

Positions are metres, colours (r, g, b) in 0..1. ``ttl`` is in seconds: 0 shows once, a positive one that long, -1
until cleared.
"""

from urlab_client.checks import Vector, maybe_numbers, numbers
from urlab_client.namespaces.base import RpcNamespace, rotated
from urlab_wire.ops import debug as wire


class DebugNamespace(RpcNamespace):
    """Draw into the world, in the editor and in a running simulation."""

    __slots__ = ()

    NAME = "debug"

    def draw_marker(
        self, location: Vector, color: Vector, *, ttl: float = 0.0, label: str | None = None, tag: str | None = None
    ) -> None:
        """A small sphere."""
        place, paint = numbers("location", location), numbers("color", color)
        self._ask(wire.DrawMarkerRequest(location=place, color=paint, ttl=float(ttl), label=label, tag=tag))

    def draw_line(
        self,
        from_: Vector,
        to: Vector,
        color: Vector,
        *,
        ttl: float = 0.0,
        thickness: float = 1.0,
        tag: str | None = None,
    ) -> None:
        """A line."""
        self._ask(
            wire.DrawLineRequest(
                from_=numbers("from_", from_),
                to=numbers("to", to),
                color=numbers("color", color),
                ttl=float(ttl),
                thickness=float(thickness),
                tag=tag,
            )
        )

    def draw_box(
        self,
        center: Vector,
        half_extents: Vector,
        color: Vector,
        *,
        rotation_quat: Vector | None = None,
        ttl: float = 0.0,
        tag: str | None = None,
    ) -> None:
        """A wire box."""
        self._ask(
            wire.DrawBoxRequest(
                center=numbers("center", center),
                half_extents=numbers("half_extents", half_extents),
                color=numbers("color", color),
                rotation_quat=maybe_numbers("rotation_quat", rotation_quat, 4),
                ttl=float(ttl),
                tag=tag,
            )
        )

    def draw_arrow(
        self,
        from_: Vector,
        to: Vector,
        color: Vector,
        *,
        ttl: float = 0.0,
        thickness: float = 1.0,
        arrow_size: float | None = None,
        tag: str | None = None,
    ) -> None:
        """An arrow; ``arrow_size`` in metres."""
        self._ask(
            wire.DrawArrowRequest(
                from_=numbers("from_", from_),
                to=numbers("to", to),
                color=numbers("color", color),
                ttl=float(ttl),
                thickness=float(thickness),
                arrow_size=arrow_size,
                tag=tag,
            )
        )

    def draw_axes(
        self,
        location: Vector,
        *,
        rotation_quat: Vector | None = None,
        rotation_euler: Vector | None = None,
        scale: float = 0.2,
        ttl: float = 0.0,
        tag: str | None = None,
    ) -> None:
        """A coordinate frame; ``scale`` is the length of its axes in metres."""
        quat, euler = rotated(rotation_quat, rotation_euler)
        self._ask(
            wire.DrawAxesRequest(
                location=numbers("location", location),
                rotation_quat=quat,
                rotation_euler=euler,
                scale=float(scale),
                ttl=float(ttl),
                tag=tag,
            )
        )

    def clear_markers(self, *, tag: str | None = None) -> None:
        """Remove the drawings of one tag, or all."""
        self._ask(wire.ClearMarkersRequest(tag=tag))

    def set_overlay_text(self, text: str, *, anchor: str = "top_left") -> None:
        """Show a text in a corner of every view; an empty one clears it."""
        self._ask(wire.SetOverlayTextRequest(text=text, anchor=anchor))

"""``client.debug``: drawings, texts and choices in every view.

Positions are metres, colours (r, g, b) in 0..1. ``ttl`` is in seconds: 0 shows once, a positive one that long, -1
until cleared.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from urlab_client.checks import Vector, maybe_numbers, numbers
from urlab_client.namespaces.base import RpcNamespace, rotated
from urlab_wire.envelope import Reply, Request
from urlab_wire.ops import debug as wire


class DebugNamespace(RpcNamespace):
    """Draw into the world, in the editor and in a running simulation."""

    NAME = "debug"

    def draw_marker(
        self, location: Vector, color: Vector, *, ttl: float = 0.0, label: str | None = None, tag: str | None = None
    ) -> None:
        """Draw a small sphere at ``location`` (metres, world frame), with a ``label`` beside it.

        ``color`` is (r, g, b) in 0..1; ``ttl`` in seconds: 0 shows once, -1 until cleared. `clear_markers` takes a
        ``tag``.
        """
        self._draw(wire.DrawMarkerRequest, {"location": location, "color": color}, ttl=ttl, label=label, tag=tag)

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
        """Draw a line between two points (metres, world frame); ``thickness`` in pixels.

        ``color`` is (r, g, b) in 0..1; ``ttl`` in seconds: 0 shows once, -1 until cleared.
        """
        vectors = {"from_": from_, "to": to, "color": color}
        self._draw(wire.DrawLineRequest, vectors, ttl=ttl, thickness=float(thickness), tag=tag)

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
        """Draw the edges of a box: ``center``, ``half_extents`` in metres, ``rotation_quat`` x, y, z, w, world frame.

        ``color`` is (r, g, b) in 0..1; ``ttl`` in seconds: 0 shows once, -1 until cleared.
        """
        vectors = {"center": center, "half_extents": half_extents, "color": color}
        turn = maybe_numbers("rotation_quat", rotation_quat, 4)
        self._draw(wire.DrawBoxRequest, vectors, rotation_quat=turn, ttl=ttl, tag=tag)

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
        """Draw an arrow between two points (metres, world frame); ``arrow_size`` is that of its head, in metres.

        ``color`` is (r, g, b) in 0..1; ``ttl`` in seconds: 0 shows once, -1 until cleared.
        """
        vectors = {"from_": from_, "to": to, "color": color}
        self._draw(wire.DrawArrowRequest, vectors, ttl=ttl, thickness=float(thickness), arrow_size=arrow_size, tag=tag)

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
        """Draw a coordinate frame at ``location`` (metres, world frame), its axes red, green, blue.

        It is turned by ``rotation_quat`` (x, y, z, w) or ``rotation_euler`` (roll, pitch, yaw in degrees); ``scale`` is
        the length of the axes in metres; ``ttl`` in seconds: 0 shows once, -1 until cleared.
        """
        quat, euler = rotated(rotation_quat, rotation_euler)
        turn = {"rotation_quat": quat, "rotation_euler": euler}
        self._draw(wire.DrawAxesRequest, {"location": location}, **turn, scale=float(scale), ttl=ttl, tag=tag)

    def clear_markers(self, *, tag: str | None = None) -> None:
        """Remove the drawings of one tag, or all of them."""
        self._ask(wire.ClearMarkersRequest(tag=tag))

    def set_overlay_text(self, text: str, *, anchor: str = "top_left") -> None:
        """Show a text in a corner of every view (``anchor``: top_left, top_right, ...); an empty one clears it."""
        self._ask(wire.SetOverlayTextRequest(text=text, anchor=anchor))

    def set_overlay_choice(
        self, name: str, options: Sequence[str] | None = None, *, chosen: str | None = None
    ) -> str | None:
        """Let people choose one of the ``options`` on the editor's page; returns what is chosen, at first the first.

        It is there for 10 seconds: offer it again to keep it and to ask what is chosen, offer nothing (``[]``) to take
        it away. ``chosen`` chooses for them.
        """
        listed = None if options is None else [str(one) for one in options]
        return self._ask(wire.SetOverlayChoiceRequest(name=name, options=listed, chosen=chosen)).chosen

    def _draw(
        self, shape: Callable[..., Request[Reply]], vectors: Mapping[str, Vector], *, ttl: float, **others: Any
    ) -> None:
        """Ask for a drawing; each of its vectors has three numbers."""
        checked = {name: numbers(name, vector) for name, vector in vectors.items()}
        self._ask(shape(**checked, ttl=float(ttl), **others))

"""Texts over a picture: marker labels beside their markers, overlay texts at their anchors."""

import functools
import io
import textwrap
from collections.abc import Iterator

from PIL import Image, ImageDraw, ImageFont

from urlab.overlay import MARKER_RADIUS_M, Drawings, Marker
from urlab.viewport.camera import ViewCamera
from urlab_wire.pixels import Bytes

_LINES_PER_PICTURE = 36
_MIN_FONT_PX = 11
_WHITE, _BLACK = (255, 255, 255), (0, 0, 0)
_COMPRESSION = 3
"""Of PNG, 0 to 9: files a little larger than the smallest, in half the time."""

_WIDE_FONT = "DejaVuSans.ttf"
"""For what is not ASCII, where the machine has it; Pillow's own font knows little else."""

Font = ImageFont.FreeTypeFont | ImageFont.ImageFont


def png_with_texts(pixels: Bytes, camera: ViewCamera, drawings: Drawings) -> bytes:
    """A picture as a PNG file, with the labels and texts of its drawings written over it."""
    image = Image.fromarray(pixels)
    writer = _TextWriter(image)
    for (x, y), label in _labels(camera, drawings, image.width, image.height):
        writer.label(x, y, label)
    for anchor, text in drawings.texts.items():
        writer.at_anchor(anchor, text)
    return png_file(image)


def png_file(image: Image.Image) -> bytes:
    """A picture as a PNG file."""
    file = io.BytesIO()
    image.save(file, "PNG", compress_level=_COMPRESSION)
    return file.getvalue()


class _TextWriter:
    """Writes white letters with a black rim, readable on everything."""

    def __init__(self, image: Image.Image) -> None:
        self._draw = ImageDraw.Draw(image)
        self._size = image.size
        self._font_px = max(_MIN_FONT_PX, image.height // _LINES_PER_PICTURE)
        self._rim_px = max(1, self._font_px // 10)

    def label(self, x: float, y: float, text: str) -> None:
        """Write to the right of a point of the picture."""
        self._write(x + self._font_px / 4, y - 0.7 * self._font_px, text, "left")

    def at_anchor(self, anchor: str, text: str) -> None:
        """Write at a corner, at the middle of a rim, or in the middle; long lines are broken."""
        horizontal = next((side for side in ("left", "right") if anchor.endswith(side)), "center")
        vertical = next((side for side in ("top", "bottom") if anchor.startswith(side)), "center")
        broken = "\n".join(self._broken(text))
        left, top, right, bottom = self._draw.multiline_textbbox(
            (0, 0), broken, font=_font(broken, self._font_px), stroke_width=self._rim_px
        )
        x = _place(horizontal, self._size[0], right - left, self._font_px / 2) - left
        y = _place(vertical, self._size[1], bottom - top, self._font_px / 2) - top
        self._write(x, y, broken, horizontal)

    def _broken(self, text: str) -> Iterator[str]:
        font, room = _font(text, self._font_px), self._size[0] - 2 * self._font_px
        for line in text.expandtabs(4).splitlines():
            length = max(1.0, font.getlength(line))
            columns = max(1, int(len(line) * room / length))
            yield from textwrap.wrap(line, columns) if length > room else [line]

    def _write(self, x: float, y: float, text: str, align: str) -> None:
        self._draw.multiline_text(
            (x, y),
            text,
            fill=_WHITE,
            font=_font(text, self._font_px),
            align=align,
            stroke_width=self._rim_px,
            stroke_fill=_BLACK,
        )


def _place(side: str, room: int, size: float, margin: float) -> float:
    """Where something begins that shall be at that side of the room."""
    if side in ("left", "top"):
        return margin
    return room - margin - size if side in ("right", "bottom") else (room - size) / 2


def _labels(
    camera: ViewCamera, drawings: Drawings, width: int, height: int
) -> Iterator[tuple[tuple[float, float], str]]:
    """The labels of markers, each with the pixel at the marker's right rim; those out of the picture are left out."""
    x, y, z = camera.left
    for marker in drawings.items:
        if isinstance(marker, Marker) and marker.label:
            at = marker.location
            rim = at[0] - MARKER_RADIUS_M * x, at[1] - MARKER_RADIUS_M * y, at[2] - MARKER_RADIUS_M * z
            pixel = camera.project(rim, width, height)
            if pixel is not None and 0 <= pixel[0] < width and 0 <= pixel[1] < height:
                yield pixel, marker.label


def _font(text: str, size_px: int) -> Font:
    return _plain_font(size_px) if text.isascii() else _wide_font(size_px)


@functools.lru_cache(maxsize=16)
def _plain_font(size_px: int) -> Font:
    return ImageFont.load_default(size_px)


@functools.lru_cache(maxsize=16)
def _wide_font(size_px: int) -> Font:
    try:
        return ImageFont.truetype(_WIDE_FONT, size_px)
    except OSError:
        return _plain_font(size_px)

"""One picture of what every camera sees, in every mode."""

from pathlib import Path

import numpy as np

from urlab_client import CameraFrame, CameraMode, URLabCameraView, URLabClient
from urlab_client.handles.frame import rgb_picture
from urlab_wire.pixels import Bytes, PixelFormat

_PANEL = (320, 240)
_MARGIN, _LINE = 8, 18
_FAR_M = 5.0
"""Depth from here on is white, or from the farthest pixel on if that is nearer."""


def take_contact_sheet(client: URLabClient, out: Path) -> str | None:
    """Photograph the scene with all its cameras; returns why that cannot be, or None. The modes are put back."""
    cameras = _cameras(client)
    before = {name: view.mode for name, view in cameras.items()}
    rows = {}
    for mode in CameraMode:
        for name in cameras:
            client.runtime.set_camera_mode(name, mode)
        reply = client.step(0, include_cameras=dict.fromkeys(cameras, "sync"))
        if not reply.get("cameras"):
            return "; ".join(reply.get("warnings") or ["the server sent no frames"])
        rows[mode.value] = {name: _picture(view.latest) for name, view in cameras.items() if view.latest}
    for name, mode in before.items():
        client.runtime.set_camera_mode(name, mode)
    _assemble(rows, out)
    return None


def _cameras(client: URLabClient) -> dict[str, URLabCameraView]:
    robots = client.articulations.items()
    owned = {f"{prefix}/{name}": view for prefix, robot in robots for name, view in robot.cameras.items()}
    return {**owned, **client.global_cameras}


def _picture(frame: CameraFrame) -> Bytes:
    """(H, W, 3) RGB."""
    if frame.mode.pixel_format is not PixelFormat.DEPTH_F32:
        return rgb_picture(frame)
    farthest_m = float(frame.pixels[np.isfinite(frame.pixels)].max(initial=0.1))
    return rgb_picture(frame, min(_FAR_M, farthest_m))


def _assemble(rows: dict[str, dict[str, Bytes]], out: Path) -> None:
    from PIL import Image, ImageDraw

    columns = max(len(row) for row in rows.values())
    step_x, step_y = _PANEL[0] + _MARGIN, _PANEL[1] + _LINE + _MARGIN
    sheet = Image.new("RGB", (columns * step_x + _MARGIN, len(rows) * step_y + _MARGIN), "white")
    pen = ImageDraw.Draw(sheet)
    for y, (mode, row) in enumerate(rows.items()):
        for x, (name, picture) in enumerate(row.items()):
            corner = (_MARGIN + x * step_x, _MARGIN + y * step_y)
            pen.text(corner, f"{name}, {mode}", fill="black")
            sheet.paste(Image.fromarray(picture).resize(_PANEL), (corner[0], corner[1] + _LINE))
    sheet.save(out)

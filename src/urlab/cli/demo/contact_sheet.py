"""One picture of what every camera sees, in every mode."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from urlab_client import CameraMode, URLabCameraView, URLabClient

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
        rows[mode.value] = {name: _picture(view) for name, view in cameras.items()}
    for name, mode in before.items():
        client.runtime.set_camera_mode(name, mode)
    _assemble(rows, out)
    return None


def _cameras(client: URLabClient) -> dict[str, URLabCameraView]:
    robots = client.articulations.items()
    owned = {f"{prefix}/{name}": view for prefix, robot in robots for name, view in robot.cameras.items()}
    return {**owned, **client.global_cameras}


def _picture(view: URLabCameraView) -> NDArray[np.uint8]:
    """(H, W, 3) RGB."""
    frame: Any = view.latest_frame
    if view.mode is CameraMode.DEPTH:
        white_m = min(_FAR_M, float(frame[np.isfinite(frame)].max(initial=0.1)))
        grey = np.clip(np.nan_to_num(frame, posinf=_FAR_M) / white_m * 255, 0, 255).astype(np.uint8)
        return np.repeat(grey[..., None], 3, axis=2)
    rgb = frame[..., :3] if view.mode is CameraMode.REAL else frame[..., 2::-1]
    return np.ascontiguousarray(rgb)


def _assemble(rows: dict[str, dict[str, NDArray[np.uint8]]], out: Path) -> None:
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

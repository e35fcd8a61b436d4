"""How notebooks show a client, a robot and a picture: small pieces of HTML without scripts or links."""

import base64
import html
import io
from collections.abc import Iterable
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from urlab_wire.pixels import Bytes

if TYPE_CHECKING:
    from urlab_client.client import URLabClient
    from urlab_client.handles.articulation import URLabArticulation
    from urlab_client.handles.camera import URLabCameraView
    from urlab_client.handles.frame import CameraFrame

_MOST_ROWS = 60


def png_of(rgb: Bytes) -> bytes:
    """A picture (H, W, 3) uint8 as the bytes of a PNG file."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(rgb).save(file, "PNG", compress_level=1)
    return file.getvalue()


def frame_html(frame: "CameraFrame") -> str:
    """A picture, inline, with its description under it."""
    picture = base64.b64encode(frame.png()).decode()
    return f'<img src="data:image/png;base64,{picture}" alt="camera frame"><br>{_text(repr(frame))}'


def camera_html(view: "URLabCameraView") -> str:
    """What a camera is, and its newest frame if it has one."""
    frame = None if view._gone else view._frame
    return _text(repr(view)) + ("" if frame is None else f"<br>{frame_html(frame)}")


def robot_html(robot: "URLabArticulation") -> str:
    """A robot: its joints with positions, its actuators with setpoints."""
    if robot._gone:
        return _text(repr(robot))
    qpos, ctrl = robot.get_qpos() if robot.joints else {}, robot.get_ctrl()
    joints = [(name, f"{qpos[name]:.4g}", _limits(one.range)) for name, one in robot.joints.items()]
    actuators = [(name, f"{ctrl[name]:.4g}", _limits(one.ctrlrange)) for name, one in robot.actuators.items()]
    return (
        _text(repr(robot))
        + _table(("joint", "qpos", "range"), joints)
        + _table(("actuator", "setpoint", "range"), actuators)
    )


def client_html(client: "URLabClient") -> str:
    """A client: its server, and the robots and cameras of the scene."""
    robots = [
        (name, len(one.joints), len(one.actuators), ", ".join(one.cameras))
        for name, one in client.articulations.items()
    ]
    others = ", ".join(name for name in client.entities if name not in client.articulations)
    cameras = ", ".join(client.global_cameras)
    rows = [
        ("server", client.urlab_version),
        ("MuJoCo", client.mujoco_version),
        ("entities", others),
        ("cameras", cameras),
    ]
    return (
        _text(repr(client))
        + _table(("", ""), [row for row in rows if row[1]])
        + _table(("robot", "joints", "actuators", "cameras"), robots)
    )


def _limits(limits: tuple[float, float] | None) -> str:
    return "" if limits is None else f"{limits[0]:.4g} .. {limits[1]:.4g}"


def _table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    body = [f"<tr>{''.join(f'<td>{html.escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows]
    if not body:
        return ""
    more = [f"<tr><td>... and {len(body) - _MOST_ROWS} more</td></tr>"] if len(body) > _MOST_ROWS else []
    titles = "".join(f"<th>{html.escape(word)}</th>" for word in head)
    return f"<table><tr>{titles}</tr>{''.join([*body[:_MOST_ROWS], *more])}</table>"


def _text(text: str) -> str:
    return f"<code>{html.escape(text)}</code>"


class EditorView:
    """The browser editor in a notebook; elsewhere its address. ``url`` has the token that opens it."""

    def __init__(self, url: str, height: int) -> None:
        self.url = url
        self._height = height

    def __repr__(self) -> str:
        return f"EditorView({self.url})"

    def _repr_html_(self) -> str:
        """A frame that brings the token along: a page in a frame of another site gets no cookies."""
        socket = self.url.replace("http", "ws", 1)
        inside = f"{self.url}&embed=1&{urlencode({'websocket': socket})}"
        style = f"width:100%;height:{self._height}px;border:0"
        return f'<iframe src="{html.escape(inside)}" style="{style}" title="URLab editor"></iframe>'

"""Pictures in observations, and those that ``render`` returns. The server draws them; no simulation steps for one."""

import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from PIL import Image

from urlab.envs.task import BOUND
from urlab_client import URLabClient
from urlab_client.handles.camera import URLabCameraView
from urlab_wire.codec import Tree

RENDER_SIZE = (640, 480)
STATE = "state"
"""The key of a flat observation beside pictures."""


@dataclass(frozen=True, slots=True)
class EnvCamera:
    """How one camera is observed: width and height in pixels (its own resolution unless stated), colour or depth.

    Pictures are drawn at the camera's own resolution and scaled to the size.
    """

    width: int | None = None
    height: int | None = None
    depth: bool = False


Cameras = bool | str | Iterable[str] | Mapping[str, EnvCamera]
"""``include_cameras``: none or all, one name or several, or how each is observed, by name."""


class CameraObserver:
    """The cameras that an environment observes, each under the name that was asked for.

    Colour is RGB, (height, width, 3) of uint8; depth is metres along the optical axis, (height, width) of float32,
    1e10 where nothing is seen.
    """

    def __init__(self, client: URLabClient, asked: Cameras) -> None:
        views = _views(client)
        chosen = _chosen(asked, views)
        for name in chosen:
            if name not in views:
                raise ValueError(f"there is no camera {name!r}; there are: {', '.join(views) or 'none'}")
        self.names = list(chosen)
        self._views = {name: views[name] for name in chosen}
        self._sizes = {name: _size(views[name], camera) for name, camera in chosen.items()}
        self._depth = {name: camera.depth for name, camera in chosen.items()}
        for name, camera in chosen.items():
            client.runtime.set_camera_mode(views[name], "depth" if camera.depth else "real")

    @property
    def spaces(self) -> dict[str, spaces.Space[Any]]:
        """The space of each camera's pictures."""
        found: dict[str, spaces.Space[Any]] = {}
        for name, (width, height) in self._sizes.items():
            if self._depth[name]:
                found[name] = spaces.Box(0.0, BOUND, (height, width), np.float32)
            else:
                found[name] = spaces.Box(0, 255, (height, width, 3), np.uint8)
        return found

    def pictures(self) -> dict[str, NDArray[Any]]:
        """The frames of the last reply that brought these cameras."""
        return {name: self._picture(name, view.latest_frame) for name, view in self._views.items()}

    def _picture(self, name: str, frame: NDArray[Any] | None) -> NDArray[Any]:
        if frame is None:
            raise RuntimeError(f"the reply has no picture of the camera {name!r}")
        size = self._sizes[name]
        if self._depth[name]:
            depth = frame if frame.shape == size[::-1] else _nearest(frame, size)
            return np.asarray(np.minimum(depth, np.float32(BOUND)))
        colour = np.ascontiguousarray(frame[:, :, 2::-1])
        if colour.shape[1::-1] == size:
            return colour
        return np.asarray(Image.fromarray(colour).resize(size, Image.Resampling.BOX))


def with_pictures(space: spaces.Space[Any], cameras: CameraObserver) -> spaces.Space[Any]:
    """An observation space with the cameras' pictures beside it; a flat one becomes the part `STATE`."""
    if not cameras.names:
        return space
    parts = dict(space.spaces) if isinstance(space, spaces.Dict) else {STATE: space}
    taken = sorted(set(parts) & set(cameras.names))
    if taken:
        raise ValueError(f"a camera and a part of the observation are both called {taken[0]!r}: name it prefix/name")
    return spaces.Dict({**parts, **cameras.spaces})


def rendered(client: URLabClient, camera: str | None, size: tuple[int, int]) -> NDArray[np.uint8]:
    """A picture of the state as it is, (height, width, 3) RGB: of a camera, or of the viewport."""
    if camera is None:
        png = client.viewport.screenshot(width=size[0], height=size[1])
        return np.array(Image.open(io.BytesIO(png)).convert("RGB"))
    reply: Tree = client.step(0, include_cameras=[camera])
    block = reply["cameras"][camera]
    pixels = np.frombuffer(block["data"], np.uint8).reshape(block["height"], block["width"], 4)
    return np.ascontiguousarray(pixels[:, :, 2::-1])


def _views(client: URLabClient) -> dict[str, URLabCameraView]:
    """Every camera by ``prefix/name``, by its bare name where only one has it, and those that no robot owns."""
    owned = [view for robot in client.articulations.values() for view in robot.cameras.values()]
    every = [*owned, *client.global_cameras.values()]
    short = [view.short_name for view in every]
    bare = {view.short_name: view for view in every if short.count(view.short_name) == 1}
    return bare | {view.full_name: view for view in every}


def _chosen(asked: Cameras, views: Mapping[str, URLabCameraView]) -> dict[str, EnvCamera]:
    if isinstance(asked, bool):
        names = [name for name in views if views[name].full_name == name] if asked else []
        return dict.fromkeys(names, EnvCamera())
    if isinstance(asked, Mapping):
        return dict(asked)
    return dict.fromkeys([asked] if isinstance(asked, str) else list(asked), EnvCamera())


def _size(view: URLabCameraView, camera: EnvCamera) -> tuple[int, int]:
    width, height = view.resolution
    return camera.width or width, camera.height or height


def _nearest(frame: NDArray[Any], size: tuple[int, int]) -> NDArray[Any]:
    rows = (np.arange(size[1]) + 0.5) * frame.shape[0] / size[1]
    columns = (np.arange(size[0]) + 0.5) * frame.shape[1] / size[0]
    return np.asarray(frame[rows.astype(np.intp)[:, None], columns.astype(np.intp)])

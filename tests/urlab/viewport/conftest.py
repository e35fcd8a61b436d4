"""A viewport on a small scene, and eyes for its pictures."""

import io
from collections.abc import Callable, Iterator
from typing import Any

import mujoco
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from urlab.cameras import shared_gl
from urlab.errors import NoViewport
from urlab.overlay import Overlay
from urlab.viewport import PosedModel, Viewport

WIDTH, HEIGHT = 320, 180
Pixels = NDArray[np.int64]
Point = tuple[float, float, float]


class Clock:
    """A clock that stands still until it is told to go on."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


class Spot:
    """Where a picture has a colour: ``count`` pixels, their middle, and their box from the top left."""

    def __init__(self, mask: NDArray[np.bool_]) -> None:
        self.mask = mask
        self.count = int(mask.sum())
        self.rows, self.columns = np.nonzero(mask)

    @property
    def middle(self) -> tuple[float, float]:
        return float(self.columns.mean()) + 0.5, float(self.rows.mean()) + 0.5

    @property
    def box(self) -> tuple[int, int, int, int]:
        """Left, top, right, bottom; the last two are just outside."""
        return (
            int(self.columns.min()),
            int(self.rows.min()),
            int(self.columns.max()) + 1,
            int(self.rows.max()) + 1,
        )

    def has(self, x: float, y: float, within: int = 1) -> bool:
        """Whether there is a pixel of that colour at that place, or so near."""
        left, top = max(0, int(x) - within), max(0, int(y) - within)
        return bool(self.mask[top : int(y) + within + 1, left : int(x) + within + 1].any())


class Studio:
    """A viewport whose camera stands at (-3, 0, 0) and looks along +X, onto whatever ``show`` put there."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.overlay = Overlay(self.clock)
        self.posed = posed_model("<mujoco/>")
        self.viewport = Viewport(lambda: self.posed, self.overlay, clock=self.clock)
        self.viewport.set_camera((-3.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0), 90.0)

    def show(self, body: str, *, extra: str = "", mode: str = "lit") -> PosedModel:
        """Put elements of a worldbody into the scene."""
        self.posed = posed_model(f"<mujoco>{extra}<worldbody>{body}</worldbody></mujoco>")
        self.viewport.set_mode(mode)
        return self.posed

    def picture(self, mode: str | None = None, *, width: int = WIDTH, height: int = HEIGHT) -> Pixels:
        """Take a picture, (height, width, 3)."""
        if mode is not None:
            self.viewport.set_mode(mode)
        return decode(self.viewport.screenshot(width, height).png)

    def find(self, rgb: Point, picture: Pixels | None = None, tolerance: int = 3) -> Spot:
        """Where a picture (a new one) has a colour, in 0..1."""
        seen = self.picture() if picture is None else picture
        wanted = np.round(np.array(rgb) * 255)
        return Spot((np.abs(seen - wanted) <= tolerance).all(axis=2))

    def pixel(self, point: Point, width: int = WIDTH, height: int = HEIGHT) -> tuple[float, float]:
        """Where a point of the world must appear, by a matrix that owes nothing to the code under test."""
        camera = self.viewport.camera
        turn = np.empty(9)
        mujoco.mju_quat2Mat(turn, np.array(camera.quat_wxyz))
        depth, left, up = turn.reshape(3, 3).T @ (np.array(point) - camera.location)
        focal = width / 2 / np.tan(np.radians(camera.fov_deg) / 2)
        assert depth > 0
        return width / 2 - focal * left / depth, height / 2 - focal * up / depth


def decode(png: bytes) -> Pixels:
    with Image.open(io.BytesIO(png)) as image:
        assert (image.format, image.mode) == ("PNG", "RGB")
        return np.asarray(image).astype(np.int64)


def posed_model(xml: str, **changes: Any) -> PosedModel:
    """The start of a model; ``changes`` are fields of it."""
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    start = {"qpos": data.qpos.copy(), "mocap_pos": data.mocap_pos.copy(), "mocap_quat": data.mocap_quat.copy()}
    return PosedModel(**{"key": object(), "model": model, **start, **changes})


@pytest.fixture(scope="session", autouse=True)
def _gl() -> None:
    try:
        shared_gl().gl_name()
    except NoViewport as none:
        pytest.skip(none.message)


@pytest.fixture
def studio() -> Iterator[Studio]:
    made = Studio()
    yield made
    made.viewport.close()


@pytest.fixture
def make_posed() -> Callable[..., PosedModel]:
    return posed_model


@pytest.fixture
def decode_png() -> Callable[[bytes], Pixels]:
    return decode

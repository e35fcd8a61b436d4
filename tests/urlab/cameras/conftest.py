"""Scenes from inline MJCF, pictures of them, and what geometry says that these must show."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from numpy.typing import NDArray

from urlab.cameras import Frame, RenderRequest, SceneRenderer, shared_gl
from urlab.compile import CompiledScene, compile_scene
from urlab.compile.library import Library
from urlab.config import RenderProfile
from urlab.errors import NoViewport
from urlab.physics.engine import Engine
from urlab.physics.snapshot import Snapshot
from urlab.robots import model_names, model_path
from urlab.scene.blueprint_record import BlueprintRecord, file_record
from urlab.scene.level import Actor, Level
from urlab_wire.enums import CameraMode

SIZE = (160, 120)
LOOKS_ALONG_X = 'xyaxes="0 -1 0 0 0 1"'
"""Of a camera: +X ahead, +Z up, so that -Y is to the right."""


class SimulatedScene:
    """A scene that is simulated, with a renderer."""

    def __init__(self, scene: CompiledScene, profile: RenderProfile = RenderProfile.FAST) -> None:
        self.scene = scene
        self.engine = Engine(scene.model)
        self.renderer = SceneRenderer(scene, profile)

    @property
    def cameras(self) -> list[Any]:
        robots = [camera for robot in self.scene.articulations for camera in robot.cameras]
        return [*robots, *self.scene.global_cameras]

    @property
    def snapshot(self) -> Snapshot:
        return self.engine.snapshot

    def move_on(self, steps: int = 1) -> Snapshot:
        with self.engine.locked():
            for _ in range(steps):
                self.engine.step_once()
            self.engine.publish()
        return self.engine.snapshot

    def draw(self, mode: str, camera: int = 0, size: tuple[int, int] | None = SIZE) -> Frame:
        shot = RenderRequest(self.cameras[camera], CameraMode(mode), size)
        (frame,) = self.renderer.render([shot], self.snapshot)
        return frame


class Truth:
    """What every pixel of a frame shows, by casting a ray of MuJoCo's through its middle."""

    def __init__(self, scene_of: SimulatedScene, frame: Frame) -> None:
        model, data = scene_of.scene.model, mujoco.MjData(scene_of.scene.model)
        data.qpos[:] = scene_of.snapshot.qpos
        mujoco.mj_forward(model, data)
        ahead = _rays(frame)
        lengths = np.linalg.norm(ahead, axis=1)
        rays = (ahead / lengths[:, None]) @ _axes(frame).T
        shape, count = (frame.height, frame.width), len(rays)
        geoms, distances = np.empty(count, np.int32), np.empty(count)
        eye, reach = np.array(frame.pos_w), 1e6
        mujoco.mj_multiRay(model, data, eye, rays.ravel(), None, 1, -1, geoms, distances, None, count, reach)
        self.geoms = geoms.reshape(shape)
        self.depths = np.where(geoms >= 0, distances / lengths, np.inf).reshape(shape)

    def inside(self) -> NDArray[np.bool_]:
        """Pixels whose neighbours show the same geom: there is no doubt about them."""
        geoms = np.pad(self.geoms, 1, mode="edge")
        height, width = self.geoms.shape
        same = np.ones((height, width), bool)
        for row in range(3):
            for column in range(3):
                same &= geoms[row : row + height, column : column + width] == self.geoms
        return same


def _rays(frame: Frame) -> NDArray[np.float64]:
    """Through the middle of every pixel, in the camera's frame, one metre along the optical axis."""
    fx, _, cx, _, fy, cy, *_ = frame.K
    u, v = np.meshgrid(np.arange(frame.width) + 0.5, np.arange(frame.height) + 0.5)
    return np.stack([(u - cx) / fx, -(v - cy) / fy, -np.ones_like(u)], axis=-1).reshape(-1, 3)


def _axes(frame: Frame) -> NDArray[np.float64]:
    turn = np.empty(9)
    mujoco.mju_quat2Mat(turn, np.array(frame.quat_wxyz))
    return turn.reshape(3, 3)


def project(frame: Frame, point: tuple[float, float, float]) -> tuple[float, float, float]:
    """Where a point of the world must appear: u, v in pixels, depth in metres."""
    fx, _, cx, _, fy, cy, *_ = frame.K
    right, up, back = _axes(frame).T @ (np.array(point) - frame.pos_w)
    return cx + fx * right / -back, cy - fy * up / -back, -back


def metres(frame: Frame) -> NDArray[np.float32]:
    assert (frame.metadata()["dtype"], len(frame.data)) == ("float32", 4 * frame.width * frame.height)
    return frame.array()


def bgra(frame: Frame) -> NDArray[np.uint8]:
    assert (frame.metadata()["dtype"], len(frame.data)) == ("bgra8", 4 * frame.width * frame.height)
    return frame.array()


def names_seen(frame: Frame, table: list[dict[str, Any]]) -> NDArray[np.str_]:
    """Each pixel's name, by its colour; KeyError when a colour is not in the table."""
    names = {tuple(row["color"]): row["name"] for row in table}
    pixels = bgra(frame)
    assert (pixels[..., 3] == 255).all()
    flat = [names[(int(red), int(green), int(blue))] for blue, green, red in pixels[..., :3].reshape(-1, 3)]
    return np.array(flat).reshape(frame.height, frame.width)


def bare_picture(model: Any, data: Any, camera: int, size: tuple[int, int], flags: tuple[int, ...]) -> Any:
    """MuJoCo's own picture, (height, width, 3) RGB from the top left, with these flags and no others."""

    def draw() -> Any:
        context = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_50.value)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value, context)
        mujoco.mjr_resizeOffscreen(*size, context)
        eye, scene = mujoco.MjvCamera(), mujoco.MjvScene(model, maxgeom=1000)
        eye.type, eye.fixedcamid = mujoco.mjtCamera.mjCAMERA_FIXED, camera
        everything = mujoco.mjtCatBit.mjCAT_ALL.value
        mujoco.mjv_updateScene(model, data, mujoco.MjvOption(), None, eye, everything, scene)
        scene.flags[:] = 0
        scene.flags[list(flags)] = 1
        pixels = np.empty((size[1], size[0], 3), np.uint8)
        rectangle = mujoco.MjrRect(0, 0, *size)
        mujoco.mjr_render(rectangle, scene, context)
        mujoco.mjr_readPixels(pixels, None, rectangle, context)
        context.free()
        return pixels[::-1]

    return shared_gl().run(draw)


def record(blueprint: str) -> BlueprintRecord:
    return file_record(str(model_path(blueprint)) if blueprint in model_names() else blueprint)


@pytest.fixture
def needs_gl() -> None:
    try:
        shared_gl().gl_name()
    except NoViewport as none:
        pytest.skip(none.message)


@pytest.fixture
def compose(tmp_path: Path) -> Callable[..., CompiledScene]:
    """``compose({actor_name: xml or shipped model}, sidecars={file stem: toml})``; an actor's file is called after it.

    ``twins={actor_name: another actor's name}`` are further actors of the same file.
    """

    def compile_actors(
        actors: Mapping[str, str], sidecars: Mapping[str, str] = {}, twins: Mapping[str, str] = {}
    ) -> CompiledScene:
        for stem, toml in sidecars.items():
            (tmp_path / f"{stem}.urlab.toml").write_text(toml, encoding="utf-8")
        words = {name: _word(tmp_path, name, model) for name, model in actors.items()}
        words |= {name: words[other] for name, other in twins.items()}
        placed = tuple(Actor(name, word, f"id-of-{name}") for name, word in words.items())
        return compile_scene(Level("level", placed), Library(record))

    return compile_actors


def _word(folder: Path, name: str, model: str) -> str:
    if not model.startswith("<"):
        return model
    path = folder / f"{name}.xml"
    path.write_text(model, encoding="utf-8")
    return str(path)


@pytest.fixture
def scene_of(compose: Callable[..., CompiledScene], needs_gl: None) -> Iterator[Callable[..., SimulatedScene]]:
    """``scene_of(worldbody, extra="", profile=...)``: a scene of one actor ``t`` whose world holds these elements.

    A mapping is what ``compose`` takes instead.
    """
    made: list[SimulatedScene] = []

    def build(what: Any, extra: str = "", profile: RenderProfile = RenderProfile.FAST, **rest: Any) -> SimulatedScene:
        actors = what if isinstance(what, Mapping) else {"t": mjcf(what, extra)}
        made.append(SimulatedScene(compose(actors, **rest), profile))
        return made[-1]

    yield build
    for one in made:
        one.renderer.close()


def mjcf(worldbody: str, extra: str = "") -> str:
    return f"<mujoco>{extra}<worldbody>{worldbody}</worldbody></mujoco>"


@pytest.fixture(scope="session")
def images() -> Any:
    """The functions of this file, for tests, which cannot import it."""

    class ImageFunctions:
        along_x = LOOKS_ALONG_X
        size = SIZE
        truth = Truth
        project = staticmethod(project)
        metres = staticmethod(metres)
        bgra = staticmethod(bgra)
        names_seen = staticmethod(names_seen)
        bare_picture = staticmethod(bare_picture)
        mjcf = staticmethod(mjcf)

    return ImageFunctions

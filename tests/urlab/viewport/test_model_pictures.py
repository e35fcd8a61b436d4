"""Pictures of models by themselves."""

import io
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from urlab.app import open_project
from urlab.cameras import GlThread
from urlab.errors import BadValue, ImportFailed, NoViewport
from urlab.manager.scene_view import blueprint_at_start
from urlab.viewport import ModelPictures, PosedModel, model_pictures

SKY = '<asset><texture type="skybox" builtin="flat" rgb1="0 1 0" rgb2="0 1 0" width="8" height="8"/></asset>'
BALL = '<geom size=".1" rgba="1 0 0 1"/>'
RED = '<mujoco>{}<worldbody><light pos="0 0 2"/><body pos="{} 0 0"><freejoint/>{}</body>{}</worldbody></mujoco>'


@pytest.fixture
def pictures() -> ModelPictures:
    return ModelPictures()


def pixels(png: bytes) -> NDArray[Any]:
    with Image.open(io.BytesIO(png)) as image:
        assert (image.format, image.mode) == ("PNG", "RGB")
        return np.asarray(image).astype(int)


def covered(picture: NDArray[Any]) -> tuple[float, float, float, float]:
    """Left, top, right, bottom of all that is not background, as shares of the picture."""
    rows, columns = np.nonzero(np.abs(picture - picture[0, 0]).sum(axis=2) > 40)
    height, width = picture.shape[:2]
    return columns.min() / width, rows.min() / height, (columns.max() + 1) / width, (rows.max() + 1) / height


SHIPPED = open_project(Path("nowhere")).shipped_models
FLAT = {"floor", "terrain"}


@pytest.mark.parametrize("name", sorted(set(SHIPPED) - FLAT))
@pytest.mark.parametrize(("width", "height"), [(256, 192), (96, 160)])
def test_every_shipped_model_fills_its_picture(pictures: ModelPictures, name: str, width: int, height: int) -> None:
    record = open_project(Path("nowhere")).record_named(name)
    picture = pixels(pictures.png(name, lambda: blueprint_at_start(record), width, height))
    left, top, right, bottom = covered(picture)
    assert picture.shape == (height, width, 3)
    assert max(right - left, bottom - top) > 0.75
    assert min(left, top, 1 - right, 1 - bottom) > 0.02, "all of it is seen"
    assert abs(left - (1 - right)) < 0.12
    assert abs(top - (1 - bottom)) < 0.12


@pytest.mark.parametrize("name", sorted(FLAT))
def test_ground_is_seen_as_well(pictures: ModelPictures, name: str) -> None:
    record = open_project(Path("nowhere")).record_named(name)
    assert pixels(pictures.png(name, lambda: blueprint_at_start(record), 128, 96)).std() > 3


def test_a_robot_stands_at_home() -> None:
    record = open_project(Path("nowhere")).record_named("panda")
    posed = blueprint_at_start(record)
    assert posed.qpos == pytest.approx(posed.model.key("panda_home").qpos)


@pytest.mark.parametrize("far", [0.0, 1000.0])
@pytest.mark.parametrize("size", [1e-2, 1.0, 1e3])
def test_the_size_and_the_place_of_a_model_make_no_difference(
    pictures: ModelPictures, make_posed: Any, far: float, size: float
) -> None:
    ball = f'<geom size="{size}" rgba="1 0 0 1"/>'
    left, top, right, bottom = covered(
        pixels(pictures.png("ball", lambda: make_posed(RED.format("", far * size, ball, "")), 96, 96))
    )
    assert (left, top, right, bottom) == pytest.approx((0.2, 0.2, 0.8, 0.8), abs=0.15)


def test_there_is_nothing_behind_a_model_whatever_sky_it_brings(pictures: ModelPictures, make_posed: Any) -> None:
    plain = pixels(pictures.png(1, lambda: make_posed(RED.format("", 0, BALL, "")), 64, 64))
    with_sky = pixels(pictures.png(2, lambda: make_posed(RED.format(SKY, 0, BALL, "")), 64, 64))
    assert np.array_equal(plain, with_sky)
    assert (plain[0] == plain[0, 0]).all()


def test_what_is_hidden_and_the_floor_do_not_count(pictures: ModelPictures, make_posed: Any) -> None:
    hidden = '<geom type="box" size="5 5 5" group="4" contype="0" conaffinity="0"/>'
    floor = '<geom type="plane" size="50 50 1" pos="0 0 -5" group="4"/>'
    alone = pixels(pictures.png(1, lambda: make_posed(RED.format("", 0, BALL, "")), 64, 64))
    assert np.array_equal(pixels(pictures.png(2, lambda: make_posed(RED.format("", 0, BALL, hidden)), 64, 64)), alone)
    assert np.array_equal(pixels(pictures.png(3, lambda: make_posed(RED.format("", 0, BALL, floor)), 64, 64)), alone)


def test_a_model_with_nothing_to_see_is_an_empty_picture(pictures: ModelPictures, make_posed: Any) -> None:
    picture = pixels(pictures.png(1, lambda: make_posed("<mujoco/>"), 32, 32))
    assert (picture == picture[0, 0]).all()


class Loads:
    """Counts how often a model was asked for."""

    def __init__(self, posed: PosedModel) -> None:
        self.count = 0
        self._posed = posed

    def __call__(self) -> PosedModel:
        self.count += 1
        return self._posed


def test_the_same_content_is_drawn_once_per_size(pictures: ModelPictures, make_posed: Any) -> None:
    load = Loads(make_posed(RED.format("", 0, BALL, "")))
    first = pictures.png("a", load, 64, 48)
    assert pictures.png("a", load, 64, 48) is first
    assert load.count == 1
    assert pixels(pictures.png("a", load, 48, 64)).shape == (64, 48, 3)
    pictures.png("b", load, 64, 48)
    assert load.count == 3


def test_threads_that_ask_at_once_get_one_drawing(pictures: ModelPictures, make_posed: Any) -> None:
    load, found = Loads(make_posed(RED.format("", 0, BALL, ""))), list[bytes]()
    threads = [threading.Thread(target=lambda: found.append(pictures.png("a", load, 64, 48))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (load.count, len(found), len(set(found))) == (1, 4, 1)


def test_pictures_that_were_not_asked_for_longest_are_forgotten(
    pictures: ModelPictures, make_posed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = Loads(make_posed(RED.format("", 0, BALL, "")))
    monkeypatch.setattr(model_pictures, "_MOST_BYTES", int(2.5 * len(pictures.png("a", load, 64, 48))))
    pictures.png("b", load, 64, 48)
    pictures.png("a", load, 64, 48)
    pictures.png("c", load, 64, 48)
    before = load.count
    pictures.png("a", load, 64, 48)
    assert load.count == before
    pictures.png("b", load, 64, 48)
    assert load.count == before + 1


def test_what_cannot_be_loaded_is_told_and_tried_again(pictures: ModelPictures, make_posed: Any) -> None:
    def fail() -> PosedModel:
        raise ImportFailed("gone")

    with pytest.raises(ImportFailed, match="gone"):
        pictures.png("a", fail, 64, 48)
    assert pictures.png("a", lambda: make_posed(RED.format("", 0, BALL, "")), 64, 48)


@pytest.mark.parametrize("size", [(15, 64), (64, 15), (4097, 64), (64, 0), (-1, -1)])
def test_a_size_that_cannot_be_drawn_is_refused(pictures: ModelPictures, size: tuple[int, int]) -> None:
    with pytest.raises(BadValue, match="must be between 16 and 4096 pixels"):
        pictures.png("a", lambda: pytest.fail("it was loaded"), *size)


def test_where_nothing_can_be_drawn_the_usual_error_says_so(make_posed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUJOCO_GL", "off")
    pictures = ModelPictures(gl=GlThread())
    with pytest.raises(NoViewport, match="MUJOCO_GL=off switches drawing off"):
        pictures.png("a", lambda: make_posed(RED.format("", 0, BALL, "")), 64, 48)


def test_no_gl_memory_is_held_between_pictures(pictures: ModelPictures, make_posed: Any) -> None:
    pictures.png("a", lambda: make_posed(RED.format("", 0, BALL, "")), 64, 48)
    assert not pictures._renderer.is_in_use

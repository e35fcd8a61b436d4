import struct
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from PIL import Image

from urlab.errors import ImportFailed
from urlab.importing.heightfields import heightfield_bundle, heights_of, image_bundle
from urlab.importing.sources import SourceFiles
from urlab.paths import FileRoots
from urlab.scene.blueprint_record import BlueprintKind

HEIGHTS = np.array([[5.0, 1.0, 1.0, 2.0], [1.0, 1.0, 1.0, 1.0], [1.0, 3.0, 1.0, 4.0]])
"""Rows from south to north, columns from west to east; in the field they go from 0 to 1 x height."""


@pytest.fixture
def roots(tmp_path: Path) -> FileRoots:
    return FileRoots(read=(tmp_path.resolve(),))


def read(path: Path) -> Any:
    return heights_of(path, path.read_bytes())


def compiled(heights: np.ndarray, size_m: tuple[float, float, float]) -> Any:
    bundle = heightfield_bundle("hills", heights, size_m)
    return mujoco.MjModel.from_xml_string(bundle.files[bundle.main].decode(), dict(bundle.files))


def surface(model: Any, x: float, y: float) -> float:
    """The height of the ground below a point, or -inf."""
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    down, above = np.array([0.0, 0.0, -1.0]), np.array([x, y, 100.0])
    distance = mujoco.mj_ray(model, data, above, down, None, 1, -1, np.zeros(1, np.int32))
    return 100.0 - distance if distance >= 0 else -np.inf


def test_a_bundle_holds_a_model_and_its_heights() -> None:
    bundle = heightfield_bundle("my hills", HEIGHTS, (6.0, 4.0, 2.0))
    assert (bundle.stem, bundle.main, bundle.kind) == ("my hills", "my_hills.xml", BlueprintKind.HEIGHTFIELD)
    assert sorted(bundle.files) == ["assets/my_hills.hfield", "my_hills.xml"]


def test_every_sample_is_at_its_place() -> None:
    model = compiled(HEIGHTS, (6.0, 4.0, 2.0))
    inside = 1 - 1e-6
    for row, y in enumerate((-2.0, 0.0, 2.0)):
        for column, x in enumerate((-3.0, -1.0, 1.0, 3.0)):
            wanted = (HEIGHTS[row, column] - 1.0) / 4.0 * 2.0
            assert surface(model, x * inside, y * inside) == pytest.approx(wanted, abs=1e-4)
    assert surface(model, 3.1, 0.0) == surface(model, 0.0, 2.1) == -np.inf


def test_balls_come_to_rest_on_the_lowest_point_which_is_at_zero() -> None:
    heights = np.hypot(*np.meshgrid(np.linspace(-1, 1, 9), np.linspace(-1, 1, 9))) - 7.0
    bundle = heightfield_bundle("bowl", heights, (2.0, 2.0, 0.5))
    spec = mujoco.MjSpec.from_string(bundle.files[bundle.main].decode())
    spec.assets = dict(bundle.files)
    ball = spec.worldbody.add_body(pos=(0.3, -0.2, 0.5))
    ball.add_freejoint()
    ball.add_geom(size=(0.1, 0.0, 0.0), condim=6, friction=(1.0, 0.01, 0.01))
    model = spec.compile()
    data = mujoco.MjData(model)
    while data.time < 4.0:
        mujoco.mj_step(model, data)
    assert np.hypot(*data.qpos[:2]) < 0.05
    assert data.qpos[2] == pytest.approx(0.1, abs=0.02)


def test_size_and_base_are_what_was_asked_for() -> None:
    model = compiled(HEIGHTS, (6.0, 4.0, 2.0))
    np.testing.assert_allclose(model.hfield_size[0], [3.0, 2.0, 2.0, 0.2])
    assert model.geom("ground").type[0] == int(mujoco.mjtGeom.mjGEOM_HFIELD)
    np.testing.assert_allclose(compiled(HEIGHTS, (1.0, 1.0, 0.05)).hfield_size[0], [0.5, 0.5, 0.05, 0.01])


def test_no_precision_is_lost() -> None:
    heights = np.random.default_rng(3).random((50, 40)) * 1e-3 + 1e6
    model = compiled(heights, (1.0, 1.0, 1.0))
    wanted = (heights - heights.min()) / np.ptp(heights)
    np.testing.assert_array_equal(model.hfield_data.reshape(50, 40), wanted.astype(np.float32))


@pytest.mark.parametrize(("level", "height"), [(0.0, 0.0), (3.5, 0.0), (-3.5, 2.0)])
def test_flat_ground_is_at_zero(level: float, height: float) -> None:
    model = compiled(np.full((4, 5), level), (2.0, 2.0, height))
    assert surface(model, 0.3, 0.4) == pytest.approx(0.0, abs=1e-9)


def test_the_largest_numbers_do_not_overflow() -> None:
    model = compiled(np.array([[-1.7e308, 1.7e308], [0.0, 0.0]]), (1.0, 1.0, 1.0))
    np.testing.assert_allclose(model.hfield_data, [0.0, 1.0, 0.5, 0.5])


@pytest.mark.parametrize(
    ("heights", "reason"),
    [
        (np.zeros(4), "shape 4;"),
        (np.zeros((1, 5)), "shape 1 x 5; .* 2 to 4096"),
        (np.zeros((2, 4097)), "shape 2 x 4097"),
        (np.zeros((2, 2, 3)), "shape 2 x 2 x 3"),
        (np.float64(1.0), "one number"),
        (np.array([[0.0, np.nan], [np.inf, 1.0]]), "2 of its heights are not finite"),
        (np.array([["a", "b"], ["c", "d"]]), "must be numbers"),
    ],
)
def test_heights_that_cannot_be_are_refused(heights: Any, reason: str) -> None:
    with pytest.raises(ImportFailed, match=reason):
        heightfield_bundle("hills", heights, (1.0, 1.0, 1.0))


@pytest.mark.parametrize("size", [(0.0, 1.0, 1.0), (1.0, -1.0, 1.0), (1.0, 1.0, -0.1), (1.0, float("nan"), 1.0)])
def test_sizes_that_cannot_be_are_refused(size: tuple[float, float, float]) -> None:
    with pytest.raises(ImportFailed, match=r"heightfield 'hills': size .* must be above 0"):
        heightfield_bundle("hills", HEIGHTS, size)


@pytest.mark.parametrize(("kind", "most"), [(np.uint8, 255), (np.uint16, 65535)])
def test_the_top_of_a_grey_picture_is_north(tmp_path: Path, kind: Any, most: int) -> None:
    pixels = np.array([[0, 1, 2], [most, most - 1, 7]], kind)
    Image.fromarray(pixels).save(tmp_path / "hills.png")
    heights = read(tmp_path / "hills.png")
    np.testing.assert_array_equal(heights, [[most, most - 1, 7], [0, 1, 2]])
    assert heights.dtype == np.float64


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "LA", "P"])
def test_a_grey_picture_may_be_stored_in_colour(tmp_path: Path, mode: str) -> None:
    pixels = np.array([[10, 20], [30, 40]], np.uint8)
    Image.fromarray(pixels).convert(mode).save(tmp_path / "hills.png")
    np.testing.assert_array_equal(read(tmp_path / "hills.png"), pixels[::-1])


def test_a_picture_in_colour_is_refused(tmp_path: Path) -> None:
    Image.new("RGB", (4, 4), (1, 2, 3)).save(tmp_path / "hills.png")
    with pytest.raises(ImportFailed, match="in colour"):
        read(tmp_path / "hills.png")


def test_a_numpy_file_is_taken_as_it_is(tmp_path: Path) -> None:
    np.save(tmp_path / "hills.npy", HEIGHTS.astype(np.float32))
    np.testing.assert_array_equal(read(tmp_path / "hills.npy"), HEIGHTS)


def png_header(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)


def npy_header(shape: str) -> bytes:
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.png", b"hello", "neither a PNG nor"),
        ("a.png", b"", "neither a PNG nor"),
        ("a.jpg", b"\xff\xd8\xff\xe0 and so on", "neither a PNG nor"),
        ("a.png", png_header(60_000, 60_000) + bytes(4), "at most 4096|neither"),
        ("a.npy", b"hello", "not a NumPy file"),
        ("a.npy", b"", "not a NumPy file"),
        (
            "a.npy",
            b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (90000, 90000), }",
            "NumPy",
        ),
    ],
)
def test_files_that_are_no_heights_are_refused(tmp_path: Path, name: str, content: bytes, reason: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ImportFailed, match=reason):
        read(tmp_path / name)


def test_pickles_are_never_loaded(tmp_path: Path) -> None:
    np.save(tmp_path / "evil.npy", np.array([[print, len], [1, 2]], dtype=object), allow_pickle=True)
    with pytest.raises(ImportFailed, match="plain numbers"):
        read(tmp_path / "evil.npy")


@pytest.mark.parametrize("shape", [(4097, 2), (1, 4)])
def test_pictures_of_the_wrong_size_are_refused(tmp_path: Path, shape: tuple[int, int]) -> None:
    Image.fromarray(np.zeros(shape, np.uint8)).save(tmp_path / "hills.png")
    with pytest.raises(ImportFailed, match="4096"):
        read(tmp_path / "hills.png")


def test_a_file_is_read_in_a_child_process_and_gives_the_same_import(tmp_path: Path, roots: FileRoots) -> None:
    np.save(tmp_path / "hills.npy", HEIGHTS)
    bundle = image_bundle("my hills", tmp_path / "hills.npy", (6.0, 4.0, 2.0), SourceFiles(roots))
    assert bundle == heightfield_bundle("my hills", HEIGHTS, (6.0, 4.0, 2.0))


def test_what_is_wrong_with_a_file_is_told_from_the_child_process(tmp_path: Path, roots: FileRoots) -> None:
    (tmp_path / "a.png").write_bytes(b"hello")
    with pytest.raises(ImportFailed, match=r"a\.png is neither a PNG nor"):
        image_bundle("hills", tmp_path / "a.png", (6.0, 4.0, 2.0), SourceFiles(roots))


def test_only_files_in_the_roots_are_read(tmp_path: Path) -> None:
    (tmp_path / "allowed").mkdir()
    np.save(tmp_path / "hills.npy", HEIGHTS)
    (tmp_path / "allowed" / "link.npy").symlink_to(tmp_path / "hills.npy")
    sources = SourceFiles(FileRoots(read=((tmp_path / "allowed").resolve(),)))
    for path in (tmp_path / "hills.npy", tmp_path / "allowed" / "link.npy"):
        with pytest.raises(ImportFailed, match="--model-root"):
            image_bundle("hills", path, (1.0, 1.0, 1.0), sources)
    with pytest.raises(ImportFailed, match="does not exist"):
        image_bundle("hills", tmp_path / "allowed" / "gone.npy", (1.0, 1.0, 1.0), sources)

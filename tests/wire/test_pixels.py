"""Layouts of pixels, and the conversions that readers of frames share."""

import numpy as np
import pytest

from urlab_wire.enums import CameraMode
from urlab_wire.pixels import (
    MAX_BYTES_PER_PIXEL,
    PixelFormat,
    grey_of_depth,
    millimetres,
    pick_channels,
    swap_red_blue,
    white_of,
)

PIXELS = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
INF = np.inf


def depths(*metres: float) -> np.ndarray:
    return np.array([metres], np.float32)


def test_every_mode_says_its_format_and_its_word_on_the_wire() -> None:
    assert {mode: mode.pixel_format.word for mode in CameraMode} == {
        "real": "bgra8", "depth": "float32", "semantic": "bgra8", "instance": "bgra8"
    }  # fmt: skip
    assert [mode for mode in CameraMode if not mode.pixel_format.is_exact] == [CameraMode.REAL]
    with pytest.raises(TypeError, match="says no pixel format"):
        CameraMode.__new_member__(CameraMode, "x-ray")  # type: ignore[attr-defined]


@pytest.mark.parametrize("layout", PixelFormat)
def test_bytes_become_an_array_without_a_copy_or_are_refused(layout: PixelFormat) -> None:
    data = bytes(6 * layout.bytes_per_pixel)
    pixels = layout.array(memoryview(data), 3, 2)
    assert pixels.shape == ((2, 3) if layout.channels == 1 else (2, 3, layout.channels))
    assert (pixels.dtype, pixels.nbytes, pixels.flags.owndata) == (layout.dtype, len(data), False)
    assert layout.bytes_per_pixel <= MAX_BYTES_PER_PIXEL
    with pytest.raises(ValueError, match="reshape"):
        layout.array(data, 3, 3)


def test_red_and_blue_change_places_and_nothing_else() -> None:
    assert (swap_red_blue(PIXELS) == PIXELS[..., [2, 1, 0, 3]]).all()
    assert (swap_red_blue(swap_red_blue(PIXELS)) == PIXELS).all()


def test_three_channels_are_picked_by_name() -> None:
    assert (pick_channels(PIXELS, "bgra") == PIXELS[..., 2::-1]).all()
    assert (pick_channels(PIXELS, "rgba") == PIXELS[..., :3]).all()
    assert (pick_channels(PIXELS, "bgra", "bgr") == PIXELS[..., :3]).all()


def test_depth_is_grey_from_black_to_white() -> None:
    assert grey_of_depth(depths(0, 1, 2, 4, INF), 2.0)[0].tolist() == [
        [0] * 3,
        [128] * 3,
        [255] * 3,
        [255] * 3,
        [255] * 3,
    ]
    assert (grey_of_depth(depths(INF, INF)) == 255).all()


def test_white_is_beyond_nearly_all_that_is_in_reach() -> None:
    assert white_of(depths(*range(1, 101), INF)) == pytest.approx(95.05)
    assert white_of(depths(0.01)) == white_of(depths(INF)) == 0.1


@pytest.mark.parametrize("too_far", [0, 65535])
def test_depth_is_rounded_to_millimetres(too_far: int) -> None:
    found = millimetres(depths(0.0004, 1.2346, 65.535, 70.0, INF, -1.0, np.nan), too_far)
    assert (found.dtype, found[0].tolist()) == (np.uint16, [0, 1235, 65535, too_far, 0, 0, 0])

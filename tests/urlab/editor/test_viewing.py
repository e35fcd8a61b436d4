"""How the world is looked at, in a real browser: modes, outline, tracking, and the camera that Python shares."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from urlab_client import URLabClient

pytestmark = pytest.mark.page


def is_red(red: Any, green: Any, blue: Any) -> Any:
    return (red > 60) & (green < 0.5 * red) & (blue < 0.5 * red)


def is_orange(red: Any, green: Any, blue: Any) -> Any:
    """The outline's colour, also where it is mixed with green ground or the red brick: neither has as much of both."""
    return (red > 130) & (green > 80) & (green < 0.85 * red) & (blue < 0.5 * green)


def reds(page: Any) -> Any:
    """The red of all pixels of the brick."""
    pixels = page.tab.pixels().astype(int)
    left = pixels[:, : pixels.shape[1] // 2]
    return left[..., 0][is_red(left[..., 0], left[..., 1], left[..., 2])]


@pytest.fixture(autouse=True)
def still(client: URLabClient) -> Iterator[None]:
    """A test begins with a level that stands still, seen as it was launched."""
    client.reset()
    client.runtime.set_paused(True)
    client.viewport.set_camera((-2.5, 0.0, 1.2), rotation_euler=(0, 20, 0), fov=70)
    yield
    client.viewport.set_mode("lit")
    client.viewport.untrack()
    client.runtime.set_paused(False)


def test_modes_change_what_is_drawn(client: URLabClient, page: Any):
    page.close_notices()
    page.until(lambda: page.middle_of(is_red))
    lit = reds(page)
    assert np.std(lit) > 5, "its sides are lit differently"
    page.open_tab("View")
    page.choose("Mode", "unlit")
    page.until(lambda: client.viewport.read("known").mode == "unlit")
    page.until(lambda: len(seen := reds(page)) > len(lit) / 2 and np.ptp(np.percentile(seen, (10, 90))) < 5)
    page.choose("Mode", "wireframe")
    page.until(lambda: len(reds(page)) < len(lit) / 3)
    page.choose("Mode", "lit")
    page.until(lambda: len(reds(page)) > len(lit) * 0.9)


def test_the_selected_actor_has_an_outline(client: URLabClient, page: Any):
    page.close_notices()
    x, y = page.until(lambda: page.middle_of(is_red))
    assert page.top_of(is_orange) is None
    client.outliner.select_actor("brick", by_name=True)
    page.until(lambda: (found := page.top_of(is_orange)) and abs(found[0] - x) < 100 and abs(found[1] - y) < 100)


def test_python_and_the_page_share_a_camera(client: URLabClient, page: Any):
    page.close_notices()
    before = page.until(lambda: page.middle_of(is_red))
    client.viewport.set_camera((-2.5, 0.4, 1.2), rotation_euler=(0, 20, 0), fov=70)
    page.until(lambda: (seen := page.middle_of(is_red)) and seen[0] > before[0] + 40)
    camera = client.viewport.get_camera()
    page.tab.drag((100, 100), (130, 100), (160, 105))
    page.until(lambda: np.linalg.norm(np.subtract(client.viewport.get_camera().location, camera.location)) > 0.1)


def test_the_camera_follows_an_actor_that_it_tracks(client: URLabClient, page: Any):
    page.close_notices()
    page.until(lambda: page.middle_of(is_red))
    client.outliner.select_actor("brick", by_name=True)
    page.open_tab("View")
    page.tick("Track the selected actor")
    page.until(lambda: client.viewport.read("known").tracking)
    before = page.until(lambda: page.middle_of(is_red))
    client.runtime.set_qpos("brick", [0, -1.5, 0.2, 1, 0, 0, 0], by_name=True)
    page.until(lambda: client.viewport.get_camera().location[1] < -1.0)
    page.until(lambda: (seen := page.middle_of(is_red)) and np.allclose(seen, before, atol=12))
    page.tick("Track the selected actor")
    page.until(lambda: not client.viewport.read("known").tracking)

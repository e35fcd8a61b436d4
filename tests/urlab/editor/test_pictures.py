"""The pictures that README and docs show: the page of the demo level, as a person sees it. They are kept.

`make test-page` keeps them in the folder pictures, and with PICTURES=docs where they are shown.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import urlab
from urlab_client import URLabClient

pytestmark = pytest.mark.page

SIZE = (1400, 900)
PANEL_FROM = 1000
"""The first column that the panel covers."""


@pytest.fixture(scope="module")
def client(project: Path) -> Iterator[URLabClient]:
    """The driver of the demo level, which plays."""
    with urlab.launch("demo", step_mode="live", web=True, web_port=0, project=project) as opened:
        opened.outliner.select_actor("panda", by_name=True)
        opened.viewport.set_camera((-2.2, -0.6, 1.3), rotation_euler=(0, 18, 15), fov=75)
        yield opened


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where pictures are kept."""
    kept = Path(os.environ.get("PICTURES") or tmp_path)
    kept.mkdir(exist_ok=True)
    return kept


@pytest.fixture
def page(client: URLabClient, open_page: Callable[..., Any]) -> Any:
    """A large page, drawn finely."""
    opened = open_page(size=SIZE, url=f"{client.viewport.editor_url()}&fixedDpr=1")
    opened.close_notices()
    return opened


def share_of(is_colour: Callable[[Any, Any, Any], Any], picture: Any) -> float:
    """How much of a picture has that colour."""
    red, green, blue = (picture[..., one].astype(int) for one in range(3))
    return float(np.mean(is_colour(red, green, blue)))


def is_orange(red: Any, green: Any, blue: Any) -> Any:
    return (red > 200) & (green > 110) & (green < 190) & (blue < 80)


def is_wood(red: Any, green: Any, blue: Any) -> Any:
    return (red > green + 20) & (green > blue + 15) & (red > 130)


def keep(page: Any, file: Path, is_drawn: Callable[[Any], Any]) -> None:
    """Keep what the page shows, once that is drawn."""
    page.until(lambda: is_drawn(page.tab.pixels()))
    file.write_bytes(page.tab.screenshot())


def test_the_demo_level_plays_and_the_arm_is_inspected(page: Any, folder: Path):
    page.open_tab("Inspect")
    page.until(lambda: page.says("9 joints, 8 actuators"))
    keep(page, folder / "editor.png", lambda picture: share_of(is_orange, picture[:, :PANEL_FROM]) > 0.0005
         and share_of(is_wood, picture[:, :PANEL_FROM]) > 0.01)  # fmt: skip


def test_what_the_camera_above_the_table_sees_on_a_dark_page(page: Any, folder: Path):
    page.open_tab("View")
    page.tick("Dark")
    page.open_tab("Cameras")
    page.choose("Camera", "panda/overhead")
    keep(page, folder / "editor-camera.png", lambda picture: share_of(is_wood, picture[:, PANEL_FROM:]) > 0.05
         and picture[20:50, PANEL_FROM + 200 : PANEL_FROM + 250].max() < 70)  # fmt: skip
    page.open_tab("View")
    page.tick("Dark")
    page.until(lambda: page.tab.evaluate("localStorage.getItem('urlab-dark') === 'light'"))


def test_the_level_is_edited_and_the_gizmo_is_at_the_arm(client: URLabClient, page: Any, folder: Path):
    client.sim.stop()
    page.until(lambda: page.state == "editing")
    pink = lambda red, green, blue: (red > 220) & (green < 90) & (blue > 70) & (blue < 150)  # noqa: E731
    keep(page, folder / "editor-level.png", lambda picture: share_of(pink, picture[:, :PANEL_FROM]) > 0.0002)

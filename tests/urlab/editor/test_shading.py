"""Round things look round on the page, in Chromium: the colour changes from pixel to pixel, not from facet to facet."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import urlab
from urlab_client import URLabClient

pytestmark = pytest.mark.page

MODELS = {
    "plain": """<mujoco><default><geom rgba=".9 .1 .1 1"/></default>
        <worldbody><light directional="true" dir="1 -1 -.3" diffuse="1 1 1"/>
        <body><geom size=".45"/><geom size=".1" pos="0 0 -.5"/></body></worldbody></mujoco>""",
    "painted": """<mujoco><asset>
        <texture name="red" type="2d" builtin="flat" rgb1=".9 .1 .1" width="8" height="8"/>
        <material name="red" texture="red"/></asset>
        <worldbody><body><geom size=".45" material="red"/></body></worldbody></mujoco>""",
}
PLACES = {"plain": 1.2, "painted": 0.2}
"""How far to the left each ball is, m."""

CAMERA_M, PIXELS_PER_M, CENTER, RADIUS = (-2.5, 0.0, 1.0), 257.0, (450, 364), 90


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[URLabClient]:
    folder: Path = tmp_path_factory.mktemp("models")
    for name, text in MODELS.items():
        (folder / f"{name}.xml").write_text(text)
    targets = [f"{folder}/{name}.xml@0,{left},0.75" for name, left in PLACES.items()]
    with urlab.launch(targets, web=True, web_port=0, project=folder / "project") as opened:
        opened.viewport.set_camera(CAMERA_M, rotation_euler=(0, 0, 0), fov=70)
        yield opened


@pytest.mark.parametrize("name", sorted(MODELS))
def test_a_ball_has_no_facets(page: Any, name: str) -> None:
    page.close_notices()
    middle = round(CENTER[0] - PIXELS_PER_M * PLACES[name])

    def reds() -> Any:
        row = page.tab.pixels()[CENTER[1], middle - RADIUS : middle + RADIUS].astype(int)
        return row[:, 0] if (row[:, 0] > 1.6 * row[:, 1:].max(axis=1)).all() else None

    page.until(lambda: reds() is not None)
    seen = reds()
    assert np.abs(np.diff(seen)).max() < 12  # with facets it is 23 or more

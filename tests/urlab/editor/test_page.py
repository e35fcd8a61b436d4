"""What a person does on the page, in a real browser, against a real server: in the picture, and with its panels."""

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PIL import Image

from urlab_client import URLabClient

pytestmark = pytest.mark.page

CTRL = 2


def is_red(red: Any, green: Any, blue: Any) -> Any:
    return (red > 120) & (green < 110) & (blue < 110)


def brick_in(page: Any) -> Any:
    """Where the brick is in the picture."""
    return page.until(lambda: page.middle_of(is_red))


def height_of_brick(client: URLabClient) -> float:
    client.step(0)
    return float(client.entities["brick"].root_pos_w[2])


def angle_of_arm(client: URLabClient) -> float:
    client.step(0)
    return float(client.articulations["arm"].get_qpos()["hinge"])


def held(client: URLabClient) -> int:
    return len(client.viewport.read("known").held)


def source_of_arm(client: URLabClient) -> str | None:
    return (client.sim.status().control_source or {}).get("arm")


def selected(client: URLabClient) -> list[str]:
    return [one.name for one in client.outliner.list_actors() if one.selected]


@pytest.fixture(autouse=True)
def running(client: URLabClient):
    """A test begins with a level that plays from its start."""
    client.reset()
    client.runtime.set_paused(False)


# -- the picture -------------------------------------------------------------------------------------------------------


def test_a_person_watches_selects_and_pauses(client: URLabClient, page: Any):
    page.until(lambda: page.state == "playing")
    page.tab.drag(brick_in(page))
    page.until(lambda: selected(client) == ["brick"])
    page.press("Pause")
    page.until(lambda: client.sim.status().paused)
    page.until(lambda: page.state == "paused")
    page.press("Pause")
    page.until(lambda: not client.sim.status().paused)


def reds(picture: Any) -> Any:
    """The red of all red pixels, from dark to light."""
    red, green, blue = picture.reshape(-1, 3).astype(float).T
    return np.sort(red[(red > 40) & (red > 1.6 * np.maximum(green, blue))])


def test_the_brick_is_lit_as_in_the_servers_pictures(client: URLabClient, page: Any):
    page.close_notices()
    brick_in(page)
    drawn = reds(page.tab.pixels())
    expected = reds(
        np.asarray(Image.open(io.BytesIO(client.viewport.screenshot(width=900, height=600))).convert("RGB"))
    )
    assert np.median(drawn) == pytest.approx(np.median(expected), abs=50)
    dark, light = drawn[len(drawn) // 10], drawn[-len(drawn) // 10]
    assert light > dark + 25  # its top faces the light, and its sides do not


def test_a_body_is_dragged_with_ctrl_and_let_go_with_the_button(client: URLabClient, page: Any):
    page.close_notices()
    x, y = brick_in(page)
    camera = client.viewport.get_camera()
    rested = height_of_brick(client)
    way = [(x, y), (x, y - 40), (x, y - 90), (x, y - 150), (x, y - 160)]
    page.tab.mouse("mouseMoved", way[0], buttons=0, modifiers=CTRL)
    page.tab.mouse("mousePressed", way[0], modifiers=CTRL)
    for place in way[1:]:
        page.tab.mouse("mouseMoved", place, modifiers=CTRL)
    page.until(lambda: held(client) == 1)
    page.until(lambda: height_of_brick(client) > rested + 0.1)
    page.until(lambda: (seen := page.middle_of(is_red)) and seen[1] < y - 20)
    page.tab.mouse("mouseReleased", way[-1], buttons=0, modifiers=CTRL)
    page.until(lambda: held(client) == 0)
    page.until(lambda: height_of_brick(client) < rested + 0.05)
    np.testing.assert_allclose(client.viewport.get_camera().location, camera.location, atol=0.01)


def test_a_tab_that_crashes_lets_go_of_the_body_that_it_drags(client: URLabClient, page: Any):
    x, y = brick_in(page)
    page.tab.mouse("mouseMoved", (x, y), buttons=0, modifiers=CTRL)
    page.tab.mouse("mousePressed", (x, y), modifiers=CTRL)
    for way in (40, 90):
        page.tab.mouse("mouseMoved", (x, y - way), modifiers=CTRL)
    page.until(lambda: held(client) == 1)
    page.tab.crash()
    page.until(lambda: held(client) == 0)


# -- panels ------------------------------------------------------------------------------------------------------------


def test_a_slider_moves_the_arm_and_closing_the_tab_gives_it_back(client: URLabClient, page: Any):
    client.outliner.select_actor("arm", by_name=True)
    page.open_tab("Inspect")
    page.tick("Drive from this page")
    page.until(lambda: source_of_arm(client) == "ui")
    page.slide("servo", 0.9)
    page.until(lambda: angle_of_arm(client) > 0.8)
    page.tab.end()
    page.until(lambda: source_of_arm(client) == "zmq")


def test_a_recording_is_made_replayed_and_scrubbed(client: URLabClient, page: Any):
    page.open_tab("Record")
    page.press("Start")
    page.until(lambda: client.recording.status().frame_count > 400)
    page.press("Stop", row="Record")
    page.until(lambda: not client.recording.status().active)
    page.press("Save", row="Record")
    page.until(client.recording.list)
    page.until(lambda: page.says("recorded: "))
    page.press("Play", row="Replay")
    page.until(lambda: (replay := client.sim.status().replay) and replay.frame > 0)
    page.press("Pause", row="Replay")
    page.until(lambda: (replay := client.sim.status().replay) and not replay.playing)
    for share in (0.9, 0.2):
        page.slide("Frame", share)
        page.until(lambda share=share: _shown_share(client) == pytest.approx(share, abs=0.1))
    page.press("Stop", row="Replay")
    page.until(lambda: client.sim.status().replay is None)


def _shown_share(client: URLabClient) -> float:
    replay = client.sim.status().replay
    return -1.0 if replay is None else replay.frame / replay.total_frames


def test_a_camera_shows_what_it_sees_in_colour_and_as_depth(page: Any):
    page.open_tab("Cameras")
    page.choose("Camera", "arm/eye")
    page.until(lambda: _colours(page) > 20)
    page.choose("Mode", "depth")
    page.until(lambda: page.says("depth: red"))
    page.until(lambda: _colours(page) > 20)
    page.choose("Mode", "real")


def _colours(page: Any) -> int:
    """How many colours the picture of the camera has; 0 while there is none."""
    return int(
        page.tab.evaluate("""(() => {
            const one = [...document.querySelectorAll('img')].find(one => one.offsetParent && one.naturalWidth > 16);
            if (!one || !one.complete) return 0;
            const canvas = new OffscreenCanvas(one.naturalWidth, one.naturalHeight), to = canvas.getContext('2d');
            to.drawImage(one, 0, 0);
            const words = new Uint32Array(to.getImageData(0, 0, canvas.width, canvas.height).data.buffer);
            return new Set(words).size;
        })()""")
    )


def test_a_page_can_be_dark(page: Any):
    page.open_tab("View")
    box = page.tab.box("document.querySelector('#urlab-status')")
    row, column = int(box["y"]) + 2, int(box["x"]) + 4
    page.until(lambda: page.tab.pixels()[row, column].min() > 230)
    page.tick("Dark")
    page.tab.evaluate("document.querySelector('#urlab-status').scrollIntoView()")
    page.until(lambda: page.tab.pixels()[row, column].max() < 70)


def test_a_telephone_shows_the_panel_and_its_buttons_work(client: URLabClient, open_page: Callable[..., Any]):
    page = open_page(size=(390, 844))
    assert page.tab.pixels().shape[:2] == (844, 390)
    page.press("Pause")
    page.until(lambda: client.sim.status().paused)
    page.press("Pause")
    page.until(lambda: not client.sim.status().paused)


# -- keys --------------------------------------------------------------------------------------------------------------


def twist_of_arm(client: URLabClient) -> list[float]:
    client.step(0)
    return [float(one) for one in client.articulations["arm"].twist_linear[:2]]


def test_keys_list_themselves_pause_and_drive_while_they_are_held(client: URLabClient, page: Any):
    page.tab.key("?")
    page.until(lambda: page.says("ten steps"))
    page.press("Close")
    page.until(lambda: not page.says("ten steps"))
    page.tab.key(" ")
    page.until(lambda: client.sim.status().paused)
    page.tab.key(" ")
    page.until(lambda: not client.sim.status().paused)
    page.tab.key("w", up=False)
    page.until(lambda: twist_of_arm(client) == [0.5, 0.0])
    page.tab.key("d", up=False)
    page.until(lambda: twist_of_arm(client) == [0.0, -0.5])
    page.tab.key("d", down=False)
    page.until(lambda: twist_of_arm(client) == [0.5, 0.0])
    page.tab.key("w", down=False)
    page.until(lambda: twist_of_arm(client) == [0.0, 0.0])


def test_a_robot_that_a_key_drives_stops_when_the_tab_is_closed(client: URLabClient, page: Any):
    page.tab.key("w", up=False)
    page.until(lambda: twist_of_arm(client) == [0.5, 0.0])
    page.tab.end()
    page.until(lambda: twist_of_arm(client) == [0.0, 0.0])

"""What a person does on the page, in a real browser, against a real server."""

import time
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any

import numpy as np
import pytest
from PIL import Image

import urlab
from urlab_client import URLabClient

MODELS = {
    "arm": """<mujoco model="arm"><compiler angle="radian"/><worldbody><body pos="0 0 0.3">
        <joint name="hinge" axis="0 1 0" range="-2 2" damping="2"/>
        <geom type="capsule" size="0.05" fromto="0 0 0 0 0 0.5" rgba="0.1 0.2 0.9 1" mass="0.5"/></body></worldbody>
        <actuator><position name="servo" joint="hinge" kp="80" ctrlrange="-1.5 1.5"/></actuator>
        <sensor><jointpos name="angle" joint="hinge"/></sensor></mujoco>""",
    "brick": """<mujoco model="brick"><worldbody><body name="brick"><freejoint/>
        <geom type="box" size="0.2 0.2 0.2" rgba="0.95 0.1 0.1 1" mass="1"/></body></worldbody></mujoco>""",
    "ground": """<mujoco model="ground"><worldbody><light pos="0 0 4" dir="0 0 -1"/>
        <geom type="plane" size="4 4 0.1" rgba="0.2 0.5 0.2 1"/></worldbody></mujoco>""",
}
SIZE = (900, 600)
WAIT_S = 60.0


def until(condition: Callable[[], Any]) -> Any:
    """What the condition says when it first holds; the pages and the server tell what they did by their state."""
    deadline = time.monotonic() + WAIT_S
    while not (found := condition()):
        assert time.monotonic() < deadline, "the page has not done it"
        time.sleep(0.05)
    return found


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[URLabClient]:
    folder = tmp_path_factory.mktemp("models")
    for name, text in MODELS.items():
        (folder / f"{name}.xml").write_text(text)
    places = ("ground", "arm@0,0,0", "brick@0,0.8,0.2")
    targets = [f"{folder}/{name.replace('@', '.xml@')}" if "@" in name else f"{folder}/{name}.xml" for name in places]
    with urlab.launch(targets, step_mode="live", web=True, web_port=0, project=folder / "project") as opened:
        opened.viewport.set_camera((-2.5, 0.0, 1.2), rotation_euler=(0, 20, 0), fov=70)
        yield opened


@pytest.fixture
def page(client: URLabClient, open_browser: Callable[..., Any]) -> Any:
    flags = ("--use-angle=swiftshader", "--enable-unsafe-swiftshader", f"--window-size={SIZE[0]},{SIZE[1]}")
    opened = open_browser(*flags).open(client.viewport.editor_url())
    until(lambda: opened.evaluate("!!document.querySelector('#urlab-status')"))
    return opened


def click(page: Any, found: str) -> None:
    """Click, with the mouse, in the middle of the element that a script finds."""
    until(lambda: page.evaluate(f"!!({found})"))
    page.evaluate(f"({found}).scrollIntoView({{block: 'center'}})")
    box = page.evaluate(f"(({found}).getBoundingClientRect()).toJSON()")
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    mouse(page, "mouseMoved", (x, y), buttons=0)
    mouse(page, "mousePressed", (x, y))
    mouse(page, "mouseReleased", (x, y), buttons=0)


def press(page: Any, text: str) -> None:
    click(page, f"[...document.querySelectorAll('button')].find(one => one.textContent.trim() === {text!r})")


def open_tab(page: Any, text: str) -> None:
    click(page, f"[...document.querySelectorAll('[role=tab]')].find(one => one.textContent.trim() === {text!r})")


def state_of(page: Any) -> str:
    return str(page.evaluate("document.querySelector('#urlab-status')?.dataset.state"))


def pixels_of(page: Any) -> Any:
    return np.asarray(Image.open(BytesIO(page.screenshot())).convert("RGB"), int)


def middle_of_red(page: Any) -> tuple[int, int] | None:
    """Where the brick is in the picture, left of the panel."""
    pixels = pixels_of(page)[:, : SIZE[0] // 2]
    red = (pixels[..., 0] > 120) & (pixels[..., 1] < 90) & (pixels[..., 2] < 90)
    rows, columns = np.nonzero(red)
    return (int(columns.mean()), int(rows.mean())) if len(rows) > 200 else None


def mouse(page: Any, kind: str, place: tuple[int, int], **more: Any) -> None:
    fields = {"x": place[0], "y": place[1], "button": "left", "buttons": 1, "clickCount": 1, **more}
    page.ask("Input.dispatchMouseEvent", type=kind, **fields)


def test_a_person_watches_selects_and_pauses(client: URLabClient, page: Any):
    until(lambda: state_of(page) == "playing")
    place = until(lambda: middle_of_red(page))
    mouse(page, "mouseMoved", place, buttons=0)
    mouse(page, "mousePressed", place)
    mouse(page, "mouseReleased", place, buttons=0)
    until(lambda: [one.name for one in client.outliner.list_actors() if one.selected] == ["brick"])
    press(page, "Pause")
    until(lambda: client.sim.status().paused)
    until(lambda: state_of(page) == "paused")
    press(page, "Pause")
    until(lambda: not client.sim.status().paused)


def test_a_second_page_looks_on_until_it_is_given_the_controls(client: URLabClient, page: Any, open_browser: Any):
    flags = ("--use-angle=swiftshader", "--enable-unsafe-swiftshader", f"--window-size={SIZE[0]},{SIZE[1]}")
    second = open_browser(*flags).open(client.viewport.editor_url())
    until(lambda: second.evaluate("document.body.textContent.includes('holds the controls')"))
    press(second, "Pause")
    until(lambda: second.evaluate("document.body.textContent.includes('Another page holds the controls')"))
    assert client.sim.status().paused is False
    press(second, "Ask for the controls")
    press(page, "Give the controls away")
    until(lambda: page.evaluate("document.body.textContent.includes('holds the controls')"))
    press(second, "Pause")
    until(lambda: client.sim.status().paused)
    press(second, "Pause")
    until(lambda: not client.sim.status().paused)

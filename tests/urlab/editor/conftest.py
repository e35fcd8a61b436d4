"""Pages of the editor in a real browser: one browser and one server for each file of tests."""

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import urlab
from urlab_client import URLabClient

WINDOW = (900, 600)
MODELS = {
    "arm": """<mujoco model="arm"><compiler angle="radian"/><worldbody><body pos="0 0 0.3">
        <joint name="hinge" axis="0 1 0" range="-2 2" damping="2"/>
        <geom type="capsule" size="0.05" fromto="0 0 0 0 0 0.5" rgba="0.1 0.2 0.9 1" mass="0.5"/></body>
        <camera name="eye" pos="-2 0.8 1" xyaxes="0 -1 0 0.4 0 1" resolution="160 120"/></worldbody>
        <actuator><position name="servo" joint="hinge" kp="80" ctrlrange="-1.5 1.5"/></actuator>
        <sensor><jointpos name="angle" joint="hinge"/></sensor></mujoco>""",
    "brick": """<mujoco model="brick"><worldbody><body name="brick"><freejoint/>
        <geom type="box" size="0.2 0.2 0.2" rgba="0.95 0.1 0.1 1" mass="1"/></body></worldbody></mujoco>""",
    "ground": """<mujoco model="ground"><worldbody><light pos="0 0 4" dir="0 0 -1"/>
        <geom type="plane" size="4 4 0.1" rgba="0.2 0.5 0.2 1"/></worldbody></mujoco>""",
}


def _load(name: str) -> ModuleType:
    """A file of the folder of all tests, as a module."""
    file = Path(__file__).parents[2] / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"urlab_test_{name}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


EDITOR_PAGE = _load("editor_page")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the server's project."""
    folder: Path = tmp_path_factory.mktemp("project")
    return folder


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory, project: Path) -> Iterator[URLabClient]:
    """The driver of a level that plays: a blue arm in the middle, a red brick left of it, on green ground."""
    folder = tmp_path_factory.mktemp("models")
    for name, text in MODELS.items():
        (folder / f"{name}.xml").write_text(text)
    targets = [f"{folder}/ground.xml", f"{folder}/arm.xml@0,0,0", f"{folder}/brick.xml@0,0.8,0.2"]
    with urlab.launch(targets, step_mode="live", web=True, web_port=0, project=project) as opened:
        opened.viewport.set_camera((-2.5, 0.0, 1.2), rotation_euler=(0, 20, 0), fov=70)
        yield opened


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A `Browser` of browser.py that draws WebGL."""
    module = _load("browser")
    program = module.find_browser()
    if program is None:
        pytest.skip("there is no Chromium here: apt-get install chromium, or name one in the variable CHROMIUM")
    size = f"--window-size={WINDOW[0]},{WINDOW[1]}"
    with module.Browser(program, tmp_path_factory.mktemp("browser"), *EDITOR_PAGE.FLAGS, size) as opened:
        yield opened


@pytest.fixture
def open_page(client: URLabClient, browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens an `EditorPage` in a tab of its own, of any size, on a system that is set to dark or light.

    All are closed with the test. ``url`` is that of another server; ``script`` runs before those of the page.
    """
    opened = []

    def start(
        size: tuple[int, int] | None = None, *, dark: bool = False, url: str | None = None, script: str = ""
    ) -> Any:
        tab = browser.open("about:blank")
        opened.append(tab)
        tab.ask("Page.addScriptToEvaluateOnNewDocument", source=script)
        if size is not None:
            tab.resize(*size)
        if dark:
            tab.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        tab.go_to(f"{url or client.viewport.editor_url()}&fixedDpr=0.5")  # coarse pictures: there is no GPU
        return EDITOR_PAGE.EditorPage(tab)

    yield start
    for tab in opened:
        tab.end()


@pytest.fixture
def page(open_page: Callable[..., Any]) -> Any:
    """One page."""
    return open_page()

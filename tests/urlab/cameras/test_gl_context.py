"""Finding a GL that needs no screen. Each case is a process of its own: GL is chosen once per process."""

import os
import subprocess
import sys
from typing import Any

import pytest

from urlab.cameras.gl_context import PACKAGES

_DRAW = """
import io, os, sys
import mujoco
from PIL import Image
from urlab.cameras import shared_gl
from urlab.overlay import Overlay
from urlab.viewport import Stage, Viewport

model = mujoco.MjModel.from_xml_string(
    "<mujoco><worldbody><geom size='1' rgba='1 0 0 1'/></worldbody></mujoco>"
)
data = mujoco.MjData(model)
viewport = Viewport(lambda: Stage(1, model, data.qpos, data.mocap_pos, data.mocap_quat), Overlay())
assert not any(name.split(".")[0] == "OpenGL" for name in sys.modules), "GL was imported early"
viewport.set_mode("unlit")
viewport.set_camera((-3, 0, 0), (1, 0, 0, 0))
picture = Image.open(io.BytesIO(viewport.screenshot(64, 48).png))
backend = next(name for name in ("egl", "osmesa") if f"mujoco.{name}" in sys.modules)
print(picture.getpixel((32, 24)), backend, shared_gl().gl_name() != "", os.environ.get("PYOPENGL_PLATFORM"))
"""
_REFUSED = """
import os
from urlab.cameras import GlThread
from urlab.errors import NoViewport

gl = GlThread()
for _ in range(2):
    try:
        gl.gl_name()
    except NoViewport as none:
        print(none.message)
    os.environ.pop("PYOPENGL_PLATFORM", None)
"""
_VARIABLES = ("MUJOCO_GL", "PYOPENGL_PLATFORM", "MUJOCO_EGL_DEVICE_ID")


def run(script: str, **variables: str) -> Any:
    environment = {name: value for name, value in os.environ.items() if name not in _VARIABLES}
    return subprocess.run(
        [sys.executable, "-c", script],
        env={**environment, **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_it_draws_with_no_setting_at_all_and_ends_without_a_word() -> None:
    done = run(_DRAW)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("(255, 0, 0) ")
    assert done.stdout.endswith(" True None\n")


def test_where_egl_has_no_device_osmesa_draws() -> None:
    done = run(_DRAW, MUJOCO_EGL_DEVICE_ID="99")
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "(255, 0, 0) osmesa True None\n")


def test_the_backend_that_the_user_names_is_the_only_one_that_is_tried() -> None:
    done = run(_REFUSED, MUJOCO_GL="egl", MUJOCO_EGL_DEVICE_ID="99")
    assert "egl: RuntimeError: The MUJOCO_EGL_DEVICE_ID" in done.stdout
    assert "osmesa:" not in done.stdout


def test_where_nothing_works_the_refusal_says_what_to_do_and_is_remembered() -> None:
    first, second = run(_REFUSED, PYOPENGL_PLATFORM="nonsense").stdout.splitlines()
    assert first == second
    assert "egl: ImportError" in first
    assert "osmesa: ImportError" in first
    assert "`urlab doctor`" in first
    assert all(package in first for package in PACKAGES)


@pytest.mark.parametrize("word", ["off", "0"])
def test_drawing_can_be_switched_off(word: str) -> None:
    assert f"MUJOCO_GL={word} switches drawing off" in run(_REFUSED, MUJOCO_GL=word).stdout


def test_a_word_that_needs_a_screen_chooses_nothing() -> None:
    script = "from urlab.cameras import GlThread; print(bool(GlThread().gl_name()))"
    assert run(script, MUJOCO_GL="glfw").stdout == "True\n"

"""The thread that talks to GL, and the context that it finds. Each choice of a GL is a process: it is made once."""

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from urlab.cameras import GlThread, shared_gl
from urlab.cameras.gl_thread import GL_PACKAGES
from urlab.errors import NoViewport, OpTimeout


@pytest.fixture
def gl() -> Iterator[GlThread]:
    """A GL thread of the test's own."""
    made = GlThread()
    try:
        made.gl_name()
    except NoViewport as none:
        pytest.skip(none.message)
    yield made
    made.close()


def test_all_work_is_done_on_one_daemon_thread(gl: GlThread) -> None:
    first, second = gl.run(threading.current_thread), gl.run(threading.current_thread)
    assert first is second
    assert first is not threading.current_thread()
    assert (first.name, first.daemon) == ("urlab-gl", True)


def test_a_context_is_current_there(gl: GlThread) -> None:
    def renderer() -> str:
        from OpenGL import GL

        return str(GL.glGetString(GL.GL_RENDERER).decode())

    assert gl.run(renderer) == gl.gl_name() != ""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a priority for each thread")
def test_the_driver_gives_way_to_physics_and_no_thread_of_python_does(gl: GlThread) -> None:
    of_python = threading.enumerate()
    assert gl.run(threading.current_thread) in of_python
    names, nice = dict[int, str](), dict[int, int]()
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that another test left may end now
            names[int(task.name)] = (task / "comm").read_text()
            nice[int(task.name)] = os.getpriority(os.PRIO_PROCESS, int(task.name))
    own = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    found = {nice[thread.native_id or 0] for thread in of_python if thread.is_alive()}
    assert found == {own}, "it would keep Python's lock"
    drawing = [nice[thread] for thread, name in names.items() if name.startswith("llvmpipe")]
    assert drawing
    assert all(one > own for one in drawing)


def test_work_that_fails_fails_for_the_thread_that_asked_and_no_other(gl: GlThread) -> None:
    with pytest.raises(ZeroDivisionError):
        gl.run(lambda: 1 // 0)
    assert gl.run(lambda: 7) == 7


def test_work_may_ask_for_more_work(gl: GlThread) -> None:
    assert gl.run(lambda: gl.run(lambda: 7)) == 7


def test_work_that_takes_too_long_is_left_alone_and_what_waited_behind_it_is_dropped(gl: GlThread) -> None:
    begun, done, behind = threading.Event(), threading.Event(), threading.Event()

    def hold() -> None:
        begun.set()
        done.wait()

    while not begun.is_set():  # on a busy machine the time may be up before the thread begins
        with pytest.raises(OpTimeout, match=r"within 0\.01 s"):
            gl.run(hold, timeout_s=0.01)
    with pytest.raises(OpTimeout):
        gl.run(behind.set, timeout_s=0.01)
    done.set()
    assert gl.run(lambda: 7) == 7
    assert not behind.is_set()


def test_an_error_of_the_work_that_is_itself_a_timeout_is_passed_on(gl: GlThread) -> None:
    def late() -> None:
        raise TimeoutError("mine")

    with pytest.raises(TimeoutError, match="mine"):
        gl.run(late)


class Resource:
    def __init__(self) -> None:
        self.freed_by: list[threading.Thread] = []

    def free(self) -> None:
        self.freed_by.append(threading.current_thread())


def test_closing_frees_what_was_adopted_on_that_thread_and_ends_it(gl: GlThread) -> None:
    resource, thread = Resource(), gl.run(threading.current_thread)
    gl.adopt(resource)
    gl.close()
    assert resource.freed_by == [thread]
    assert not thread.is_alive()
    with pytest.raises(NoViewport, match="the server is closing"):
        gl.run(lambda: 7)


def test_a_thread_that_was_never_used_closes_too() -> None:
    unused = GlThread()
    unused.close()
    with pytest.raises(NoViewport):
        unused.gl_name()


def test_all_views_of_a_process_share_one() -> None:
    assert shared_gl() is shared_gl()


def test_posted_work_is_not_waited_for_but_done_in_its_turn(gl: GlThread) -> None:
    held, done = threading.Event(), []
    posted = [gl.post(held.wait), gl.post(lambda: done.append(threading.current_thread().name))]
    assert not posted[1].done()
    held.set()
    posted[1].result(60)
    assert done == ["urlab-gl"]


_DRAW = """
import io, os, sys
import mujoco
from PIL import Image
from urlab.cameras import shared_gl
from urlab.overlay import Overlay
from urlab.viewport import PosedModel, Viewport

model = mujoco.MjModel.from_xml_string(
    "<mujoco><worldbody><geom size='1' rgba='1 0 0 1'/></worldbody></mujoco>"
)
data = mujoco.MjData(model)
viewport = Viewport(lambda: PosedModel(1, model, data.qpos, data.mocap_pos, data.mocap_quat), Overlay())
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
    assert all(package in first for package in GL_PACKAGES)


@pytest.mark.parametrize("word", ["off", "0"])
def test_drawing_can_be_switched_off(word: str) -> None:
    assert f"MUJOCO_GL={word} switches drawing off" in run(_REFUSED, MUJOCO_GL=word).stdout


def test_a_word_that_needs_a_screen_chooses_nothing() -> None:
    script = "from urlab.cameras import GlThread; print(bool(GlThread().gl_name()))"
    assert run(script, MUJOCO_GL="glfw").stdout == "True\n"

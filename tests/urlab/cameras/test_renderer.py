"""The renderer: one state, any thread, and what it leaves behind."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
import pytest

from urlab.cameras import GlThread, RenderRequest, SceneRenderer, shared_gl
from urlab.cameras.profile import is_software
from urlab.config import RenderProfile
from urlab.errors import NoViewport
from urlab_wire.enums import CameraMode

MakeScene = Callable[..., Any]

FALLING = """<light pos="0 0 4"/><geom type="plane" size="5 5 1"/>
<camera name="wide" pos="-3 0 1" xyaxes="0 -1 0 0 0 1"/>
<camera name="side" pos="0 -3 1" xyaxes="1 0 0 0 0 1"/>
<body name="ball" pos="0 0 1.5"><freejoint/><geom type="box" size=".2 .2 .2" rgba="1 0 0 1"/>
<camera name="rider" pos="0 0 .5" mode="fixed"/></body>"""


def test_a_frame_says_when_and_where_it_was_taken(scene_of: MakeScene) -> None:
    made = scene_of(FALLING)
    seen = made.move_on(50)
    frame = made.draw("real", camera=2, size=(64, 48))
    data = mujoco.MjData(made.scene.model)
    data.qpos[:] = seen.qpos
    mujoco.mj_forward(made.scene.model, data)
    assert (frame.name, frame.mode, frame.width, frame.height) == ("t_rider", "real", 64, 48)
    assert (frame.frame_id, frame.sim_time) == (seen.frame_id, seen.sim_time)
    assert frame.sim_time == pytest.approx(0.1)
    assert frame.pos_w == pytest.approx(data.cam_xpos[2])
    turn = np.empty(9)
    mujoco.mju_quat2Mat(turn, np.array(frame.quat_wxyz))
    assert turn == pytest.approx(data.cam_xmat[2])


def test_metadata_is_plain_data(scene_of: MakeScene) -> None:
    frame = scene_of(FALLING).draw("depth", size=(64, 48))
    focal = 24 / np.tan(np.radians(45) / 2)
    assert frame.metadata() == {
        "width": 64,
        "height": 48,
        "dtype": "float32",
        "mode": "depth",
        "frame_id": 0,
        "sim_time": 0.0,
        "K": pytest.approx([focal, 0, 32, 0, focal, 24, 0, 0, 1]),
        "pos": [-3.0, 0.0, 1.0],
        "quat": pytest.approx([0.5, 0.5, -0.5, -0.5]),
    }
    assert {type(value) for value in frame.metadata().values()} == {int, float, str, list}


def test_a_frame_has_the_cameras_own_resolution_unless_another_is_asked_for(scene_of: MakeScene) -> None:
    made = scene_of('<camera name="eye" resolution="40 30"/><geom size=".1"/>')
    assert [(frame.width, len(frame.data)) for frame in (made.draw("real", size=None), made.draw("real"))] == [
        (40, 4 * 40 * 30),
        (160, 4 * 160 * 120),
    ]


def test_several_cameras_in_one_call_see_one_state_while_physics_goes_on(scene_of: MakeScene, images: Any) -> None:
    made = scene_of(FALLING)
    seen = made.move_on(100)
    made.move_on(100)
    shots = [RenderRequest(camera, CameraMode.DEPTH, images.size) for camera in made.cameras]
    frames = made.renderer.render(shots, seen)
    assert {(frame.frame_id, frame.sim_time) for frame in frames} == {(seen.frame_id, seen.sim_time)}
    for frame, front in zip(frames[:2], [(-0.2, 0.0), (0.0, -0.2)], strict=True):
        rows = np.flatnonzero(np.abs(images.metres(frame)[:, 80] - 2.8) < 1e-4)
        edges = [images.project(frame, (*front, seen.qpos[2] + half))[1] for half in (0.2, -0.2)]
        assert [rows[0], rows[-1] + 1] == [round(edge) for edge in edges]


@pytest.mark.parametrize("mode", CameraMode)
def test_the_same_trajectory_gives_the_same_bytes(scene_of: MakeScene, mode: CameraMode) -> None:
    def trajectory_frames() -> list[bytes]:
        made, frames = scene_of(FALLING), []
        for _ in range(3):
            made.move_on(70)
            frames += [bytes(made.draw(mode, camera).data) for camera in (0, 1)]
        return frames

    first = trajectory_frames()
    assert first == trajectory_frames()
    assert len(set(first)) >= 3


def test_a_picture_leaves_the_simulation_alone(scene_of: MakeScene) -> None:
    made, plain = scene_of(FALLING), scene_of(FALLING)
    for _ in range(20):
        made.move_on(10)
        made.draw("real", size=(16, 12))
        plain.move_on(10)
    assert made.snapshot.qpos.tobytes() == plain.snapshot.qpos.tobytes()
    assert made.snapshot.qvel.tobytes() == plain.snapshot.qvel.tobytes()


def test_any_thread_may_ask_and_each_gets_its_own_picture(scene_of: MakeScene) -> None:
    made = scene_of(FALLING)
    states = [made.move_on(60) for _ in range(4)]
    shot = RenderRequest(made.cameras[0], CameraMode.DEPTH, (32, 24))
    expected = [bytes(made.renderer.render([shot], state)[0].data) for state in states]
    got: dict[int, set[bytes]] = {}

    def ask(number: int) -> None:
        got[number] = {bytes(made.renderer.render([shot], states[number])[0].data) for _ in range(10)}

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == {number: {data} for number, data in enumerate(expected)}


def test_mocap_bodies_are_where_they_were_put(scene_of: MakeScene, images: Any) -> None:
    world = (
        f'<camera name="eye" {images.along_x}/><body name="m" mocap="true"><geom type="box" size=".1 .3 .3"/></body>'
    )
    made = scene_of(world)
    with made.engine.locked():
        made.engine.data.mocap_pos[0] = (2, 0, 0)
        made.engine.publish()
    assert images.metres(made.draw("depth"))[60, 80] == pytest.approx(1.9, abs=1e-5)


def test_a_size_that_gl_does_not_have_is_refused_and_the_next_picture_works(scene_of: MakeScene) -> None:
    made = scene_of(FALLING)
    first = made.draw("real")
    with pytest.raises(NoViewport, match="cannot be drawn at 100000x10"):
        made.draw("real", size=(100_000, 10))
    assert made.draw("real").data == first.data


@pytest.mark.parametrize("mode", CameraMode)
def test_a_picture_stays_what_it_is_while_others_are_taken(scene_of: MakeScene, mode: CameraMode) -> None:
    made = scene_of(FALLING)
    frames = [made.draw(mode)]
    before = bytes(frames[0].data)
    for _ in range(5):
        made.move_on(70)
        frames.append(made.draw(mode))
    assert frames[0].data == before != frames[-1].data
    assert len({np.frombuffer(frame.data, np.uint8).ctypes.data for frame in frames}) == len(frames)
    assert frames[0].data.readonly


@pytest.mark.parametrize("profile", [RenderProfile.FAST, RenderProfile.QUALITY])
def test_a_picture_does_not_depend_on_those_before_it(scene_of: MakeScene, profile: RenderProfile) -> None:
    made = scene_of(FALLING, profile=profile)
    first = made.draw("real", size=(60, 40))
    for mode, size in (("depth", (60, 40)), ("instance", (90, 20)), ("real", (30, 90)), ("semantic", (8, 8))):
        made.draw(mode, size=size)
    assert made.draw("real", size=(60, 40)).data == first.data


def test_auto_is_what_fits_the_gl_that_draws(scene_of: MakeScene) -> None:
    made = scene_of(FALLING, profile=RenderProfile.AUTO)
    assert made.renderer.gl_name == shared_gl().gl_name()
    expected = RenderProfile.FAST if is_software(shared_gl().gl_name()) else RenderProfile.QUALITY
    assert made.renderer.profile is expected


def test_nothing_is_drawn_after_close_and_closing_twice_is_fine(scene_of: MakeScene) -> None:
    made = scene_of(FALLING)
    made.draw("real")
    assert made.renderer.is_in_use
    for _ in range(2):
        made.renderer.close()
    assert not made.renderer.is_in_use
    with pytest.raises(NoViewport, match="not drawn any more"):
        made.draw("real")


def test_a_renderer_that_was_never_asked_needs_no_gl(scene_of: MakeScene) -> None:
    gl, scene = GlThread(), scene_of(FALLING).scene
    unused = SceneRenderer(scene, RenderProfile.FAST, gl)
    assert unused.render([], scene_of(FALLING).snapshot) == []
    unused.close()
    assert not any(thread.name == "urlab-gl" for thread in threading.enumerate() if thread is gl._thread)


def test_closing_the_gl_thread_frees_what_was_left_open(scene_of: MakeScene) -> None:
    gl, made = GlThread(), scene_of(FALLING)
    left = SceneRenderer(made.scene, RenderProfile.FAST, gl)
    left.render([RenderRequest(made.cameras[0], CameraMode.REAL, (16, 12))], made.snapshot)
    gl.close()
    assert not left.is_in_use
    left.close()


def memory_mb() -> float:
    with open("/proc/self/statm") as file:  # noqa: PTH123 - the shortest way
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def gl_objects() -> tuple[int, int, int]:
    """How many framebuffers, textures and display lists there are."""

    def count() -> tuple[int, int, int]:
        from OpenGL import GL

        asks = (GL.glIsFramebuffer, GL.glIsTexture, GL.glIsList)
        framebuffers, textures, lists = (sum(bool(exists(name)) for name in range(1, 5000)) for exists in asks)
        return framebuffers, textures, lists

    return shared_gl().run(count)


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_fifty_scenes_in_a_row_leave_no_memory_behind(scene_of: MakeScene) -> None:
    made = scene_of(FALLING)

    def visit() -> None:
        renderer = SceneRenderer(made.scene, RenderProfile.FAST)
        renderer.render([RenderRequest(made.cameras[0], CameraMode.REAL, (640, 480))], made.snapshot)
        renderer.close()

    for _ in range(5):
        visit()
    before, objects = memory_mb(), gl_objects()
    for _ in range(50):
        visit()
    assert gl_objects() == objects
    assert memory_mb() - before < 20


_WITHOUT_GL = """
import logging, sys, threading
from urlab.cameras import Capture, SceneRenderer, RenderRequest
from urlab.compile import compile_scene
from urlab.compile.library import Library
from urlab.config import RenderProfile
from urlab.errors import NoViewport
from urlab.physics.engine import Engine
from urlab.scene.level import Actor
from urlab.scene.blueprint_record import file_record
from urlab.scene.level import Level

scene = compile_scene(Level("level", (Actor("t", sys.argv[1]),)), Library(file_record))
engine = Engine(scene.model)
renderer = SceneRenderer(scene, RenderProfile.AUTO)
capture = Capture(scene, lambda: engine.snapshot, RenderProfile.AUTO)
capture.start()
shot = RenderRequest(scene.global_cameras[0], "real")
logged = threading.Event()
logging.getLogger("urlab.cameras").addFilter(lambda record: logged.set() or True)
asks = (
    lambda: renderer.render([shot], engine.snapshot),
    lambda: renderer.profile,
    lambda: capture.sync(["t_eye"], engine.snapshot),
    lambda: capture.latest(["t_eye"], engine.snapshot),
    lambda: capture.latest(["t_eye"], engine.snapshot),
)
for ask in asks:
    try:
        print(ask())
    except NoViewport as none:
        print(none.message)
logged.wait()  # a trouble is answered before it is logged, and not logged any more while it closes
capture.close()
renderer.close()
"""


def test_without_gl_every_request_says_why_and_nothing_hangs(tmp_path: Any) -> None:
    path = tmp_path / "t.xml"
    path.write_text("<mujoco><worldbody><camera name='eye'/></worldbody></mujoco>")
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_GL, str(path)],
        env={**os.environ, "MUJOCO_GL": "off"},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 5
    assert all("MUJOCO_GL=off switches drawing off" in line for line in lines)
    assert done.stderr.count("MUJOCO_GL=off") == 1, "the trouble is logged once"

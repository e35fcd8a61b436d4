"""`urlab watch`, against servers in processes of their own."""

import contextlib
import fcntl
import io
import json
import os
import pty
import re
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from urlab.child_process import ServerProcess
from urlab.cli.console import FAILED, WRONG_USE, CommandError
from urlab.cli.watch.camera import CaptureOptions, brightness, check, depth_range_m, find_camera, report_camera
from urlab.cli.watch.clips import INSTALL, SizeChangedError, Spool, check_ffmpeg, save, write_gif, write_mp4, write_png
from urlab.cli.watch.display import beats, report
from urlab.cli.watch.rates import Pace, Rate, RateWindow, Tally
from urlab.cli.watch.scene import SceneMonitor, show_scene
from urlab.cli.watch.server import WatchedAddress, WatchedServer, watched
from urlab.video import ffmpeg
from urlab_client import CameraFrame, CameraMode, URLabClient

SWING = """<mujoco model="swing">
  <worldbody>
    <light pos="0 -2 3"/>
    <camera name="room" pos="0 -2 1" xyaxes="1 0 0 0 0 1" fovy="60" resolution="65 49"/>
    <camera name="map" pos="0 -2 1" xyaxes="1 0 0 0 0 1" fovy="60" resolution="64 48"/>
    <camera name="deep" pos="3 -2 1" xyaxes="1 0 0 0 0 1" fovy="20" resolution="64 48"/>
    <geom name="wall" type="box" pos="0 1.5 1" size="5 .5 5" rgba=".2 .6 .2 1"/>
    <body pos="0 0 1.5"><joint name="hinge" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 .6 0 -.6" size=".1" rgba=".9 .1 .1 1"/></body>
  </worldbody>
  <actuator><motor name="motor" joint="hinge"/></actuator>
  <sensor><jointpos name="angle" joint="hinge"/></sensor>
</mujoco>"""
SWING_SIDECAR = '[cameras.deep]\nmode = "depth"\n[cameras.map]\nmode = "semantic"\n'
POST = """<mujoco model="post">
  <worldbody><body pos="-20 0 0"><joint name="turn"/><geom size=".1"/><camera name="deep" resolution="8 8"/></body>
  </worldbody>
  <actuator><motor name="motor" joint="turn"/></actuator>
</mujoco>"""
WALL_MM = 3000
ROW_BYTES = len("swing/joint/hinge") + 16
LONG_S = "60"
LIMIT_S = 60.0


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("models")
    (folder / "swing.xml").write_text(SWING)
    (folder / "swing.urlab.toml").write_text(SWING_SIDECAR)
    (folder / "post.xml").write_text(POST)
    return [str(folder / "swing.xml"), str(folder / "post.xml"), "--project", str(folder / "project")]


@pytest.fixture(scope="module")
def server(models: list[str]) -> Iterator[ServerProcess]:
    with ServerProcess(*models) as started:
        yield started


@pytest.fixture(scope="module")
def port(server: ServerProcess) -> str:
    return port_of(server)


@pytest.fixture
def observed(port: str) -> Iterator[WatchedServer]:
    """The server as the command sees it."""
    with observing(port) as server:
        yield server


@pytest.fixture
def watching() -> Iterator[Any]:
    """Starts a watch that goes on; what is left over is killed."""
    with contextlib.ExitStack() as started:

        def start(*arguments: str, **options: Any) -> "subprocess.Popen[str]":
            command = [sys.executable, "-m", "urlab", "watch", "--timeout", "30", *arguments]
            pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
            process = started.enter_context(subprocess.Popen(command, **pipes))
            started.callback(process.kill)
            return process

        yield start


def port_of(server: ServerProcess) -> str:
    return str(server.endpoints["step"]).rpartition(":")[2]


def observing(port: str) -> contextlib.AbstractContextManager[WatchedServer]:
    return watched(WatchedAddress("tcp://127.0.0.1", int(port), None, LIMIT_S), pytest.fail)


def client_of(port: str, **options: Any) -> URLabClient:
    return URLabClient("tcp://127.0.0.1", step_port=int(port), camera_streams=False, **options)


def read_until(stream: Any, words: str) -> str:
    """What a process says, up to a line that has these words."""
    said = ""
    for line in stream:
        said += line
        if words in line:
            return said
    pytest.fail(f"it ended without saying {words!r}: {said}")


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# -- the scene ----------------------------------------------------------------------------------------------------


def test_json_tells_the_rates_the_states_and_the_cameras(
    cli: Any, server: ServerProcess, port: str, observed: WatchedServer
) -> None:
    with SceneMonitor(observed, None, with_cameras=True, span_s=None) as monitor:
        monitor.settle(LIMIT_S)  # the first pictures of a server may take long
        done = cli("watch", "--step-port", port, "--timeout", "30", "--json", "--seconds", "2")
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert (told["endpoint"], told["state_endpoint"]) == (server.endpoints["step"], server.endpoints["state"])
    assert (told["state"], told["mode"], told["problem"], told["interruptions"]) == ("ready", "live", None, 0)
    assert told["seconds"] >= 2
    assert 0 < told["real_time_factor"] < 1.1
    assert 0 < told["topics"]["state/full"]["rate_hz"] < 600
    row = told["topics"]["swing/joint/hinge"]
    assert 0 < row["rate_hz"] < 600
    assert row["bytes_per_s"] == pytest.approx(ROW_BYTES * row["rate_hz"], rel=0.01)
    assert list(told["robots"]) == ["swing", "post"]
    hinge = told["robots"]["swing"]["joints"]["hinge"]
    assert told["robots"]["swing"]["sensors"]["angle"] == pytest.approx([hinge["pos"]], abs=0.1)
    assert told["robots"]["post"]["joints"]["turn"]["vel"] == pytest.approx(0.0, abs=1e-6)
    assert {name: (one["mode"], one["resolution"]) for name, one in told["cameras"].items()} == {
        "swing/room": ("real", [65, 49]),
        "swing/map": ("semantic", [64, 48]),
        "swing/deep": ("depth", [64, 48]),
        "post/deep": ("real", [8, 8]),
    }
    room = told["cameras"]["swing/room"]
    assert 0 < room["rate_hz"] < 60
    assert room["bytes_per_s"] == pytest.approx(4 * 65 * 49 * room["rate_hz"], rel=0.02)


def test_one_robot_alone_brings_only_what_is_its_own(observed: WatchedServer) -> None:
    with SceneMonitor(observed, "post", with_cameras=False, span_s=None) as monitor:
        monitor.settle(LIMIT_S)
        for _ in beats(0.3):
            told = report(monitor.sample())
        give_up_s = time.monotonic() + LIMIT_S
        while not (told["robots"] and len(told["topics"]) >= 3) and time.monotonic() < give_up_s:
            told = report(monitor.sample())
    assert set(told["topics"]) == {"state/full", "post/joint/turn", "post/twist"}
    assert (list(told["robots"]), told["cameras"]) == (["post"], {})


@pytest.mark.usefixtures("cold_start")
def test_without_a_terminal_there_are_plain_snapshots(cli: Any, port: str) -> None:
    done = cli("watch", "--step-port", port, "--timeout", "30", "--seconds", "3.2", "--robot", "swing")
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert done.stdout.count(" x real time") in (1, 2, 3, 4)
    assert re.search(r"^swing/joint/\* +1 +\d+\.\d", done.stdout, re.MULTILINE)
    assert re.search(r"^hinge +-?\d+\.\d{3} +-?\d+\.\d{3}", done.stdout, re.MULTILINE)
    assert re.search(r"swing/room +real +65x49 +\d", done.stdout)
    assert "post" not in done.stdout


def test_ctrl_c_ends_the_table_on_a_terminal_with_code_0(watching: Any, port: str) -> None:
    with terminal() as (ours, theirs):
        process = watching("--step-port", port, stdout=theirs, stderr=theirs)
        os.close(theirs)
        screen = seen_on(ours, " x real time")
        process.send_signal(signal.SIGINT)
        screen += seen_on(ours)
        assert process.wait(LIMIT_S) == 0
    assert b"\x1b[" in screen
    assert b"Traceback" not in screen
    assert b"hinge" in screen


def test_keys_on_a_terminal_pause_the_server_and_let_it_go_on(watching: Any, models: list[str]) -> None:
    with ServerProcess(*models) as server, terminal() as (ours, theirs):
        port = port_of(server)
        process = watching("--step-port", port, "--no-cameras", "--keys", stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        seen_on(ours, "? lists them")
        os.write(ours, b"?")
        assert b"one step" in seen_on(ours, "turn right")
        os.write(ours, b" ")
        seen_on(ours, "live, paused")
        os.write(ours, b" ")
        seen_on(ours, "goes on")
        process.send_signal(signal.SIGINT)
        seen_on(ours)
        assert process.wait(LIMIT_S) == 0


def test_keys_need_a_terminal_and_a_table(cli: Any, port: str) -> None:
    for options, reason in (((), "there is none"), (("--json",), "leave out --json")):
        done = cli("watch", "--step-port", port, "--timeout", "30", "--keys", *options)
        assert done.returncode == 2
        assert reason in done.stderr


def test_when_a_server_goes_a_table_waits_for_it_and_a_clip_ends(
    watching: Any, models: list[str], tmp_path: Path, lasting_port: Any
) -> None:
    port = str(lasting_port())
    with terminal() as (ours, theirs):
        with ServerProcess(*models, "--step-port", port):
            table = watching("--step-port", port, "--no-cameras", "--seconds", LONG_S)
            options = ("--camera", "room", "--out", str(tmp_path / "room.mp4"), "--seconds", LONG_S)
            clip = watching("--step-port", port, *options, stderr=theirs)
            os.close(theirs)
            read_until(table.stdout, " x real time")
            seen_receiving(ours)
        complaints = seen_on(ours)
    said, _ = clip.communicate(timeout=LIMIT_S)
    assert (clip.returncode, said, files_in(tmp_path)) == (1, "", [])
    assert b"does not answer any more: nothing was written" in complaints
    said = read_until(table.stderr, "Waiting for it to come back")
    assert "start one (`urlab serve`)" in said or "the server is stopping" in said  # it may be asked while it ends
    read_until(table.stdout, f"tcp://127.0.0.1:{port} does not answer")
    with ServerProcess(*models, "--step-port", port):
        read_until(table.stderr, f"tcp://127.0.0.1:{port} is back")
        read_until(table.stdout, " x real time")
        table.send_signal(signal.SIGTERM)
        assert table.wait(LIMIT_S) == 0


def test_a_wrong_state_port_is_noticed(port: str) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        silent = held.getsockname()[1]
        with watched(WatchedAddress("tcp://127.0.0.1", int(port), silent, LIMIT_S), pytest.fail) as server:
            with SceneMonitor(server, None, with_cameras=False, span_s=None) as monitor:
                monitor.settle(1.1)
                told = monitor.sample()
    assert (told.topics, told.real_time_factor) == ({}, None)
    assert f"nothing comes from tcp://127.0.0.1:{silent}" in str(told.problem)


def test_while_nothing_plays_it_says_so(models: list[str], tmp_path: Path) -> None:
    with ServerProcess(*models, "--no-play") as idle, observing(port_of(idle)) as server:
        with SceneMonitor(server, "swing", with_cameras=True, span_s=None) as monitor:
            told = report(monitor.sample())
        with pytest.raises(CommandError, match=r"plays nothing \(off\): there are no cameras") as refused:
            save(server, CaptureOptions("room", tmp_path / "room.png"), tmp_path / "room.png")
    assert (told["state"], told["problem"]) == ("off", "nothing plays (off)")
    assert (told["robots"], told["cameras"]) == ({}, {})
    assert (refused.value.code, files_in(tmp_path)) == (FAILED, [])


# -- cameras ------------------------------------------------------------------------------------------------------


def test_a_picture_has_the_size_of_the_camera_and_shows_something(cli: Any, port: str, tmp_path: Path) -> None:
    out = tmp_path / "new" / "room.PNG"
    done = cli("watch", "--step-port", port, "--timeout", "30", "--camera", "room", "--out", str(out))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"wrote {out}: swing/room (real, 65x49)\n"
    with Image.open(out) as picture:
        assert (picture.format, picture.mode, picture.size) == ("PNG", "RGB", (65, 49))
        red, green, _ = np.array(picture).reshape(-1, 3).T.astype(int)
    assert (green > red + 20).any()
    assert (red > green + 20).any()
    assert files_in(out.parent) == ["room.PNG"]


def test_depth_is_millimetres_in_16_bits_also_in_direct_mode(
    observed: WatchedServer, port: str, tmp_path: Path
) -> None:
    out = tmp_path / "deep.png"
    with client_of(port, step_mode="direct") as driver:
        driver.discover()
        _, sentence = save(observed, CaptureOptions("swing/deep", out), out)
        driver.step()
        assert driver.sim.status().mode == "direct"
    assert "swing/deep (depth, 64x48); 16 bit, millimetres" in sentence
    with Image.open(out) as picture:
        depth = np.array(picture)
    assert (depth.dtype, depth.shape) == (np.uint16, (48, 64))
    assert np.abs(depth.astype(int) - WALL_MM).max() <= 1


def test_segmentation_has_exactly_the_colours_of_the_table_also_while_paused(
    observed: WatchedServer, port: str, tmp_path: Path
) -> None:
    out = tmp_path / "map.png"
    with client_of(port) as driver:
        driver.discover()
        driver.runtime.set_paused(True)
        facts, _ = save(observed, CaptureOptions("map", out), out)
        driver.runtime.set_paused(False)
        table = {segment.color for segment in driver.segmentation["semantic"]}
    assert (facts["camera"], facts["mode"], facts["file"]) == ("swing/map", "semantic", str(out))
    with Image.open(out) as picture:
        colours = {tuple(colour) for colour in np.array(picture).reshape(-1, 3).tolist()}
    assert len(colours) >= 2
    assert colours <= table | {(0, 0, 0)}


@pytest.mark.usefixtures("cold_start")
def test_an_mp4_has_the_frames_that_were_asked_for(cli: Any, port: str, tmp_path: Path) -> None:
    out = tmp_path / "room.mp4"
    options = ("--camera", "room", "--out", str(out), "--frames", "12", "--fps", "4", "--json")
    done = cli("watch", "--step-port", port, "--timeout", "30", *options)
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert (told["frames"], told["fps"], told["seconds"], told["white_m"]) == (12, 4, 3.0, None)
    assert 1 < told["pictures"] <= 12
    size, pictures = read_mp4(out)
    assert (size, len(pictures)) == ((66, 50), 12)
    assert any((one != pictures[0]).any() for one in pictures)
    assert files_in(tmp_path) == ["room.mp4"]


def test_a_gif_lasts_as_long_as_was_asked_for(observed: WatchedServer, tmp_path: Path) -> None:
    out = tmp_path / "room.gif"
    _, sentence = save(observed, CaptureOptions("room", out, seconds=3, fps=2), out)
    assert "6 frames, 3.0 s at 2 fps" in sentence
    durations_ms, size = read_gif(out)
    assert (sum(durations_ms), size) == (3000, (65, 49))
    assert 1 < len(durations_ms) <= 6


def test_a_terminal_shows_progress_while_receiving_and_while_writing(watching: Any, port: str, tmp_path: Path) -> None:
    with terminal() as (ours, theirs):
        options = ("--camera", "room", "--out", str(tmp_path / "room.gif"), "--frames", "5")
        process = watching("--step-port", port, *options, stderr=theirs)
        os.close(theirs)
        screen = seen_on(ours)
        assert process.wait(LIMIT_S) == 0
    assert b"receiving swing/room" in screen
    assert b"writing .gif" in screen
    assert screen.count(b"5/5") >= 2


def test_ctrl_c_ends_a_clip_and_keeps_what_there_is(watching: Any, port: str, tmp_path: Path) -> None:
    out = tmp_path / "room.gif"
    with terminal() as (ours, theirs):
        options = ("--camera", "room", "--out", str(out), "--seconds", LONG_S)
        process = watching("--step-port", port, *options, stderr=theirs)
        os.close(theirs)
        screen = seen_receiving(ours)
        process.send_signal(signal.SIGINT)
        screen += seen_on(ours)
    said, _ = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0
    shown = set(re.findall(r"[a-zA-Z]+", re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", screen.decode())))
    assert shown == {"receiving", "swing", "room", "writing", "gif"}, "nothing but the progress"
    frames = int(re.findall(r"(\d+) frames", said)[0])
    assert 1 <= frames < 600
    assert sum(read_gif(out)[0]) == 100 * frames


def test_a_camera_is_told_in_numbers(cli: Any, port: str) -> None:
    done = cli(
        "watch", "--step-port", port, "--timeout", "30", "--camera", "deep", "--robot", "swing", "--seconds", "0.3"
    )
    line = r"swing/deep \(depth, 64x48\)   [\d.]+ frames/s, .* received   simulated [\d.]+ s   depth 3\.000 to 3\.000 m"
    assert (done.returncode, done.stderr) == (0, "")
    told = done.stdout.splitlines()  # one line, and one more for each second that the first picture took
    assert told
    assert [one for one in told if not re.fullmatch(line, one.strip())] == []


def test_a_camera_is_told_as_json(observed: WatchedServer, capsys: pytest.CaptureFixture[str]) -> None:
    report_camera(observed, CaptureOptions("map", frames=3))
    told = json.loads(capsys.readouterr().out)
    assert (told["camera"], told["mode"], told["resolution"], told["unusable"]) == (
        "swing/map",
        "semantic",
        [64, 48],
        0,
    )
    assert told["frames"] >= 3
    assert told["shows"]["swing"] > 0.01
    assert sum(told["shows"].values()) == pytest.approx(1.0, abs=0.001)


# -- refusals -----------------------------------------------------------------------------------------------------


def test_nobody_there_is_exit_code_1_with_advice(cli: Any) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        done = cli("watch", "--step-port", str(held.getsockname()[1]), "--timeout", "0.1", "--json")
    assert (done.returncode, done.stdout) == (1, "")
    assert "is `urlab serve` running" in done.stderr


def test_what_cannot_work_is_exit_code_2_and_says_what_would(cli: Any, port: str) -> None:
    done = cli("watch", "--step-port", port, "--timeout", "30", "--out", "room.png")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--out is for cameras: say which with --camera NAME" in done.stderr


def test_a_robot_that_is_not_there_is_answered_with_those_there_are(observed: WatchedServer) -> None:
    with pytest.raises(CommandError, match="there is no robot 'dog'; there are: swing, post") as refused:
        show_scene(observed, "dog", with_cameras=True, seconds=None)
    assert refused.value.code == WRONG_USE


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("nose", "there is no camera 'nose'; there are: swing/room, swing/map, swing/deep, post/deep"),
        ("deep", "several cameras are called 'deep': swing/deep, post/deep"),
    ],
)
def test_a_camera_that_is_not_there_or_not_the_only_one_is_answered_with_those_there_are(
    observed: WatchedServer, name: str, advice: str
) -> None:
    with pytest.raises(CommandError, match=re.escape(advice)) as refused:
        find_camera(observed, name)
    assert refused.value.code == WRONG_USE
    assert find_camera(observed, "room") is find_camera(observed, "swing/room")


@pytest.mark.parametrize(
    ("order", "advice"),
    [
        (CaptureOptions("room", Path("room.avi")), r"end it in \.png \(one picture\), \.mp4 or \.gif \(a clip\)"),
        (CaptureOptions("room", seconds=1, frames=1), "--seconds and --frames both say when to end"),
        (CaptureOptions("room", fps=5), r"--fps is for clips: .* ends in \.mp4 or \.gif"),
        (CaptureOptions("room", Path("a.png"), frames=2), r"a \.png file holds one picture"),
        (CaptureOptions("room", Path("a.gif"), fps=60), r"--fps 60 is too fast for a \.gif file: at most 50"),
    ],
)
def test_orders_that_contradict_themselves_are_refused_before_anybody_is_asked(
    order: CaptureOptions, advice: str
) -> None:
    with pytest.raises(CommandError, match=advice) as refused:
        check(order)
    assert refused.value.code == WRONG_USE


def test_without_the_extra_an_mp4_is_answered_with_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(CommandError, match="needs imageio_ffmpeg, which is not installed") as refused:
        check_ffmpeg()
    assert str(refused.value).endswith(INSTALL)
    assert INSTALL == "pip install 'urlab-headless[video]'"


def test_an_encoder_that_fails_leaves_the_file_as_it_was(cli: Any, port: str, tmp_path: Path) -> None:
    broken, out = tmp_path / "ffmpeg", tmp_path / "room.mp4"
    broken.write_text("#!/bin/sh\necho the lens is dirty >&2\nexit 1\n")
    broken.chmod(0o755)
    out.write_text("old")
    environment = {**os.environ, "IMAGEIO_FFMPEG_EXE": str(broken)}
    options = ("--camera", "room", "--out", str(out), "--frames", "2")
    done = cli("watch", "--step-port", port, "--timeout", "30", *options, env=environment)
    assert done.returncode == 2
    assert "room.mp4: ffmpeg: the lens is dirty" in done.stderr
    assert (out.read_text(), files_in(tmp_path)) == ("old", ["ffmpeg", "room.mp4"])


# -- parts --------------------------------------------------------------------------------------------------------


def test_rates_are_those_of_the_window() -> None:
    recent, whole = RateWindow(2.0), RateWindow(None)
    for second in range(11):
        tallies = {"a": Tally(10 * max(0, second - 5), 100 * max(0, second - 5))}
        recent.add(float(second), tallies)
        whole.add(float(second), tallies)
    assert (recent.seconds, recent.rates()) == (2.0, {"a": Rate(10.0, 100.0)})
    assert (whole.seconds, whole.rates()) == (10.0, {"a": Rate(5.0, 50.0)})


def test_a_reset_does_not_spoil_the_real_time_factor() -> None:
    pace = Pace(None)
    for sim_s, wall_s in [(4.0, 100.0), (4.5, 101.0), (0.0, 102.0), (0.5, 103.0), (0.5, 103.0)]:
        pace.add(sim_s, wall_s)
    assert pace.factor() == pytest.approx(0.5)


def test_depth_beyond_16_bits_is_the_farthest_in_a_picture_and_nothing_is_0(tmp_path: Path) -> None:
    metres = np.array([[0.5, 1.0004, 70.0, np.inf]], dtype=np.float32)
    frame = CameraFrame(metres, CameraMode.DEPTH)
    with (tmp_path / "depth.png").open("wb") as file:
        write_png(frame, file)
    with Image.open(tmp_path / "depth.png") as picture:
        assert np.asarray(picture).tolist() == [[500, 1000, 65535, 0]]
    assert depth_range_m(frame) == pytest.approx((0.5, 70.0))


def test_brightness_is_that_of_the_eye() -> None:
    rgba = np.array([[[255, 255, 255, 255], [0, 0, 0, 255]]], dtype=np.uint8)
    assert brightness(CameraFrame(rgba, CameraMode.REAL)) == pytest.approx(0.5, abs=1e-3)
    green, blue = (CameraFrame(rgba * np.uint8(only), CameraMode.REAL) for only in ([0, 1, 0, 1], [0, 0, 1, 1]))
    assert brightness(green) > 5 * brightness(blue) > 0


def test_clips_show_the_frames_in_their_order(tmp_path: Path) -> None:
    greys = [40, 200, 200, 90]
    with Spool(tmp_path) as spool:
        for before, grey in zip([None, *greys], greys, strict=False):
            if grey == before:
                spool.repeat()
            else:
                spool.add(np.full((32, 48, 3), grey, np.uint8))
        written: list[int] = []
        with (tmp_path / "grey.mp4").open("wb") as file:
            write_mp4(spool, 10.0, file, lambda: written.append(1))
        animation = io.BytesIO()
        write_gif(spool, 30.0, animation, lambda: written.append(1))
        with pytest.raises(SizeChangedError):
            spool.add(np.zeros((8, 8, 3), np.uint8))
        assert (len(spool), spool.pictures, spool.size, len(written)) == (4, 3, (48, 32), 8)
    size, pictures = read_mp4(tmp_path / "grey.mp4")
    assert size == (48, 32)
    assert [one.mean() for one in pictures] == pytest.approx(greys, abs=3)
    assert read_gif(animation) == ([30, 70, 30], (48, 32))
    assert files_in(tmp_path) == ["grey.mp4"]


def read_mp4(path: Path) -> tuple[tuple[int, int], list[Any]]:
    """Size, and the pictures (H, W, 3)."""
    command = [ffmpeg(), "-v", "error", "-i", str(path), "-f", "image2pipe", "-c:v", "ppm", "-"]
    stream = io.BytesIO(subprocess.run(command, capture_output=True, check=True).stdout)
    pictures = []
    while header := stream.readline():
        assert header == b"P6\n"
        width, height = map(int, stream.readline().split())
        assert stream.readline() == b"255\n"
        pictures.append(np.frombuffer(stream.read(3 * width * height), np.uint8).reshape(height, width, 3))
    return (width, height), pictures


def read_gif(source: Any) -> tuple[list[int], tuple[int, int]]:
    """How many milliseconds each frame is shown, and the size."""
    with Image.open(source) as animation:
        durations_ms = []
        for frame in range(animation.n_frames):
            animation.seek(frame)
            durations_ms.append(int(animation.info["duration"]))
        return durations_ms, animation.size


@contextlib.contextmanager
def terminal() -> Iterator[tuple[int, int]]:
    """Both ends of a terminal; the test closes the other end when a process has it."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    yield ours, theirs
    os.close(ours)


def seen_receiving(screen: int) -> bytes:
    """What appears on a terminal until a clip has its first frame."""
    seen = b""
    while not re.search(rb"[1-9]\d*/\d", seen):
        seen += os.read(screen, 65536)
    return seen


def seen_on(screen: int, words: str | None = None) -> bytes:
    """What appears on a terminal, up to some words or until nobody writes to it any more."""
    seen = b""
    with contextlib.suppress(OSError):
        while words is None or words.encode() not in seen:
            seen += os.read(screen, 65536)
    return seen

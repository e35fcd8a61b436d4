"""Saved recordings: what there is, and films of them."""

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from urlab.video import ffmpeg

PATIENCE_S = 60.0
WIDTH, HEIGHT = 64, 48


@pytest.fixture
def slider(builder: Any) -> Any:
    """A red ball that has slid from right to left in two seconds, recorded as slide.json; it plays no more."""
    builder.spawn("slider", builder.slider_file)
    builder.play()
    builder.wire.ok("set_qpos", target="slider", qpos=[-0.4], qvel=[0.4])
    builder.wire.ok("recording_start", name="slide")
    builder.wire.ok("step", n_steps=1000)
    builder.wire.ok("recording_stop")
    builder.wire.ok("recording_save")
    builder.wire.ok("stop_pie")
    return builder


def export(builder: Any, **fields: Any) -> Any:
    """What became of an export, when it has ended."""
    began = builder.wire.ok("recording_export", **{"path": "slide", "format": "mp4", **fields})
    jobs = builder.server._exports.jobs
    assert jobs.wait(jobs.find(began["export_id"]), PATIENCE_S)
    (status,) = builder.wire.ok("export_status", export_id=began["export_id"])["exports"]
    assert status["absolute_path"] == began["absolute_path"]
    assert status["total"] == began["total"]
    return status


def pictures(path: str, width: int = WIDTH, height: int = HEIGHT) -> Any:
    """All frames of a film, (n, height, width, 3)."""
    command = [ffmpeg(), "-v", "error", "-i", path, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    raw = subprocess.run(command, capture_output=True, check=True).stdout
    return np.frombuffer(raw, np.uint8).reshape(-1, height, width, 3).astype(int)


def places(frames: Any) -> list[float]:
    """The column of the red ball in every picture, from the left, as a share of the width."""
    redness = np.maximum(frames[..., 0] - frames[..., 1:].max(axis=-1) - 40, 0)
    assert (redness.max(axis=(1, 2)) > 40).all()
    columns = redness.sum(axis=1)
    return [float(one @ np.arange(len(one)) / one.sum()) / len(one) for one in columns]


def test_a_camera_of_the_scene_films_what_it_would_have_seen_without_a_play(slider: Any) -> None:
    status = export(slider, camera="eye", fps=10)
    assert (status["state"], status["done"], status["total"]) == ("done", 20, 20)
    assert status["absolute_path"] == str(slider.project / "Saved/URLab/Replays/slide.mp4")
    seen = places(pictures(status["absolute_path"]))
    assert len(seen) == 20
    assert seen[0] > 0.7
    assert seen[-1] < 0.3
    assert np.diff(seen) == pytest.approx(np.full(19, (seen[-1] - seen[0]) / 19), abs=0.02)


def test_without_a_camera_the_film_shows_what_the_viewport_sees(slider: Any) -> None:
    slider.wire.ok("set_camera", location=[1, 0, 0], rotation_euler=[0, 0, 180])
    status = export(slider, fps=5, width=96, height=64)
    seen = places(pictures(status["absolute_path"], 96, 64))
    assert (len(seen), seen[0] < 0.4, seen[-1] > 0.6) == (10, True, True), "it looks from the other side"
    slider.wire.ok("look_through", camera="eye")
    seen = places(pictures(export(slider, fps=5, out="through")["absolute_path"]))
    assert (len(seen), seen[0] > 0.7, seen[-1] < 0.3) == (10, True, True)


def test_a_part_of_a_recording_is_between_two_of_its_times(slider: Any) -> None:
    whole = places(pictures(export(slider, camera="eye", fps=20)["absolute_path"]))
    part = export(slider, camera="eye", fps=20, out="part.mp4", **{"from": 0.502, "to": 1.0})
    assert part["total"] == 10
    assert places(pictures(part["absolute_path"])) == pytest.approx(whole[10:20], abs=0.01)


def test_a_film_does_not_wait_for_the_simulation_nor_touch_it(slider: Any, full_state: Any) -> None:
    slider.play()
    engine = slider.server.play.manager.engine
    before = full_state(engine).tolist()
    with engine.locked():
        assert export(slider, camera="eye", fps=5)["state"] == "done"
    assert full_state(engine).tolist() == before


def test_a_recording_of_another_scene_is_refused_with_the_level_that_it_is_of(slider: Any) -> None:
    slider.wire.ok("create_level", name="other")
    slider.spawn("box", slider.box_file)
    reply = slider.wire.ask("recording_export", path="slide", format="mp4")
    assert reply["code"] == "path_not_readable"
    assert "slider_left" in reply["message"]
    assert "it was recorded in /Game/Levels/lab: open that level first" in reply["message"]


def test_joints_that_the_scene_lacks_are_told(slider: Any) -> None:
    path = slider.project / "Saved/URLab/Replays/slide.json"
    text = path.read_text().replace('"slider_left":{"qPos"', '"wing":{"qPos":[0],"qVel":[0]},"slider_left":{"qPos"')
    (path.parent / "more.json").write_text(text)
    began = slider.wire.ok("recording_export", path="more", format="mp4", camera="eye", fps=1)
    assert began["warnings"] == ["1 of the recording's 2 joints are not in this scene: wing"]
    slider.wire.ok("export_cancel", export_id=began["export_id"])


def test_a_file_that_is_not_ours_is_refused_at_once_and_kept(slider: Any) -> None:
    path = slider.project / "Saved/URLab/Replays/precious.mp4"
    path.write_bytes(b"precious")
    reply = slider.wire.ask("recording_export", path="slide", format="mp4", out="precious")
    assert (reply["code"], reply["absolute_path"]) == ("path_not_writable", str(path))
    assert "is not a film of ours, so it is kept" in reply["message"]
    assert slider.wire.ok("export_status")["exports"] == []
    assert path.read_bytes() == b"precious"
    first = export(slider, camera="eye", fps=2, out="film")
    assert export(slider, camera="eye", fps=2, out="film")["absolute_path"] == first["absolute_path"]


@pytest.mark.parametrize(
    ("fields", "code", "words"),
    [
        ({"format": "betamax"}, "bad_value", "there are: hdf5, lerobot, mcap, mp4, parquet"),
        ({"camera": "ear"}, "bad_value", "there is no camera 'ear'; there are: slider/eye"),
        ({"width": 15}, "bad_value", "width must be between 16 and 4096"),
        ({"height": 0}, "bad_value", "height must be between 16 and 4096"),
        ({"fps": 0.5}, "bad_value", "fps must be between 1 and 240"),
        ({"fps": float("nan")}, "bad_value", "fps"),
        ({"from": -1.0}, "bad_value", "1000 frames, from"),
        ({"from": 1.5, "to": 0.5}, "bad_value", "before it"),
        ({"path": "nothing"}, "path_not_readable", "nothing.json"),
        ({"out": "../film.mp4"}, "path_not_writable", "leaves the replay folder"),
        ({"out": "film.avi"}, "path_not_writable", "a film of ours ends in .mp4"),
        ({"out": "slide.json"}, "path_not_writable", "a film of ours ends in .mp4"),
    ],
)
def test_what_cannot_be_exported_is_refused_with_the_reason(
    slider: Any, fields: dict[str, Any], code: str, words: str
) -> None:
    before = sorted((slider.project / "Saved/URLab/Replays").iterdir())
    reply = slider.wire.ask("recording_export", **{"path": "slide", "format": "mp4", **fields})
    assert reply["code"] == code
    assert words in reply["message"]
    assert slider.wire.ok("export_status")["exports"] == []
    assert sorted((slider.project / "Saved/URLab/Replays").iterdir()) == before


def test_a_cancelled_export_leaves_nothing(slider: Any) -> None:
    folder = slider.project / "Saved/URLab/Replays"
    before = sorted(folder.iterdir())
    began = slider.wire.ok("recording_export", path="slide", format="mp4", width=1024, height=1024, fps=240)
    assert slider.wire.ok("export_cancel", export_id=began["export_id"])["was_running"]
    jobs = slider.server._exports.jobs
    assert jobs.wait(jobs.find(began["export_id"]), PATIENCE_S)
    (status,) = slider.wire.ok("export_status", export_id=began["export_id"])["exports"]
    assert status["state"] == "cancelled"
    assert not slider.wire.ok("export_cancel", export_id=began["export_id"])["was_running"]
    assert sorted(folder.iterdir()) == before


def test_an_observer_follows_exports_and_cannot_begin_one(slider: Any, connect: Any) -> None:
    stranger = connect(slider.server)
    stranger.hello(observer=True)
    done = export(slider, camera="eye", fps=2)
    assert stranger.ok("export_status")["exports"] == [done]
    assert stranger.refused("recording_export", path="slide", format="mp4") == "observer_read_only"
    assert stranger.refused("export_cancel", export_id=done["export_id"]) == "observer_read_only"


def test_an_export_is_kept_in_the_audit_log(slider: Any) -> None:
    export(slider, camera="eye", fps=2)
    lines = (slider.project / "Saved/URLab/audit.jsonl").read_text().splitlines()
    told = [json.loads(line) for line in lines if '"recording_export"' in line]
    assert [(one["event"], one["path"], Path(one["absolute_path"]).name) for one in told] == [
        ("wrote", "slide", "slide.mp4")
    ]


def test_saved_recordings_are_listed_without_a_play_by_the_names_that_load_them(slider: Any) -> None:
    (slider.project / "Saved/URLab/Replays/broken.json").write_text("once upon a time")
    listed = slider.wire.ok("list_recordings")
    assert (listed["folder"], listed["truncated"]) == (str(slider.project / "Saved/URLab/Replays"), False)
    broken, slide = listed["recordings"]
    assert (broken["name"], broken["problem"]) == ("broken.json", "it is not a recording: no JSON object begins there")
    assert {name: slide[name] for name in ("name", "format", "frame_count", "sim_duration_s", "level")} == {
        "name": "slide.json", "format": "json", "frame_count": 1000, "sim_duration_s": 2.0,
        "level": "/Game/Levels/lab",
    }  # fmt: skip
    slider.play()
    assert slider.wire.ok("replay_load", path=slide["name"])["total_frames"] == 1000


FLYER = """
<mujoco model="flyer"><option gravity="0 0 0"/><worldbody><body name="flyer"><freejoint/>
  <geom size=".15" rgba="1 0 0 1" mass="1"/></body></worldbody></mujoco>"""


def test_a_film_follows_the_actor_that_the_viewport_tracks(builder: Any) -> None:
    builder.spawn("flyer", builder.write("flyer.xml", FLYER))
    builder.play()
    builder.wire.ok("set_qpos", target="flyer", qpos=[0, -4, 0, 1, 0, 0, 0], qvel=[0, 4, 0, 0, 0, 0])
    builder.wire.ok("recording_start", name="slide")
    builder.wire.ok("step", n_steps=1000)
    builder.wire.ok("recording_stop")
    builder.wire.ok("recording_save")
    builder.wire.ok("track_actor", target="flyer", offset=[-2, 0, 0])
    size = {"width": WIDTH, "height": HEIGHT, "fps": 4}
    followed = pictures(export(builder, out="followed.mp4", **size)["absolute_path"])
    assert places(followed) == pytest.approx([0.5] * len(followed), abs=0.05)
    builder.wire.ok("untrack")
    stays = pictures(export(builder, out="stays.mp4", **size)["absolute_path"])
    red = (stays[..., 0] > 100) & (stays[..., 1] < 80)
    assert not red[0].any(), "the camera stays where the flyer is now, and cannot see where it began"

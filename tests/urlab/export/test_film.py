"""Films: what is in them, and what they may replace."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from urlab.errors import BadValue, PathNotWritable
from urlab.export import ExportSource, Mp4, RecordedEpisode
from urlab.video import VideoEncoder, ffmpeg

GREYS = [0, 50, 100, 150, 200, 250]


def write(clip, pictures, path, advance=lambda: None):
    source = ExportSource(None, [RecordedEpisode(clip, clip.all_frames(), "")], {"eye": pictures})
    Mp4(10).write(source, path, advance)


@pytest.fixture
def clip(make_clip):
    return make_clip([0.1 * number for number in range(len(GREYS))], GREYS)


def test_a_film_has_every_frame_in_its_order(clip, pictures, greys, tmp_path):
    seen = []
    write(clip, pictures, tmp_path / "new" / "film.mp4", lambda: seen.append(1))
    assert greys(tmp_path / "new" / "film.mp4") == pytest.approx(GREYS, abs=3)
    assert len(seen) == len(GREYS)
    assert [one.name for one in (tmp_path / "new").iterdir()] == ["film.mp4"]


@pytest.mark.parametrize("size", [(64, 48), (1280, 720), (33, 25)])
def test_colours_come_back_and_the_file_says_how_they_are_stored(tmp_path, size):
    colours = [(200, 30, 30), (30, 200, 30), (30, 30, 200), (240, 240, 240)]
    width, height = size
    picture = np.repeat(np.array(colours, np.uint8)[None], height, 0)[:, np.arange(width) * len(colours) // width]
    film = tmp_path / "film.mp4"
    with VideoEncoder(film, size, 10) as encoder:
        encoder.add(picture)
    assert "yuv420p(tv, bt709" in subprocess.run([ffmpeg(), "-i", film], capture_output=True, text=True).stderr
    decode = [ffmpeg(), "-v", "error", "-i", film, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    decoded = subprocess.run(decode, capture_output=True, check=True).stdout
    found = np.frombuffer(decoded, np.uint8).reshape(height + height % 2, width + width % 2, 3)
    middles = (2 * np.arange(len(colours)) + 1) * width // (2 * len(colours))
    assert found[height // 2, middles].astype(int) == pytest.approx(np.array(colours), abs=8)


def test_a_film_of_ours_is_replaced(clip, make_clip, pictures, greys, tmp_path):
    path = tmp_path / "film.mp4"
    write(clip, pictures, path)
    assert Mp4.kind.is_ours(path.read_bytes()[:4096])
    write(make_clip([0.0], [80]), pictures, path)
    assert greys(path) == pytest.approx([80], abs=3)


def foreign(path: Path) -> bytes:
    """A film as another program would have written it."""
    data = path.read_bytes()
    return data[:12] + b"\0\0\2\0" + data[16:]


@pytest.mark.parametrize("content", [b"", b"precious", None])
def test_a_file_that_is_not_ours_is_kept(clip, pictures, tmp_path, content):
    path = tmp_path / "film.mp4"
    if content is None:
        write(clip, pictures, path)
        content = foreign(path)
    path.write_bytes(content)
    with pytest.raises(PathNotWritable, match="is not a film of ours, so it is kept"):
        write(clip, pictures, path)
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_is_not_followed(clip, pictures, tmp_path):
    (tmp_path / "film.mp4").symlink_to(tmp_path / "elsewhere.mp4")
    with pytest.raises(PathNotWritable, match="links are not followed"):
        write(clip, pictures, tmp_path / "film.mp4")
    assert not (tmp_path / "elsewhere.mp4").exists()


def test_a_film_that_is_given_up_leaves_what_was_there(clip, pictures, tmp_path):
    path = tmp_path / "film.mp4"
    write(clip, pictures, path)
    before = path.read_bytes()

    def give_up() -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        write(clip, pictures, path, give_up)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_ffmpeg_says_itself_why_it_cannot(clip, pictures, tmp_path):
    pictures.size = (0, 0)
    with pytest.raises(PathNotWritable, match="ffmpeg: "):
        write(clip, pictures, tmp_path / "film.mp4")
    assert list(tmp_path.iterdir()) == []


def test_without_the_extra_the_line_that_installs_it_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(BadValue, match=r"which is not installed: pip install 'urlab-headless\[video\]'"):
        Mp4.check()

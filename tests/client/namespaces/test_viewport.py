from pathlib import Path
from typing import Any

import pytest

from urlab_client import URLabClient

PNG = b"\x89PNG not really a picture"


def test_a_screenshot_is_the_bytes_of_a_file(client: URLabClient, server: Any):
    server.replies["viewport_screenshot"] = {"png": PNG, "width": 1280, "height": 720, "mode": "lit"}
    assert client.viewport.screenshot() == PNG
    assert {"width", "height"}.isdisjoint(server.last("viewport_screenshot"))
    client.viewport.screenshot(width=320, height=200)
    sent = server.last("viewport_screenshot")
    assert (sent["width"], sent["height"]) == (320, 200)


@pytest.mark.parametrize("kind", [str, Path])
def test_a_screenshot_is_written_where_the_caller_says(client: URLabClient, server: Any, tmp_path: Path, kind: type):
    server.replies["viewport_screenshot"] = {"png": PNG}
    assert client.viewport.screenshot(kind(tmp_path / "view.png")) == PNG
    assert (tmp_path / "view.png").read_bytes() == PNG


def test_a_screenshot_that_cannot_be_written_is_refused_before_it_is_taken(
    client: URLabClient, server: Any, tmp_path: Path
):
    with pytest.raises(FileNotFoundError, match=f"there is no folder {tmp_path / 'none'}"):
        client.viewport.screenshot(tmp_path / "none" / "view.png")
    with pytest.raises(IsADirectoryError, match="it is a folder; name a file in it"):
        client.viewport.screenshot(tmp_path)
    with pytest.raises(ValueError, match=r"PNG file: name it view\.png, not view\.jpg"):
        client.viewport.screenshot(tmp_path / "view.jpg")
    assert "viewport_screenshot" not in server.ops()

"""Two servers in one process share the GL thread, and each has its own picture."""

from pathlib import Path

import urlab


def test_pictures_of_two_servers_do_not_mix(tmp_path: Path) -> None:
    with urlab.launch("box", project=tmp_path / "a") as box, urlab.launch("panda", project=tmp_path / "b") as arm:
        for client in (box, arm):
            client.viewport.set_camera((-1, 0, 0.3), rotation_euler=(0, 0, 0))
        taken = [client.viewport.screenshot(width=64, height=48) for client in (box, arm, box, arm)]
    assert taken[0] == taken[2] != taken[1] == taken[3]

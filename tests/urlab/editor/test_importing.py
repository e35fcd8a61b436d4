"""Files of one's own on the page: uploaded, checked, and put into the level, in a real browser."""

import zipfile
from pathlib import Path
from typing import Any

import pytest
import viser
from viser._messages import FileTransferPart, FileTransferStartUpload

from urlab.editor.scripts import uploads
from urlab_client import URLabClient

MODEL = """<mujoco model="{name}"><worldbody><body name="cup"><freejoint/>
    <geom type="cylinder" size="0.05 0.1"/></body></worldbody></mujoco>"""
WITH_MESH = """<mujoco model="{name}"><asset><mesh name="wedge" file="meshes/wedge.obj"/></asset>
    <worldbody><body name="wedge"><freejoint/><geom type="mesh" mesh="wedge"/></body></worldbody></mujoco>"""
URDF = """<robot name="trolley"><link name="trolley"><inertial><mass value="2"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><geometry><box size="0.4 0.2 0.1"/></geometry></collision></link></robot>"""
WEDGE = """v 0 0 0\nv 0.3 0 0\nv 0 0.3 0\nv 0 0 0.3\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"""


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """One of each kind that can be imported, by the name that it gets."""
    for name, text in (("mug.xml", MODEL.format(name="mug")), ("trolley.urdf", URDF), ("wedge.obj", WEDGE)):
        (tmp_path / name).write_text(text)
    for name in ("packed.zip", "boxed.mjz"):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr(f"{Path(name).stem}.xml", WITH_MESH.format(name=Path(name).stem))
            archive.writestr("meshes/wedge.obj", WEDGE)
    return {Path(name).stem: tmp_path / name for name in
            ("mug.xml", "trolley.urdf", "wedge.obj", "packed.zip", "boxed.mjz")}  # fmt: skip


@pytest.mark.page
def test_a_model_of_each_kind_is_uploaded_and_added(client: URLabClient, page: Any, files: dict[str, Path]):
    client.sim.stop()
    client.scene.create_level("own_files")
    for name, file in files.items():
        page.upload(file)
        page.until(lambda name=name: page.says(f"{name} is imported"))
        page.close_notices()
        page.press("Add")
        page.until(lambda name=name: [one for one in client.outliner.list_actors() if one.name == name])
    page.press("Play")
    page.until(lambda: page.state == "playing")
    assert set(files) <= set(client.viewport.read().actors or ())


@pytest.mark.page
def test_a_file_that_is_no_model_or_too_large_says_so_and_the_next_one_is_taken(
    page: Any, tmp_path: Path, files: dict[str, Path]
):
    broken, large = tmp_path / "broken.xml", tmp_path / "large.zip"
    broken.write_text("<mujoco><worldbody><body></mujoco>")
    with large.open("wb") as file:
        file.truncate(uploads.MAX_UPLOAD_BYTES + 1)
    page.upload(large)
    page.until(lambda: page.says("large.zip has 66 MB, and at most 66 MB can be imported here"))
    page.upload(broken)
    page.until(lambda: page.says("Import broken.xml did not work"))
    page.upload(files["mug"])
    page.until(lambda: page.says("mug is imported"))


def test_a_page_that_sends_more_than_it_may_is_not_listened_to():
    server = viser.ViserServer(host="127.0.0.1", port=0, verbose=False)
    try:
        gui, kept = server.gui, server.gui._current_file_upload_states
        button = gui.add_upload_button("Import")._impl.uuid

        def start(transfer: str, size: int, parts: int = 2) -> None:
            gui._handle_file_transfer_start(0, FileTransferStartUpload(button, transfer, "a", "", parts, size))  # type: ignore[arg-type]

        start("far too large", 1 << 40)
        start("in crumbs", 100, parts=10**9)
        assert kept == {}
        start("first", 100)
        start("second", 100)
        assert list(kept) == ["second"]
        gui._handle_file_transfer_part(0, FileTransferPart(button, "second", 0, b"x" * 101))  # type: ignore[arg-type]
        assert kept == {}
    finally:
        server.stop()

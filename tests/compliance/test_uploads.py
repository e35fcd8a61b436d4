"""Models that clients bring from elsewhere: uploaded, imported, spawned, simulated."""

import base64
import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mujoco
import pytest

ARM = '<mujoco model="arm"><worldbody><body><joint name="j"/><geom size=".1"/></body></worldbody></mujoco>'
MESHED = """<mujoco model="tin"><compiler meshdir="assets"/><asset><mesh name="c" file="c.obj"/></asset>
<worldbody><body><freejoint/><geom type="mesh" mesh="c" mass="1"/></body></worldbody></mujoco>"""


def packed(files: Mapping[str, str | bytes]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return data.getvalue()


def project_files(builder: Any) -> list[str]:
    return sorted(path.name for path in builder.project.rglob("*") if path.is_file())


@pytest.mark.every_transport
def test_a_model_file_is_uploaded_imported_and_played(builder: Any) -> None:
    reply = builder.wire.ok("upload_asset", name="arm.xml", data=ARM.encode())
    path = str(builder.project / "Uploads" / "arm-xml" / "arm.xml")
    assert reply == {"op": "upload_asset_ok", "path": path, "models": [path]}
    builder.spawn("arm", path)
    assert [robot["prefix"] for robot in builder.play()["articulations"]] == ["arm"]


def test_a_spec_that_mujoco_packed_is_imported_and_played(builder: Any) -> None:
    cube = Path(builder.cube_file).read_bytes()
    spec, data = mujoco.MjSpec.from_string(MESHED, assets={"c.obj": cube}), io.BytesIO()
    spec.compile()
    spec.to_zip(data)
    reply = builder.wire.ok("upload_asset", name="tin.mjz", data=data.getvalue())
    builder.spawn("tin", reply["path"], location=[0, 0, 1])
    assert list(builder.play()["entities"]) == ["tin"]


def test_an_upload_again_changes_the_import(builder: Any) -> None:
    names = []
    for text in (ARM, ARM.replace('name="j"', 'name="k"')):
        path = builder.wire.ok("upload_asset", name="arm.zip", data=packed({"arm.xml": text}))["path"]
        names.append(builder.wire.ok("import_xml", path=path))
    assert [one["imported_now"] for one in names] == [True, True]
    assert len({one["blueprint_class_path"] for one in names}) == 1
    builder.wire.ok("spawn_actor", blueprint=names[0]["blueprint_class_path"], actor_id="arm")
    assert builder.wire.ok("snapshot")["actors"][0]["urlab"]["joints"] == ["k"]


def test_of_several_models_all_are_told(builder: Any) -> None:
    data = packed({"lab/scene.xml": ARM, "lab/robot.xml": ARM, "lab/parts/hand.xml": ARM})
    reply = builder.wire.ok("upload_asset", name="robot.zip", data=data)
    names = [str(Path(model).relative_to(builder.project)) for model in reply["models"]]
    assert names == [f"Uploads/robot-zip/lab/{one}" for one in ("robot.xml", "scene.xml", "parts/hand.xml")]
    assert reply["path"] == reply["models"][0]


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("arm.exe", b"x", "those end in"),
        ("../arm.xml", b"x", "no name for a file"),
        ("arm.xml", b"", "has no bytes"),
        ("arm.zip", b"x", "no zip file"),
        ("arm.zip", packed({"notes.txt": "hello"}), "it has: notes.txt"),
        ("arm.zip", packed({"../arm.xml": ARM}), "leads out of the upload"),
    ],
)
def test_what_will_not_do_is_refused_and_leaves_nothing(builder: Any, name: str, data: bytes, words: str) -> None:
    before = project_files(builder)
    reply = builder.wire.ask("upload_asset", name=name, data=data)
    assert reply["code"] == "upload_failed"
    assert words in reply["message"]
    assert set(project_files(builder)) - {".lock"} == set(before) - {".lock"}


def test_a_broken_model_is_refused_by_its_import(builder: Any) -> None:
    path = builder.wire.ok("upload_asset", name="arm.xml", data=b"<mujoco><nonsense/></mujoco>")["path"]
    assert builder.wire.refused("import_xml", path=path) == "import_failed"


def test_json_carries_the_bytes_as_text(builder: Any) -> None:
    wire = builder.wire
    data = base64.b64encode(ARM.encode()).decode()
    request = {"op": "upload_asset", "session_id": wire.session_id, "name": "arm.xml", "data": data}
    reply = wire.decode(wire.send(json.dumps(request).encode()))
    assert Path(reply["path"]).read_text() == ARM


def test_an_observer_may_not(builder: Any, connect: Any) -> None:
    observer = connect(builder.server)
    observer.hello(observer=True)
    assert observer.refused("upload_asset", name="arm.xml", data=ARM.encode()) == "observer_read_only"


def test_a_stopping_server_takes_none(builder: Any) -> None:
    builder.server.world.importer.close()
    assert builder.wire.refused("upload_asset", name="arm.xml", data=ARM.encode()) == "shutting_down"

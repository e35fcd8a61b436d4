"""Handles over handshakes: they stay good while their part of the scene exists, and say so when it does not."""

import copy
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from urlab.app import Server
from urlab.config import ServerConfig
from urlab_client import InProcessTransport, URLabClient, URLabGoneError

ARM = """
<mujoco model="arm"><worldbody><body name="link" pos="0 0 1"><joint name="waist" axis="0 0 1"/>
  <geom type="capsule" size=".05" fromto="0 0 0 .3 0 0"/><camera name="eye" resolution="4 3"/></body></worldbody>
  <actuator><motor name="waist" joint="waist"/></actuator>
  <sensor><jointpos name="angle" joint="waist"/></sensor></mujoco>
"""
BOX = '<mujoco model="box"><worldbody><body pos="2 0 1"><freejoint/><geom size=".1"/></body></worldbody></mujoco>'


@pytest.fixture
def playing(tmp_path: Path) -> Iterator[Server]:
    """A server that plays an arm and a free box."""
    models = [tmp_path / "arm.xml", tmp_path / "box.xml"]
    for path, text in zip(models, (ARM, BOX), strict=True):
        path.write_text(text)
    server = Server(replace(ServerConfig(), project=tmp_path / "project"), models)
    server.begin()
    yield server
    server.close()


@pytest.fixture
def lab(playing: Server) -> Iterator[URLabClient]:
    """A client of it in direct mode."""
    with URLabClient(transport=InProcessTransport(playing.dispatcher.handle), step_mode="direct") as client:
        client.discover()
        yield client


def restart(client: URLabClient) -> None:
    client.sim.stop()
    client.sim.start()


@pytest.mark.parametrize("again", [restart, URLabClient.discover], ids=["restart", "discover"])
def test_setpoints_of_an_old_handle_drive_the_robot(lab: URLabClient, again: Any) -> None:
    arm = lab.articulations["arm"]
    buffer, waist, angle = arm.ctrl_array, arm.actuators["waist"], arm.sensors["angle"]
    again(lab)
    waist.set_control(0.5)
    lab.step(5)
    assert lab.data.ctrl.tolist() == arm.last_applied_ctrl.tolist() == [0.5]
    assert lab.articulations["arm"] is arm
    assert arm.qvel_array[0] > 0
    assert lab.data.qvel[0] == arm.qvel_array[0]
    buffer[:] = -2.0
    lab.step()
    assert arm.last_applied_ctrl.tolist() == [-2.0]
    assert waist is arm.actuators["waist"]
    assert angle.latest is not None
    assert angle is arm.sensors["angle"]
    assert arm.joints["waist"].qpos_offset == 0


def test_an_entity_and_its_wrench_stay_good(lab: URLabClient) -> None:
    box = lab.entities["box"]
    restart(lab)
    height = box.root_pos_w[2]
    box.apply_xfrc(force=(0, 0, 1000))
    lab.step(5)
    assert box.root_pos_w[2] > height
    assert np.array_equal(box.root_pos_w, lab.data.body("box").xpos)


def test_a_control_mode_of_the_callers_stays(lab: URLabClient) -> None:
    arm = lab.articulations["arm"]
    arm.control_mode = "ue_controller"
    restart(lab)
    assert arm.control_mode == "ue_controller"


def test_a_handle_of_a_robot_that_is_gone_says_so_and_lives_again_with_it(lab: URLabClient) -> None:
    arm, box = lab.articulations["arm"], lab.entities["box"]
    waist, angle, link = arm.actuators["waist"], arm.sensors["angle"], arm.bodies["link"]
    eye = arm.cameras["eye"]
    lab.scene.destroy_actor("arm", by_name=True)
    restart(lab)
    assert box.root_pos_w[2] > 0
    uses: list[Any] = [
        lambda: arm.qpos_array, lambda: arm.root_pos_w, lambda: arm.ctrl_array, lambda: arm.set_ctrl({"waist": 1.0}),
        lambda: arm.get_sensors(), lambda: arm.apply_xfrc("link"), lambda: waist.set_control(1.0), lambda: angle.latest,
        lambda: link.xpos, lambda: arm.last_applied_ctrl, lambda: eye.latest_frame, lambda: waist.force,
        lambda: arm.mj_joint("waist"), lambda: arm.get_ctrl(), lambda: setattr(arm, "ctrl_array", [1.0]),
    ]  # fmt: skip
    for use in uses:
        with pytest.raises(URLabGoneError, match=r"not in the scene that plays now; there are box"):
            use()
    assert repr(arm).endswith("gone)")
    assert "gone" in arm._repr_html_()
    assert "arm" not in lab.articulations
    lab.scene.undo()
    restart(lab)
    assert lab.articulations["arm"] is arm
    waist.set_control(0.5)
    lab.step()
    assert arm.last_applied_ctrl.tolist() == [0.5]
    assert angle.latest is not None


def test_a_handle_rests_while_nothing_plays(lab: URLabClient) -> None:
    arm = lab.articulations["arm"]
    lab.sim.stop()
    assert arm.qpos_array.tolist() == [0.0]
    lab.discover()
    with pytest.raises(URLabGoneError, match=r"nothing plays now: call sim\.start\(\)"):
        arm.set_ctrl({"waist": 1.0})
    with pytest.raises(KeyError, match=r"there are none: nothing plays, call sim\.start\(\)"):
        lab.articulations["arm"]
    lab.sim.start()
    arm.set_ctrl({"waist": 1.0})
    lab.step()
    assert arm.last_applied_ctrl.tolist() == [1.0]


def test_a_robot_that_came_back_changed_keeps_its_handle(
    client: URLabClient, server: Any, handshake: dict[str, Any]
) -> None:
    arm, controller = client.articulations["arm"], client.articulations["arm"].controller
    assert controller is not None
    changed = copy.deepcopy(handshake)
    changed["articulations"][0]["controller"]["params"]["kp"]["waist"] = 7.0
    changed["articulations"][0]["camera_topics"] = {"nose": changed["articulations"][0]["camera_topics"]["eye"]}
    eye = arm.cameras["eye"]
    server.replies["hello"] = changed
    client.discover()
    assert controller is arm.controller
    assert controller.kp["waist"] == 7.0  # type: ignore[attr-defined]
    assert list(arm.cameras) == ["nose"]
    with pytest.raises(URLabGoneError, match="camera 'arm/eye': it is not in the scene"):
        eye.latest  # noqa: B018


def test_a_frame_of_an_earlier_play_is_not_shown(client: URLabClient) -> None:
    view = client.articulations["arm"].cameras["wrist"]
    view.take(b"\1" * 8)
    assert view.latest is not None
    client.discover()
    assert client.articulations["arm"].cameras["wrist"] is view
    assert view.latest is None


@pytest.mark.parametrize(
    ("asked", "sent"),
    [
        ("wrist", {"wrist": "sync"}),
        (["wrist", "arm/eye"], {"wrist": "sync", "arm/eye": "sync"}),
        (("wrist",), {"wrist": "sync"}),
        ({"wrist": "latest"}, {"wrist": "latest"}),
        ([], False),
        (True, True),
        (False, False),
    ],
)
def test_cameras_are_asked_for_by_name(client: URLabClient, server: Any, asked: Any, sent: Any) -> None:
    client.step(include_cameras=asked)
    assert server.last("step")["include_cameras"] == sent


def test_a_camera_of_the_scene_answers_to_its_short_name(
    make_client: Any, server: Any, handshake: dict[str, Any], state_reply: dict[str, Any]
) -> None:
    handshake["global_cameras"]["studio_side"] = {**handshake["global_cameras"]["room"], "short_name": "side"}
    client = make_client(step_mode="direct")
    client.discover()
    frame = {"width": 2, "height": 1, "dtype": "bgra8", "data": b"\1" * 8}
    server.replies["step"] = {**state_reply, "cameras": {"side": frame}}
    client.step(include_cameras="side")
    assert client.global_cameras["studio_side"].latest_frame is not None
    assert client.global_cameras["side"] is client.global_cameras["studio_side"]
    assert list(client.global_cameras) == ["room", "studio_side"]


def test_a_relative_path_with_a_folder_is_meant_from_here(
    client: URLabClient, server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").mkdir()
    for name in ("arm.xml", "run.json"):
        (tmp_path / "models" / name).touch()
    here = f"{tmp_path}/models"
    server.replies["recording_save"] = {"absolute_path": "/x"}
    client.scene.import_xml("models/arm.xml")
    client.scene.import_xml("arm.xml")
    client.scene.import_xml("./arm.xml")
    client.scene.import_xml("models/not_there.xml")
    assert [one["path"] for one in server.received if one["op"] == "import_xml"] == [
        f"{here}/arm.xml", "arm.xml", f"{tmp_path}/arm.xml", f"{here}/not_there.xml",
    ]  # fmt: skip
    written = {"run.json": "run.json", "out/run.json": f"{tmp_path}/out/run.json", "/a/b": "/a/b"}
    for path, sent in {**written, "./run.json": f"{tmp_path}/run.json"}.items():
        client.recording.save(path)
        assert server.last("recording_save")["path"] == sent
    client.replay.load(Path("models/run.json"))
    assert server.last("replay_load")["path"] == f"{here}/run.json"
    client.scene.spawn_actor("models/arm.xml", "a")
    assert server.last("spawn_actor")["blueprint"] == f"{here}/arm.xml"
    client.scene.spawn_actor("panda", "b")
    assert server.last("spawn_actor")["blueprint"] == "panda"


def test_without_the_model_robots_have_no_parts_and_say_why(playing: Server) -> None:
    transport = InProcessTransport(playing.dispatcher.handle)
    with URLabClient(transport=transport, step_mode="direct", fetch_model=False) as client:
        client.discover()
        for again in (URLabClient.discover, restart):
            again(client)
            arm = client.articulations["arm"]
            assert client.model is client.data is None
            with pytest.raises(KeyError, match="has no joint 'waist'; it has none here, as this client has not got"):
                arm.joints["waist"]
        client.runtime.set_qpos("arm", [0.25], by_name=True)
        assert client.step(0)["per_articulation"]["arm"]["qpos"] == [0.25]
        assert arm.qpos_array.tolist() == [0.25]
        assert client.reset()["per_articulation"]["arm"]["qpos"] == [0.0]

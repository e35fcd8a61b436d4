"""When a camera is due."""

from typing import Any

import pytest

from urlab.cameras.scene_camera import DEMAND_S, SceneCamera, scene_cameras
from urlab.compile.compiled_scene import CameraSlot
from urlab_wire.enums import CameraMode

ROBOT = """<mujoco><worldbody><body name="base"><joint/><geom size=".1"/><camera name="head"/>
<camera name="wrist"/></body></worldbody></mujoco>"""
POLE = '<mujoco><worldbody><geom size=".1"/><camera name="head"/></worldbody></mujoco>'


def camera(**fields: Any) -> SceneCamera:
    slot = CameraSlot(0, "arm_head", "head", CameraMode.REAL, (640, 480), 45.0)
    return SceneCamera("arm/head", slot, "arm/camera/head", CameraMode.REAL, **fields)


def test_every_camera_has_a_name_and_a_topic(compose: Any) -> None:
    cameras = scene_cameras(compose({"arm": ROBOT, "pole": POLE}, twins={"arm-2": "arm"}))
    assert {name: (one.topic, one.slot.name) for name, one in cameras.items()} == {
        "arm/head": ("arm/camera/head", "arm_head"),
        "arm/wrist": ("arm/camera/wrist", "arm_wrist"),
        "arm-2/head": ("arm-2/camera/head", "arm-2_head"),
        "arm-2/wrist": ("arm-2/camera/wrist", "arm-2_wrist"),
        "pole_head": ("global/camera/pole_head", "pole_head"),
    }


def test_it_starts_in_its_own_mode_at_thirty_hertz_and_switched_off(compose: Any) -> None:
    sidecar = '[cameras.wrist]\nmode = "depth"'
    wrist = scene_cameras(compose({"arm": ROBOT}, {"arm": sidecar}))["arm/wrist"]
    assert (wrist.mode, wrist.rate_hz, wrist.streaming, wrist.rendered) == ("depth", 30.0, False, 0)


def test_it_is_not_wanted_at_first() -> None:
    assert camera().due_in(5.0) is None


@pytest.mark.parametrize("wish", [{"streaming": True}, {"subscribed": [lambda: True]}, {"asked_until_s": 6.0}])
def test_it_is_due_at_once_when_it_is_wanted(wish: dict[str, Any]) -> None:
    assert camera(**wish).due_in(5.0) == 0.0


def test_asking_alone_does_not_send_it_out() -> None:
    assert not camera(asked_until_s=6.0).is_streamed
    assert camera(streaming=True).is_streamed
    assert camera(subscribed=[lambda: False, lambda: True]).is_streamed


def test_its_turns_are_multiples_of_its_period() -> None:
    one = camera(streaming=True, rate_hz=4.0)
    one.take_turn(5.1)
    assert one.due_in(5.1) == pytest.approx(0.15)
    one.take_turn(5.26)
    assert one.due_in(5.26) == pytest.approx(0.24)


def test_turns_that_were_missed_are_not_made_up_for() -> None:
    one = camera(streaming=True, rate_hz=10.0)
    one.take_turn(5.01)
    one.take_turn(5.45)
    assert one.due_in(5.45) == pytest.approx(0.05)


def test_after_a_pause_without_demand_it_is_due_at_once() -> None:
    one = camera(streaming=True, rate_hz=10.0)
    one.take_turn(5.0)
    one.streaming = False
    assert one.due_in(5.05) is None
    one.streaming = True
    assert one.due_in(99.0) == 0.0


def test_after_a_failure_it_waits_a_while() -> None:
    one = camera(streaming=True)
    one.put_off(5.0)
    assert one.due_in(5.0) == DEMAND_S

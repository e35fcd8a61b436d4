"""The openpi client against a real websocket policy server that behaves as openpi's does.

It speaks first, with its metadata; it packs with the MessagePack library that openpi uses, in its defaults; it adds to
its answers how long they took; when it fails it sends the traceback as text and closes with 1011.
"""

import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import msgpack
import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("websockets")

from websockets.sync.server import Server, ServerConnection, serve

from urlab.evaluation.embodiments import EMBODIMENTS
from urlab.evaluation.policies import PolicyError, PolicyNotFound, find_policy
from urlab.evaluation.policies.openpi import pack, unpack
from urlab.evaluation.policies.openpi_families import Droid, Libero, follow, last_rows, resize_with_pad, shares
from urlab.geometry import rotate, wxyz_from_rotation_vector


def numpy_default(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return {b"__ndarray__": True, b"data": value.tobytes(), b"dtype": value.dtype.str, b"shape": value.shape}
    if isinstance(value, np.generic):
        return {b"__npgeneric__": True, b"data": value.item(), b"dtype": value.dtype.str}
    raise TypeError(type(value))


def numpy_hook(value: dict[Any, Any]) -> Any:
    if b"__ndarray__" in value:
        return np.ndarray(buffer=value[b"data"], dtype=np.dtype(value[b"dtype"]), shape=value[b"shape"])
    if b"__npgeneric__" in value:
        return np.dtype(value[b"dtype"]).type(value[b"data"])
    return value


class PolicyServerOfTheTest:
    """Answers with what the test says, or fails with it; keeps what it was asked and with which headers."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.answer: Any = {"actions": np.zeros((4, 8))}
        self.first_frame: Any = msgpack.packb({"model": "test", "reset_pose": np.zeros(6)}, default=numpy_default)
        self.headers: dict[str, str] = {}
        self._server: Server = serve(self._handle, "127.0.0.1", 0, compression=None, max_size=None)
        self.url = f"ws://127.0.0.1:{self._server.socket.getsockname()[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def _handle(self, connection: ServerConnection) -> None:
        self.headers = dict(connection.request.headers) if connection.request else {}
        if self.first_frame is not None:
            connection.send(self.first_frame)
        timing: dict[str, float] = {}
        for frame in connection:
            begun_s = time.monotonic()
            try:
                connection.send(self._answer(frame, timing))
            except KeyError:
                connection.send(traceback.format_exc())
                connection.close(1011, "Internal server error.")
                return
            timing["prev_total_ms"] = 1000 * (time.monotonic() - begun_s)

    def _answer(self, frame: bytes, timing: dict[str, float]) -> bytes:
        self.asked.append(msgpack.unpackb(frame, object_hook=numpy_hook))
        if isinstance(self.answer, KeyError):
            raise self.answer
        if isinstance(self.answer, dict):
            self.answer["server_timing"] = {"infer_ms": 1.0, **timing}
        return msgpack.packb(self.answer, default=numpy_default)

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()


@pytest.fixture
def server() -> Iterator[PolicyServerOfTheTest]:
    one = PolicyServerOfTheTest()
    yield one
    one.close()


def observation(name: str) -> dict[str, Any]:
    """At home, with a different colour in every camera, darker on the right."""
    embodiment = EMBODIMENTS[name]
    pose = [np.array([0.4, 0.1, 0.5], np.float32), np.array([0.0, 1.0, 0.0, 0.0], np.float32)]
    pictures = {}
    for place, camera in enumerate(embodiment.cameras):
        rgb = np.full((camera.height, camera.width, 3), 50 * (place + 1), np.uint8)
        rgb[:, camera.width // 2 :] -= 10
        pictures[camera.name] = {"rgb": rgb}
    return {
        "robot_id": embodiment.robot_id,
        "episode_id": "urlab/run/task/000",
        "instruction": "lift the cube",
        "joint_position_state": np.array(embodiment.home),
        "ee_pose_state": pose if len(embodiment.arms) == 1 else [pose, pose],
        "camera_data": pictures,
    }


def asked_once(
    server: PolicyServerOfTheTest, name: str, actions: NDArray[np.float64], **options: Any
) -> list[dict[str, Any]]:
    """The actions that the policy makes of an answer."""
    server.answer = {"actions": actions}
    policy = find_policy(server.url, options).make()
    seen = observation(name)
    policy.reset(seen)
    try:
        made = policy.act(seen)
    finally:
        policy.close()
    assert isinstance(made, list)
    return made


def test_what_is_packed_is_what_openpi_packs_to_the_byte():
    picture = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    data = {"a": np.arange(6.0).reshape(2, 3), "b": [1, "x", None, 2.5], "c": {"d": np.uint8(7), "e": picture[:, ::-1]}}
    assert pack(data) == msgpack.packb(data, default=numpy_default)
    back = unpack(msgpack.packb(data, default=numpy_default))
    assert back["a"].tolist() == data["a"].tolist()
    assert back["c"]["e"].tolist() == picture[:, ::-1].tolist()
    assert back["c"]["d"] == np.uint8(7)
    assert isinstance(back["c"]["d"], np.uint8)


@pytest.mark.parametrize(
    "frame",
    [
        b"\xc1",
        msgpack.packb({b"__ndarray__": True, b"data": b"12345678", b"dtype": "|O", b"shape": [1]}),
        msgpack.packb({b"__ndarray__": True, b"data": b"123", b"dtype": "<f4", b"shape": [1]}),
        msgpack.packb({b"__ndarray__": True, b"data": b"1234", b"dtype": "<f4", b"shape": [5]}),
        msgpack.packb({b"__ndarray__": True}),
        b"\x91" * 100_000,
    ],
)
def test_frames_that_lie_are_refused(frame: bytes):
    with pytest.raises(PolicyError, match="cannot be read"):
        unpack(frame)


def test_pictures_are_fitted_into_a_black_square():
    picture = resize_with_pad(np.full((480, 640, 3), 200, np.uint8))
    assert picture.shape == (224, 224, 3)
    assert (picture[28:196] == 200).all()
    assert (picture[:28] == 0).all()
    assert (picture[196:] == 0).all()
    odd = resize_with_pad(np.full((335, 100, 3), 200, np.uint8))
    assert (odd[112].any(axis=1)).sum() == int(100 / (335 / 224))


def test_all_of_every_row_is_carried_out_in_the_time_it_is_meant_for():
    for rows, row_hz, steps in ((8, 15.0, 16), (5, 20.0, 8), (3, 30.0, 3), (25, 50.0, 15), (1, 50.0, 1)):
        covered = shares(rows, row_hz)
        assert len(covered) == steps
        total = np.zeros(rows)
        for one in covered:
            for row, part in one:
                total[row] += part
        assert total == pytest.approx(np.ones(rows))
    assert last_rows(5, 50.0) == [1, 3, 4]


def test_a_panda_is_asked_with_the_keys_and_mirrored_pictures_of_libero(server: PolicyServerOfTheTest):
    asked_once(server, "franka_panda", np.zeros((5, 7)))
    (asked,) = server.asked
    assert asked["prompt"] == "lift the cube"
    grip = [0.4 - 0.66, 0.1, 0.5 - 0.097 + 0.912]
    assert asked["observation/state"] == pytest.approx([*grip, np.pi, 0, 0, 0.04, -0.04], abs=1e-6)

    assert asked["observation/image"][112, [50, 170]].tolist() == [[40] * 3, [50] * 3]
    assert asked["observation/wrist_image"][112, [50, 170]].tolist() == [[140] * 3, [150] * 3]


@pytest.mark.parametrize("tilt", [-0.05, 0.05])
def test_a_hand_that_points_down_is_about_half_a_turn_about_x(server: PolicyServerOfTheTest, tilt: float):
    seen = observation("franka_panda")
    for sign in (1, -1):
        seen["ee_pose_state"][1] = sign * np.array(wxyz_from_rotation_vector(np.array([np.pi + tilt, 0.0, 0.0])))
        assert Libero().encode(seen)["observation/state"][3:6] == pytest.approx([np.pi + tilt, 0, 0], abs=1e-5)


def carried_out(rows: NDArray[np.float64], start: Any = (0.0, 0.0)) -> NDArray[np.float64]:
    """LIBERO's controller step by step, in one axis: (position, velocity) after every row of 1/20 s."""
    position, velocity = start
    after = []
    for row in rows:
        goal = position + row
        for _ in range(1000):
            velocity += 0.00005 * (150 * (goal - position) - 2 * np.sqrt(150) * velocity)
            position += 0.00005 * velocity
        after.append((position, velocity))
    return np.array(after)


def test_a_hand_follows_as_one_on_a_critically_damped_spring():
    rows = np.array([0.05, 0.05, -0.02, 0.0, 0.01])
    position, velocity = 0.0, np.zeros(1)
    for row, (expected, speed) in zip(rows, carried_out(rows), strict=True):
        moved, velocity = follow(np.array([row]), velocity, 1 / 20)
        position += moved[0]
        assert (position, velocity[0]) == pytest.approx((expected, speed), abs=1e-3)
        assert position == pytest.approx(expected, abs=1e-4)


def test_libero_rows_move_the_hand_as_liberos_controller_would(server: PolicyServerOfTheTest):
    rows = np.zeros((10, 7))
    rows[:, 0], rows[:, 5], rows[:, 6] = 7.0, 0.2, -1.0
    rows[2:, 6] = 0.1
    actions = asked_once(server, "franka_panda", rows, rows=4)
    assert len(actions) == 6
    assert {action["control_type"] for action in actions} == {"ee_pose"}
    assert {action["is_rel"] for action in actions} == {False}
    position, quat_wxyz, gripper = actions[-1]["action"]
    assert position == pytest.approx([0.4 + carried_out(np.full(4, 0.05))[-1, 0], 0.1, 0.5], abs=1e-4)
    turned = carried_out(np.full(4, 0.2 * 0.5))[-1, 0]
    assert rotate(tuple(quat_wxyz), (1, 0, 0)) == pytest.approx((np.cos(turned), np.sin(turned), 0), abs=1e-4)
    assert gripper == [0.0, 0.0]
    assert actions[2]["action"][2] == [0.04, 0.04]


def test_a_libero_hand_turns_about_the_point_between_its_fingers():
    rows = np.zeros((4, 7))
    rows[:, 4] = 1.0
    position, quat_wxyz, _ = Libero().decode(rows, observation("franka_panda"))[-1]["action"]
    grip = np.add(position, rotate(tuple(quat_wxyz), (0, 0, 0.097)))
    assert grip == pytest.approx([0.4, 0.1, 0.5 - 0.097])
    assert np.linalg.norm(np.subtract(position, [0.4, 0.1, 0.5])) > 0.01


def test_libero_rows_go_on_where_the_last_ones_ended_within_reach_of_the_hand():
    rows = np.zeros((4, 7))
    rows[:, 0] = 1.0
    both = carried_out(np.full(8, 0.05))
    hand, seen = Libero(), observation("franka_panda")
    hand.decode(rows, seen)
    seen["ee_pose_state"][0][0] += 0.02
    assert hand.decode(rows, seen)[-1]["action"][0][0] == pytest.approx(0.4 + both[-1, 0], abs=1e-4)
    moved = carried_out(np.full(4, 0.05), (0.0, both[-1, 1]))[-1, 0]
    assert hand.decode(rows, seen)[-1]["action"][0][0] == pytest.approx(0.42 + 0.05 + moved, abs=1e-4)


def test_a_robotiq_is_asked_and_moved_as_in_droid(server: PolicyServerOfTheTest):
    rows = np.zeros((15, 8))
    rows[:, 2], rows[:, 4], rows[:, 7] = 0.5, -7.0, 0.4
    rows[1:, 7] = 0.6
    actions = asked_once(server, "franka_robotiq", rows, rows=3)
    (asked,) = server.asked
    home, gripper = EMBODIMENTS["franka_robotiq"].home, EMBODIMENTS["franka_robotiq"].arms[0].gripper
    assert asked["observation/joint_position"] == pytest.approx(home[:7])
    assert asked["observation/gripper_position"].tolist() == [0.0]
    assert asked["observation/exterior_image_1_left"].shape == (224, 224, 3)
    assert asked["observation/exterior_image_1_left"][112, [50, 170]].tolist() == [[100] * 3, [90] * 3]
    assert asked["observation/wrist_image_left"].shape == (224, 224, 3)
    moved = np.array([action["action"] for action in actions])
    assert moved.shape == (6, 13)
    assert moved[-1, :7] - home[:7] == pytest.approx([0, 0, 3 * 0.5 * 0.2, 0, -3 * 0.2, 0, 0])
    assert moved[0, :7] - home[:7] == pytest.approx([0, 0, 0.05, 0, -0.1, 0, 0])
    assert moved[:2, 7:].tolist() == [list(gripper.open)] * 2
    assert moved[2:, 7:].tolist() == [list(gripper.closed)] * 4
    assert not any(action["is_rel"] for action in actions)


def test_droid_rows_go_on_where_the_last_ones_ended_within_reach_of_the_arm():
    rows = np.zeros((3, 8))
    rows[:, :2] = 1.0
    arm, seen = Droid(), observation("franka_robotiq")
    home = EMBODIMENTS["franka_robotiq"].home
    arm.decode(rows, seen)
    seen["joint_position_state"][0] += 0.5
    last = arm.decode(rows, seen)[-1]["action"]
    assert last[0] == pytest.approx(home[0] + 0.6 + 0.6)
    assert last[1] == pytest.approx(home[1] + 0.2 + 0.6)


def test_droid_policies_may_answer_with_joint_positions(server: PolicyServerOfTheTest):
    rows = np.tile(np.arange(15.0)[:, None] / 100, (1, 8))
    actions = asked_once(server, "franka_robotiq", rows, keys="droid_joints")
    assert "observation/joint_position" in server.asked[0]
    assert [action["action"][0] for action in actions] == pytest.approx(np.repeat(np.arange(8) / 100, 2))
    assert not any(action["is_rel"] for action in actions)


def test_two_arms_are_asked_and_moved_as_in_aloha(server: PolicyServerOfTheTest):
    rows = np.tile(np.arange(50.0)[:, None] / 100, (1, 14))
    rows[:, 6], rows[:, 13] = 1.0, 0.0
    actions = asked_once(server, "aloha", rows)
    (asked,) = server.asked
    home = EMBODIMENTS["aloha"].home
    assert asked["state"] == pytest.approx([*home[:6], 1.0, *home[8:14], 1.0], abs=1e-6)
    assert set(asked["images"]) == {"cam_high", "cam_left_wrist", "cam_right_wrist"}
    assert asked["images"]["cam_high"].shape == (3, 224, 224)
    moved = np.array([action["action"] for action in actions])
    left, right = (arm.gripper for arm in EMBODIMENTS["aloha"].arms)
    assert moved.shape == (15, 16)
    assert moved[-1, :6].tolist() == [0.24] * 6
    assert moved[0, 8:14].tolist() == [0.01] * 6
    assert moved[0, 6:8].tolist() == list(left.open)
    assert moved[0, 14:16].tolist() == list(right.closed)
    assert not any(action["is_rel"] for action in actions)


def test_the_family_of_keys_can_be_chosen(server: PolicyServerOfTheTest):
    actions = asked_once(server, "franka_panda", np.zeros((2, 8)), keys="droid")
    assert "observation/joint_position" in server.asked[0]
    assert len(actions[0]["action"]) == 9
    with pytest.raises(PolicyNotFound, match=r"keys='cat' is not known; there are: droid, droid_joints, libero, aloha"):
        find_policy(server.url, {"keys": "cat"}).make()


@pytest.mark.parametrize(("keys", "robot"), [("libero", "aloha"), ("droid", "aloha"), ("aloha", "franka_panda")])
def test_keys_for_another_number_of_arms_are_refused(server: PolicyServerOfTheTest, keys: str, robot: str):
    with closing(find_policy(server.url, {"keys": keys}).make()) as policy, pytest.raises(PolicyError, match="arm"):
        policy.reset(observation(robot))


def test_the_key_is_sent_as_openpi_wants_it(server: PolicyServerOfTheTest):
    asked_once(server, "franka_panda", np.zeros((1, 7)), api_key="secret")
    assert server.headers["authorization"] == "Api-Key secret"


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (KeyError("state"), "failed: .*KeyError: 'state'"),
        ({"action": 1}, "has no 'actions'; it has: action"),
        ({"actions": np.zeros((3, 5))}, r"have the shape \(3, 5\); \(h, 7\) is expected"),
        ({"actions": np.zeros((0, 7))}, r"have the shape \(0, 7\)"),
        ({"actions": np.full((2, 7), np.nan)}, "not all finite"),
        ({"actions": "none"}, "are not numbers"),
        ([1, 2], "is no map, but list"),
    ],
)
def test_what_goes_wrong_at_the_server_is_told(server: PolicyServerOfTheTest, answer: Any, says: str):
    server.answer = answer
    policy = find_policy(server.url).make()
    seen = observation("franka_panda")
    policy.reset(seen)
    with pytest.raises(PolicyError, match=says):
        policy.act(seen)
    policy.close()


def test_a_server_that_has_failed_is_gone(server: PolicyServerOfTheTest):
    server.answer = KeyError("state")
    with closing(find_policy(server.url).make()) as policy:
        seen = observation("franka_panda")
        policy.reset(seen)
        with pytest.raises(PolicyError, match="failed"):
            policy.act(seen)
        with pytest.raises(PolicyError, match="has gone"):
            policy.act(seen)


def test_a_new_episode_connects_again_to_a_server_that_has_failed(server: PolicyServerOfTheTest):
    good, server.answer = server.answer, KeyError("state")
    good["actions"] = np.zeros((4, 7))
    with closing(find_policy(server.url).make()) as policy:
        seen = observation("franka_panda")
        policy.reset(seen)
        with pytest.raises(PolicyError, match="failed"):
            policy.act(seen)
        server.answer = good
        policy.reset(seen)
        assert len(policy.act(seen)) > 0


def test_a_server_that_does_not_come_back_is_not_waited_for_without_end(server: PolicyServerOfTheTest):
    server.answer = KeyError("state")
    policy: Any = find_policy(server.url).make()
    seen = observation("franka_panda")
    policy.reset(seen)
    with pytest.raises(PolicyError, match="failed"):
        policy.act(seen)
    server.close()
    policy._server._connect_timeout_s = 0.3  # for a server that is there, that may be too short
    with pytest.raises(PolicyError, match=r"no policy server at .* within 0.3 s"):
        policy.reset(seen)


def test_a_server_that_says_nothing_is_not_waited_for_without_end(server: PolicyServerOfTheTest):
    server.first_frame = None
    with pytest.raises(PolicyError, match=r"sent no metadata within 0.1 s; --policy-arg reply_timeout_s"):
        find_policy(server.url, {"reply_timeout_s": 0.1}).make()


def test_a_server_that_is_away_is_told_with_what_to_do():
    with pytest.raises(PolicyError, match=r"no policy server at ws://127.0.0.1:9 within 0.1 s .*start it"):
        find_policy("ws://127.0.0.1:9", {"connect_timeout_s": 0.1}).make()


def test_an_address_that_is_none_is_refused():
    with pytest.raises(PolicyNotFound, match="write ws://host:port"):
        find_policy("ws://", {"connect_timeout_s": 0.1}).make()


def test_a_policy_that_needs_eyes_says_which_are_missing(server: PolicyServerOfTheTest):
    policy = find_policy(server.url).make()
    seen = {**observation("franka_panda"), "camera_data": {}}
    policy.reset(seen)
    with pytest.raises(PolicyError, match=r"looks through 'obs_camera'.*none: the server runs without cameras"):
        policy.act(seen)
    policy.close()

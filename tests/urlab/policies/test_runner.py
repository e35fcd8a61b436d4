"""A policy on a robot: it sees what MuJoCo says, and moves what its file says."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import mujoco
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import urlab
from urlab.policies import OnnxNetwork, PolicyFileError, PolicyRunner
from urlab.policies.policy_file import ActionSpec, GainsSpec, PolicyContent, TermSpec
from urlab_client import URLabClient

HOME = np.array([0.0, 0.8, -1.6] * 4)
TERMS = [
    "base_linear_velocity",
    "base_angular_velocity",
    "projected_gravity",
    "command",
    "joint_positions",
    "joint_velocities",
    "last_action",
]
POLICY = PolicyContent(
    network="",
    n_steps=5,
    timestep=0.002,
    keyframe="home",
    action=ActionSpec(scale=0.5, offset="home", clip=1.0),
    gains=GainsSpec(kp=80.0, kv=2.0),
    observations=[*map(TermSpec, TERMS), TermSpec("clock", period=0.4), TermSpec("sensor", sensor="imu_gyro")],
)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[URLabClient]:
    """The quadruped on a floor."""
    with urlab.launch(["quadruped", "floor"], project=tmp_path_factory.mktemp("project")) as opened:
        yield opened


@pytest.fixture(autouse=True)
def at_home(client: URLabClient) -> None:
    client.runtime.set_mode("direct")
    client.reset("home")


def changed(**fields: object) -> PolicyContent:
    return msgspec.structs.replace(POLICY, **fields)


def test_it_sees_what_mujoco_says(client: URLabClient) -> None:
    said = np.linspace(-0.5, 0.5, 12)
    runner = PolicyRunner(client, POLICY, lambda _: said)
    client.runtime.set_twist("quadruped", linear=(0.3, -0.1, 0.0), angular=(0.0, 0.0, 0.2))
    for _ in range(8):
        runner.step()
    seen, data = runner.observation(), client.data
    turn = np.zeros(9)
    mujoco.mju_quat2Mat(turn, data.qpos[3:7])
    back = turn.reshape(3, 3).T
    angle = 2 * np.pi * 8 * 5 * 0.002 / 0.4
    wanted = [
        back @ data.qvel[:3],
        data.qvel[3:6],
        back @ [0.0, 0.0, -1.0],
        [0.3, -0.1, 0.2],
        data.qpos[7:19] - HOME,
        data.qvel[6:18],
        said,
        [np.sin(angle), np.cos(angle)],
    ]
    np.testing.assert_allclose(seen[:-3], np.concatenate(wanted), atol=1e-9)
    np.testing.assert_allclose(seen[-3:], client.articulations["quadruped"].sensors["imu_gyro"].latest)


def test_it_sees_where_a_thing_is_from_its_base(tmp_path: Path) -> None:
    with urlab.launch(["floor", "quadruped@1,0,0,90", "box@1,2,0"], project=tmp_path) as client:
        policy = changed(observations=[TermSpec("entity_position", entity="box")], keyframe=None, timestep=None)
        seen = PolicyRunner(client, policy, lambda _: np.zeros(12)).observation()
        apart = client.entities["box"].root_pos_w - client.articulations["quadruped"].root_pos_w
    assert seen == pytest.approx([apart[1], -apart[0], apart[2]], abs=1e-6)  # it looks along y
    assert seen[0] == pytest.approx(2.0, abs=0.01)


def test_it_moves_what_its_file_says(client: URLabClient) -> None:
    action = ActionSpec(joints=("FR_hip", "FL_.*"), scale={"FR.*": 0.1, ".*": 0.2}, offset={"FR.*": 0.0, ".*": -0.1})
    runner = PolicyRunner(client, changed(action=action, gains=None), lambda _: np.array([1.0, 2.0, 0.5, -1.0]))
    before = client.articulations["quadruped"].get_ctrl()
    runner.step()
    after = client.articulations["quadruped"].get_ctrl()
    moved = {"FR_hip": 0.1, "FL_hip": 0.3, "FL_thigh": 0.0, "FL_calf": -0.3}
    assert after == pytest.approx(before | moved)


def test_numbers_of_the_network_are_clipped(client: URLabClient) -> None:
    runner = PolicyRunner(client, POLICY, lambda _: np.full(12, 7.0))
    assert runner.step().tolist() == [1.0] * 12
    assert client.articulations["quadruped"].ctrl_array == pytest.approx(HOME + 0.5)


def test_its_gains_are_those_of_the_controller(client: URLabClient) -> None:
    PolicyRunner(client, POLICY, lambda _: np.zeros(12))
    client.discover()
    controller = client.articulations["quadruped"].controller
    assert controller is not None
    params = controller.params
    assert set(params["kp"].values()) == {80.0}
    assert set(params["kv"].values()) == {2.0}


def test_a_history_begins_with_what_is_seen_first(client: URLabClient) -> None:
    runner = PolicyRunner(client, changed(observations=[TermSpec("last_action", history=3)]), lambda _: np.ones(12))
    assert runner.observation().tolist() == [0.0] * 36
    runner.step()
    assert runner.observation().reshape(3, 12)[:, 0].tolist() == [0.0, 0.0, 1.0]


def test_a_reset_begins_anew(client: URLabClient) -> None:
    runner = PolicyRunner(client, POLICY, lambda _: np.ones(12))
    first = runner.observation()
    runner.step()
    assert runner.elapsed_s == pytest.approx(0.01)
    runner.reset(seed=3)
    assert runner.elapsed_s == 0.0
    np.testing.assert_allclose(runner.observation(), first, atol=1e-12)


def test_in_live_mode_an_action_lasts_as_long(client: URLabClient) -> None:
    client.runtime.set_mode("live")
    runner = PolicyRunner(client, POLICY, lambda _: np.zeros(12))
    for _ in range(5):
        runner.step()
    assert runner.elapsed_s >= 5 * 0.01


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"timestep": 0.005}, r"trained with a timestep of 0.005 s and the simulation has 0.002 s"),
        ({"action": ActionSpec(joints=("tail",))}, "no joint matches 'tail'"),
        ({"action": ActionSpec(offset="sit")}, "there is no keyframe 'sit'; there are .*home"),
        ({"robot": "cat"}, "the scene has the robots quadruped: none is called 'cat'"),
        ({"observations": [TermSpec("sensor", sensor="imu_gyr")]}, "imu_gyro"),
        ({"observations": [TermSpec("entity_position", entity="ball")]}, "ball"),
    ],
)
def test_a_policy_that_does_not_fit_says_why(client: URLabClient, fields: dict[str, object], said: str) -> None:
    with pytest.raises(PolicyFileError, match=said):
        PolicyRunner(client, changed(**fields), lambda _: np.zeros(12))


@pytest.mark.parametrize(("answer", "said"), [(np.zeros(5), "5 numbers"), (np.full(12, np.nan), "not all finite")])
def test_an_answer_that_is_no_action_is_refused(client: URLabClient, answer: np.ndarray, said: str) -> None:
    with pytest.raises(PolicyFileError, match=said):
        PolicyRunner(client, POLICY, lambda _: answer).step()


def network(path: Path, weights: np.ndarray) -> Path:
    """An ONNX file of one matrix."""
    node = helper.make_node("MatMul", ["obs", "w"], ["act"])
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("obs", TensorProto.FLOAT, [1, len(weights)])],
        [helper.make_tensor_value_info("act", TensorProto.FLOAT, [1, weights.shape[1]])],
        [numpy_helper.from_array(weights.astype(np.float32), "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)
    return path


def test_an_onnx_file_is_run(tmp_path: Path) -> None:
    weights = np.arange(6.0).reshape(3, 2)
    net = OnnxNetwork(network(tmp_path / "net.onnx", weights))
    assert net.inputs == 3
    assert net(np.array([1.0, 2.0, 3.0])).tolist() == [16.0, 22.0]
    with pytest.raises(PolicyFileError, match=r"net.onnx: .*"):
        net(np.ones(4))


def test_a_network_of_another_width_is_told_what_the_policy_sees(client: URLabClient, tmp_path: Path) -> None:
    net = OnnxNetwork(network(tmp_path / "net.onnx", np.zeros((7, 12))))
    policy = changed(observations=[TermSpec("command"), TermSpec("last_action")])
    with pytest.raises(PolicyFileError, match="takes 7 numbers, and the policy sees 15: command 3, last_action 12"):
        PolicyRunner(client, policy, net)


def test_a_file_that_is_no_network_is_told(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_text("weights")
    with pytest.raises(PolicyFileError, match="is no ONNX network that can be run"):
        OnnxNetwork(tmp_path / "net.onnx")

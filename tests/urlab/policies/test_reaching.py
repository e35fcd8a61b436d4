"""The reaching policy that we ship: the hand comes to the marker, wherever that is, and wherever the arm stands."""

from pathlib import Path

import numpy as np
import pytest

import urlab
from urlab.policies import OnnxNetwork, PolicyRunner, find_policy_file, read_policy_file

LOW_M, HIGH_M = np.array([0.35, -0.35, 0.15]), np.array([0.65, 0.35, 0.65])


@pytest.mark.parametrize(("x", "yaw_deg"), [(0.0, 0.0), (-1.0, 90.0)])
def test_the_hand_comes_to_the_marker(tmp_path: Path, x: float, yaw_deg: float) -> None:
    policy = read_policy_file(find_policy_file("panda_reach"))
    yaw = np.deg2rad(yaw_deg)
    turn = np.array([[np.cos(yaw), -np.sin(yaw), 0.0], [np.sin(yaw), np.cos(yaw), 0.0], [0.0, 0.0, 1.0]])
    with urlab.launch(["floor", f"panda@{x},0,0,{yaw_deg}", "target@0.5,0,0.4"], project=tmp_path) as client:
        runner = PolicyRunner(client, policy.content, OnnxNetwork(policy.network))
        hand = client.model.site("panda_ee").id
        apart = []
        for place in np.random.default_rng(5).uniform(LOW_M, HIGH_M, (6, 3)):
            goal = turn @ place + [x, 0.0, 0.0]
            client.runtime.set_mocap_pose("target", pos=goal)
            for _ in range(100):
                runner.step()
            apart.append(float(np.linalg.norm(client.data.site_xpos[hand] - goal)))
    assert max(apart) < 0.03, apart

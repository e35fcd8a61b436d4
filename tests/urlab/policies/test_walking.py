"""The walking policy that we ship: it follows commands, is pushed, and does not fall."""

import math
from pathlib import Path

import numpy as np
import pytest

import urlab
from urlab.policies import OnnxNetwork, PolicyRunner, find_policy_file, read_policy_file
from urlab_client import URLabClient

PUSH_N, PUSH_S, HOLD_S = 30.0, 0.1, 4.0
COMMANDS = [(0.5, 0.0), (-0.5, 0.0), (0.0, 0.5), (0.5, -0.5), (-0.5, 0.5), (0.0, 0.0)]
"""Forward, m/s, and turning, rad/s."""


def walked(client: URLabClient, seed: int, seconds: float) -> np.ndarray:
    """Mean error of velocity (m/s) and yaw rate (rad/s) in the last half of each command; it must not fall."""
    policy = read_policy_file(find_policy_file("quadruped_walk"))
    runner = PolicyRunner(client, policy.content, OnnxNetwork(policy.network))
    runner.reset()
    rng, robot = np.random.default_rng(seed), runner.robot
    commands = [COMMANDS[i] for i in rng.integers(len(COMMANDS), size=math.ceil(seconds / HOLD_S))]
    pushes = np.cumsum(rng.uniform(2, 4, size=math.ceil(seconds)))
    errors: dict[int, list[tuple[float, float]]] = {number: [] for number in range(len(commands))}
    number, pushed = -1, False
    while runner.elapsed_s < seconds:
        now_s = runner.elapsed_s
        if now_s >= (number + 1) * HOLD_S:
            number += 1
            forward, turning = commands[number]
            client.runtime.set_twist("quadruped", linear=(forward, 0, 0), angular=(0, 0, turning))
        if pushed != bool(((pushes <= now_s) & (now_s < pushes + PUSH_S)).any()):
            pushed = not pushed
            angle = rng.uniform(0, 2 * math.pi)
            force = (PUSH_N * math.cos(angle), PUSH_N * math.sin(angle), 0.0)
            client.runtime.perturb("quadruped_trunk", force=force) if pushed else client.runtime.release()
        runner.step()
        assert robot.root_pos_w[2] > 0.2, f"it fell after {now_s:.1f} s"
        assert robot.projected_gravity_b[2] < -0.7, f"it tipped after {now_s:.1f} s"
        if now_s > (number + 0.5) * HOLD_S:
            errors[number].append((robot.root_lin_vel_b[0] - forward, robot.root_ang_vel_b[2] - turning))
    return np.mean([np.abs(np.mean(one, 0)) for one in errors.values()], 0)


def test_it_follows_commands_and_is_not_pushed_over(tmp_path: Path) -> None:
    with urlab.launch(["floor", "quadruped"], project=tmp_path) as client:
        forward, turning = walked(client, seed=3, seconds=16.0)
    assert forward < 0.15
    assert turning < 0.2


def test_it_walks_in_live_mode(tmp_path: Path) -> None:
    with urlab.launch(["floor", "quadruped"], step_mode="live", project=tmp_path) as client:
        walked(client, seed=1, seconds=4.0)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("mode", ["direct", "live"])
def test_a_minute_of_commands_and_pushes_over_twenty_seeds(tmp_path: Path, mode: str) -> None:
    with urlab.launch(["floor", "quadruped"], step_mode=mode, project=tmp_path) as client:
        errors = [walked(client, seed, seconds=60.0) for seed in range(20)]
    assert (np.mean(errors, 0) < [0.15, 0.2]).all(), np.mean(errors, 0)

"""Environments for learning: one behind a client, many in one process, and a scripted policy that solves a task."""

import gymnasium
import numpy as np

from urlab.envs import URLabEnv, URLabVectorEnv, make_baseline

# One environment, as any of Gymnasium's.
env = gymnasium.make("urlab/PandaReach-v0")
baseline = make_baseline("PandaReach-v0", env.unwrapped.interface)
observation, info = env.reset(seed=1)
ended = False
while not ended:
    observation, reward, terminated, truncated, info = env.step(baseline.act(observation))
    ended = terminated or truncated
print(f"the hand is there: {info['is_success']}, after {info['step_count']} steps, {info['sim_time']:.2f} s")
env.close()

# Sixteen in one process, on all cores: the same numbers as sixteen of the above. Episodes that end begin anew.
many = URLabVectorEnv(task="PandaReach-v0", num_envs=16)
baselines = [make_baseline("PandaReach-v0", many.interface) for _ in range(many.num_envs)]
observations, _ = many.reset(seed=1)
successes = episodes = 0
for _ in range(40):
    actions = np.stack([one.act(each) for one, each in zip(baselines, observations, strict=True)])
    observations, rewards, terminated, truncated, infos = many.step(actions)
    for i in np.flatnonzero(terminated | truncated):
        baselines[i].reset()
        episodes += 1
        successes += infos["final_info"]["is_success"][i]
print(f"{successes} of {episodes} episodes solved")
many.close()

# Any scene will do: a level, model files, or a client. The reward is yours.
walker = URLabEnv(["quadruped", "floor"], n_steps=10, reward_fn=lambda seen, *_: float(seen[19]))
walker.reset(seed=1)
print(f"{walker.observation_space.shape[0]} numbers observed, {walker.action_space.shape[0]} joints driven")
walker.close()

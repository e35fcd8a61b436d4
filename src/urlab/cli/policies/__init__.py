"""Commands that let a policy act: `run` one on a robot, `rollout` for many episodes of an environment."""

"""Environments: a scene, or a client of one, for learning, by Gymnasium's interface. Needs the extra ``gym``.

`single_env` is one simulation behind a client, `vector_env` many in one process on MuJoCo's batch. What is observed and
rewarded is a task (`task`, and those that we ship in `tasks`, their levels in `levels`), written once for both; `start`
is how episodes begin, `scene_states` where the numbers are, `interface` the spaces, `pictures` the cameras,
`batch_control` the controllers of many simulations. `baselines` solve the shipped tasks. Importing this registers every
task at Gymnasium as ``urlab/<name>``.
"""

import importlib.util

if importlib.util.find_spec("gymnasium") is None:
    raise ImportError("urlab.envs needs Gymnasium: pip install 'urlab-headless[gym]'")

from urlab.envs import tasks
from urlab.envs.baselines import Baseline, make_baseline
from urlab.envs.pictures import EnvCamera
from urlab.envs.registration import register_tasks
from urlab.envs.scene_states import SceneLayout, States
from urlab.envs.single_env import URLabEnv
from urlab.envs.task import TASKS, EnvTask, Outcome
from urlab.envs.vector_env import URLabVectorEnv

register_tasks()

__all__ = [
    "TASKS",
    "Baseline",
    "EnvCamera",
    "EnvTask",
    "Outcome",
    "SceneLayout",
    "States",
    "URLabEnv",
    "URLabVectorEnv",
    "make_baseline",
    "tasks",
]

"""Which MuJoCo this is."""

import mujoco

MUJOCO_VERSION: str = mujoco.__version__
MUJOCO_VERSION_INT: int = mujoco.mj_version()

"""Joint layouts of real models, and recordings to go with them."""

from collections.abc import Callable

import mujoco
import numpy as np
import pytest

from urlab.compile.compiled_scene import JointSlot
from urlab.recording import RecordedJoint, Recording

Slots = tuple[JointSlot, ...]

_QPOS_DIM, _QVEL_DIM = (7, 4, 1, 1), (6, 3, 1, 1)

ROBOT = """
<mujoco>
  <worldbody>
    <body name="r_base"><freejoint name="r_root"/><geom size=".1"/>
      <body><joint name="r_hip" type="hinge"/><geom size=".1"/></body>
      <body><joint name="r_neck" type="ball"/><geom size=".1"/></body>
    </body>
  </worldbody>
</mujoco>
"""


def slots_of_model(model: mujoco.MjModel) -> Slots:
    slots = []
    for id_ in range(model.njnt):
        name, kind = model.joint(id_).name, int(model.jnt_type[id_])
        q, v = int(model.jnt_qposadr[id_]), int(model.jnt_dofadr[id_])
        short = name.partition("_")[2] or name
        slots.append(JointSlot(id_, name, short, kind, slice(q, q + _QPOS_DIM[kind]), slice(v, v + _QVEL_DIM[kind])))
    return tuple(slots)


@pytest.fixture
def robot() -> mujoco.MjModel:
    """A floating base with a hinge and a ball: nq 12, nv 10; joints r_root, r_hip, r_neck."""
    return mujoco.MjModel.from_xml_string(ROBOT)


@pytest.fixture
def robot_slots(robot: mujoco.MjModel) -> Slots:
    return slots_of_model(robot)


@pytest.fixture
def hinges() -> Callable[..., Slots]:
    """Hinge slots by name; ``prefix`` is what short names leave out."""

    def make(*names: str, prefix: str = "r") -> Slots:
        return tuple(
            JointSlot(i, name, name.removeprefix(f"{prefix}_"), 3, slice(i, i + 1), slice(i, i + 1))
            for i, name in enumerate(names)
        )

    return make


@pytest.fixture
def make_recording() -> Callable[..., Recording]:
    """Random frames 0.002 s apart; a joint is a name (hinge) or (name, qpos_dim, qvel_dim)."""

    def make(*joints: str | tuple[str, int, int], frames: int = 5, name: str = "ep", seed: int = 0) -> Recording:
        layout = tuple(RecordedJoint(*((one, 1, 1) if isinstance(one, str) else one)) for one in joints)
        random = np.random.default_rng(seed)
        nq, nv = sum(one.qpos_dim for one in layout), sum(one.qvel_dim for one in layout)
        times = np.arange(frames) * 0.002
        return Recording(name, layout, times, random.normal(size=(frames, nq)), random.normal(size=(frames, nv)))

    return make

"""Articulations for the control tests, described straight from real MuJoCo models."""

from collections.abc import Callable

import mujoco
import pytest

from urlab.compile.compiled_scene import ActuatorSlot, CompiledArticulation, ControlSlot, JointSlot
from urlab.scene.sidecar import ControllerConfig, Sidecar

Describe = Callable[..., CompiledArticulation]
_WIDTHS = {0: (7, 6), 1: (4, 3), 2: (1, 1), 3: (1, 1)}
_JOINT_DRIVES = {int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_JOINTINPARENT)}

ARM = """
<mujoco>
  <worldbody>
    <body pos="0 0 1"><freejoint name="base"/><geom size=".1"/>
      <body><joint name="shoulder" axis="0 1 0" range="-60 60"/><geom size=".05" pos=".2 0 0"/>
        <body pos=".4 0 0"><joint name="elbow" axis="0 1 0"/><geom size=".05" pos=".2 0 0"/>
          <body pos=".4 0 0"><joint name="slider" type="slide" axis="1 0 0" range="-.1 .1"/><geom size=".04"/>
            <body><joint name="wrist" type="ball"/><geom size=".02" pos=".1 0 0"/></body>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
  <tendon><fixed name="cable"><joint joint="elbow" coef="1"/></fixed></tendon>
  <actuator>
    <motor name="slide_motor" joint="slider"/>
    <motor name="pull" tendon="cable"/>
    <motor name="shoulder" joint="shoulder"/>
    <motor name="elbow_motor" jointinparent="elbow"/>
    <motor name="roll" joint="wrist"/>
  </actuator>
</mujoco>
"""
"""A floating arm: two hinges and a slide that PD binds, a tendon motor and a ball-joint motor that it does not."""


@pytest.fixture
def arm() -> mujoco.MjModel:
    """The floating arm."""
    return mujoco.MjModel.from_xml_string(ARM)


@pytest.fixture
def describe() -> Describe:
    """Describe a whole model as one articulation named ``robot``."""
    return _describe


def _describe(model: mujoco.MjModel, controller: ControllerConfig | None = None) -> CompiledArticulation:
    joints = tuple(_joint(model, i) for i in range(model.njnt))
    actuators = tuple(_actuator(model, i, joints) for i in range(model.nu))
    return CompiledArticulation(
        prefix="robot",
        actor_id="robot_0",
        joints=joints,
        actuators=actuators,
        controls=tuple(ControlSlot(one.id, one.name, one.short, one, one.id) for one in actuators),
        sensors=(),
        bodies=(),
        cameras=(),
        sidecar=Sidecar(controller=controller),
    )


def _joint(model: mujoco.MjModel, i: int) -> JointSlot:
    kind, q, v = int(model.jnt_type[i]), int(model.jnt_qposadr[i]), int(model.jnt_dofadr[i])
    nq, nv = _WIDTHS[kind]
    short = model.joint(i).name
    return JointSlot(i, f"robot_{short}", short, kind, slice(q, q + nq), slice(v, v + nv))


def _actuator(model: mujoco.MjModel, i: int, joints: tuple[JointSlot, ...]) -> ActuatorSlot:
    short = model.actuator(i).name
    driven = joints[model.actuator_trnid[i, 0]] if model.actuator_trntype[i] in _JOINT_DRIVES else None
    return ActuatorSlot(i, f"robot_{short}", short, "motor", driven, None)

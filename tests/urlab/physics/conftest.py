"""Models for the physics tests."""

from collections.abc import Callable, Iterator
from typing import Any

import mujoco
import pytest

from urlab.physics import Engine
from urlab.physics.engine import route_mujoco_log
from urlab.robots import model_path

PENDULUM = """
<mujoco>
  <option timestep="0.002"/>
  <worldbody>
    <body name="arm" pos="0 0 1"><joint name="swing" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 .3 0 0" size=".02"/>
    </body>
    <body name="hand" mocap="true" pos="0 0 2"><geom size=".01" contype="0" conaffinity="0"/></body>
  </worldbody>
  <actuator><intvelocity name="m" joint="swing" actrange="-1 1" kp="1"/></actuator>
  <sensor><jointpos joint="swing"/></sensor>
</mujoco>
"""
ON_THE_FLOOR = """
<mujoco>
  <include file="{file}"/>
  <worldbody>
    <geom type="plane" size="5 5 .1"/>
    <body pos="1 0 .3"><freejoint/><geom type="box" size=".1 .1 .1" euler="20 30 0"/></body>
    <body pos="1 .02 .6"><freejoint/><geom size=".1"/></body>
  </worldbody>
</mujoco>
"""


@pytest.fixture(autouse=True)
def mujocos_words_go_to_the_log() -> Iterator[None]:
    """Never into a file in the current folder."""
    before = mujoco.MjLogConfig.get()
    route_mujoco_log()
    yield
    mujoco.set_mju_user_warning(None)
    mujoco.MjLogConfig.set(before)


@pytest.fixture
def pendulum() -> Any:
    """A model of one joint with an activation, a mocap body and a sensor."""
    return mujoco.MjModel.from_xml_string(PENDULUM)


@pytest.fixture
def engine(pendulum: Any) -> Engine:
    """The pendulum, at its start."""
    return Engine(pendulum)


@pytest.fixture(scope="session")
def busy_model() -> Callable[[str], Any]:
    """``busy_model("panda")``: a shipped robot on a floor, with things that fall and touch."""

    def load(name: str) -> Any:
        return mujoco.MjModel.from_xml_string(ON_THE_FLOOR.format(file=model_path(name)))

    return load

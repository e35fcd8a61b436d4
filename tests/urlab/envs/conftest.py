"""A small scene for environments."""

from pathlib import Path

import pytest

CART = """
<mujoco model="cart"><option timestep="0.01"/>
  <worldbody><light pos="0 0 3"/>
    <camera name="side" pos="0 -3 1" xyaxes="1 0 0 0 .3 1" resolution="32 24"/>
    <body name="cart"><joint name="slide" type="slide" axis="1 0 0"/><geom type="box" size=".2 .1 .1" mass="1"/>
      <body name="pole" pos="0 0 .1"><joint name="hinge" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 0 0 .6" size=".03" mass=".1"/></body>
    </body></worldbody>
  <actuator><motor name="push" joint="slide" gear="10" ctrlrange="-1 1"/></actuator>
  <sensor><jointpos name="angle" joint="hinge"/><accelerometer name="shake" site="tip"/></sensor>
  <keyframe><key name="tilted" qpos="0 .2"/></keyframe>
</mujoco>""".replace('size=".03" mass=".1"/></body>', 'size=".03" mass=".1"/><site name="tip" pos="0 0 .6"/></body>')


@pytest.fixture
def cart(tmp_path: Path) -> Path:
    """A cart with a pole, as a model file."""
    file = tmp_path / "cart.xml"
    file.write_text(CART)
    return file

"""Your own MJCF, with a controller from a file beside it, composed with a shipped model."""

import tempfile
from pathlib import Path

import urlab

ROBOT = """
<mujoco model="pendulum">
  <worldbody>
    <body name="arm" pos="0 0 1">
      <joint name="swing" type="hinge" axis="0 1 0" damping="0.05"/>
      <geom type="capsule" fromto="0 0 0 0 0 -0.5" size="0.03" mass="1"/>
    </body>
  </worldbody>
  <actuator><motor name="swing" joint="swing"/></actuator>
  <sensor><jointpos name="angle" joint="swing"/></sensor>
</mujoco>
"""
SIDECAR = """
[controller]
kind = "pd"
[controller.params]
default_kp = 40.0
default_kv = 4.0
"""

with tempfile.TemporaryDirectory() as folder:
    model = Path(folder) / "pendulum.xml"
    model.write_text(ROBOT)
    model.with_name("pendulum.urlab.toml").write_text(SIDECAR)
    with urlab.launch([model, "floor"], project=folder) as client:
        pendulum = client.articulations["pendulum"]
        pendulum.set_ctrl({"swing": 0.8})
        client.step(n_steps=1000)
        print(f"angle {pendulum.sensors['angle'].latest[0]:.3f} rad of 0.8 asked: gravity pulls the rest")

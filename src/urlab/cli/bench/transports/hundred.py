"""A scene of one hundred bodies: ten chains of ten links that swing from a beam, every joint with a motor.

Each link has a hinge, a torque motor, a joint angle and a joint velocity sensor; each chain ends in a gyroscope and an
accelerometer. Links do not collide. So there are 100 bodies, joints and motors and 260 sensor values: what such a
scene costs on the wire shows, and physics without contacts does not hide it.
"""

from pathlib import Path

CHAINS = 10
LINKS = 10

_HEAD = """<mujoco model="hundred">
  <option timestep="0.002" integrator="implicitfast"/>
  <default>
    <joint damping="0.05" armature="0.002"/>
    <geom type="capsule" fromto="0 0 0 0.1 0 0" size="0.015" contype="0" conaffinity="0"/>
    <motor ctrlrange="-1 1"/>
  </default>
"""


def write_hundred(folder: Path) -> Path:
    """Write the model's file; its path."""
    path = folder / "hundred.xml"
    path.write_text(hundred_mjcf(), encoding="utf-8")
    return path


def hundred_mjcf() -> str:
    """The model as MJCF."""
    chains = "\n".join(_chain(number) for number in range(CHAINS))
    names = [f"c{chain}_{link}" for chain in range(CHAINS) for link in range(LINKS)]
    motors = "".join(f'<motor name="m_{name}" joint="j_{name}"/>' for name in names)
    joints = "".join(f'<jointpos joint="j_{name}"/><jointvel joint="j_{name}"/>' for name in names)
    tips = "".join(f'<gyro site="tip_{chain}"/><accelerometer site="tip_{chain}"/>' for chain in range(CHAINS))
    return (
        f"{_HEAD}  <worldbody>\n{chains}\n  </worldbody>\n"
        f"  <actuator>{motors}</actuator>\n  <sensor>{joints}{tips}</sensor>\n</mujoco>\n"
    )


def _chain(number: int) -> str:
    """A chain that begins stretched out, so that it swings; its hinges bend sideways and up in turn."""
    inner = f'<site name="tip_{number}" pos="0.1 0 0"/>'
    for link in reversed(range(LINKS)):
        place = f"0 {0.2 * number:g} 1.5" if link == 0 else "0.1 0 0"
        axis = "0 1 0" if link % 2 == 0 else "0 0 1"
        name = f"c{number}_{link}"
        inner = f'<body name="{name}" pos="{place}"><joint name="j_{name}" axis="{axis}"/><geom/>{inner}</body>'
    return f"    {inner}"

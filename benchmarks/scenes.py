"""The scenes that are measured, and the same physics with nothing around it."""

import copy
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from urlab_client import URLabArticulation, URLabClient

HUNDRED = "hundred"
SCENES: dict[str, tuple[str, ...]] = {
    "arm": ("panda",),
    "quadruped": ("quadruped", "floor"),
    "demo": ("demo",),
    HUNDRED: (),
}
"""Scene -> what `urlab serve` is told to open. The quadruped gets a floor: without one it would fall for ever.

`hundred` is written when it is needed: ten chains of ten links that swing from a beam, each link with a hinge, a motor,
a joint angle and a joint velocity sensor; each chain ends in a gyroscope and an accelerometer. Links do not collide. So
what such a scene costs on the wire shows, and physics without contacts does not hide it.
"""

_CHAINS = _LINKS = 10
_HUNDRED_HEAD = """<mujoco model="hundred">
  <option timestep="0.002" integrator="implicitfast"/>
  <default>
    <joint damping="0.05" armature="0.002"/>
    <geom type="capsule" fromto="0 0 0 0.1 0 0" size="0.015" contype="0" conaffinity="0"/>
    <motor ctrlrange="-1 1"/>
  </default>
"""


def scene_targets(scene: str, folder: Path) -> tuple[str, ...]:
    """What `urlab serve` is told to open; ``folder`` is for a model that is not shipped."""
    if scene != HUNDRED:
        return SCENES[scene]
    path = folder / "hundred.xml"
    path.write_text(hundred_mjcf(), encoding="utf-8")
    return (str(path),)


def hundred_mjcf() -> str:
    """One hundred bodies, joints and motors, and 260 sensor values, as MJCF."""
    chains = "\n".join(_chain(number) for number in range(_CHAINS))
    names = [f"c{chain}_{link}" for chain in range(_CHAINS) for link in range(_LINKS)]
    motors = "".join(f'<motor name="m_{name}" joint="j_{name}"/>' for name in names)
    joints = "".join(f'<jointpos joint="j_{name}"/><jointvel joint="j_{name}"/>' for name in names)
    tips = "".join(f'<gyro site="tip_{chain}"/><accelerometer site="tip_{chain}"/>' for chain in range(_CHAINS))
    return (
        f"{_HUNDRED_HEAD}  <worldbody>\n{chains}\n  </worldbody>\n"
        f"  <actuator>{motors}</actuator>\n  <sensor>{joints}{tips}</sensor>\n</mujoco>\n"
    )


def _chain(number: int) -> str:
    """A chain that begins stretched out, so that it swings; its hinges bend sideways and up in turn."""
    inner = f'<site name="tip_{number}" pos="0.1 0 0"/>'
    for link in reversed(range(_LINKS)):
        place = f"0 {0.2 * number:g} 1.5" if link == 0 else "0.1 0 0"
        axis = "0 1 0" if link % 2 == 0 else "0 0 1"
        name = f"c{number}_{link}"
        inner = f'<body name="{name}" pos="{place}"><joint name="j_{name}" axis="{axis}"/><geom/>{inner}</body>'
    return f"    {inner}"


class PlainLoop:
    """``mj_step`` in a loop, with the controls that a server applied at each step, (steps, nu).

    The state is read into lists, as a reply needs it. Replaying the controls keeps the states equal to the server's
    where a controller computes them.
    """

    def __init__(self, client: URLabClient, steps: int) -> None:
        self._model = copy.copy(client.model)
        self._controls = list(_record_controls(client, steps))
        self._done = 0
        self.data = mujoco.MjData(self._model)
        self.n_steps = 1

    def reset(self) -> None:
        """Back to the start, as the server's reset does it."""
        mujoco.mj_resetData(self._model, self.data)
        mujoco.mj_forward(self._model, self.data)
        self._done = 0

    def once(self) -> tuple[list[float], list[float], list[float]]:
        """`n_steps` steps, then qpos, qvel and sensordata."""
        model, data = self._model, self.data
        for controls in self._controls[self._done : self._done + self.n_steps]:
            data.ctrl[:] = controls
            mujoco.mj_step(model, data)
        self._done += self.n_steps
        return data.qpos.tolist(), data.qvel.tolist(), data.sensordata.tolist()


def restart(client: URLabClient) -> None:
    """Go back to the start, and set every robot's setpoints to the pose it starts in."""
    client.reset()
    for robot in client.articulations.values():
        robot.set_ctrl({name: _start_of(robot, name, client.model) for name in robot.actuators})


def _start_of(robot: URLabArticulation, actuator: str, model: Any) -> float:
    driven = robot.actuators[actuator]
    joint = robot.joints.get(driven.joint or "")
    if joint is not None:
        return float(model.qpos0[joint.qpos_offset])
    return max(driven.ctrlrange or (0.0, 0.0))


def _record_controls(client: URLabClient, steps: int) -> NDArray[np.float64]:
    """``data.ctrl`` at each of the first ``steps`` steps after a reset, (steps, nu)."""
    restart(client)
    rows = np.zeros((steps, client.model.nu))
    places = [(one, [actuator.id for actuator in one.actuators.values()]) for one in client.articulations.values()]
    for row in rows:
        client.step(1)
        for articulation, ids in places:
            row[ids] = articulation.last_applied_ctrl
    return rows


def shows(client: URLabClient, data: Any) -> bool:
    """Whether a client shows the state of the robots in ``data``, to the last bit.

    It does not look at ``client.data``, which would make every later step slower: most clients never do.
    """
    return client.sim_time == data.time and all(
        np.array_equal(robot.qpos_array, _joined(data.qpos, robot, "qpos"))
        and np.array_equal(robot.qvel_array, _joined(data.qvel, robot, "qvel"))
        for robot in client.articulations.values()
    )


def _joined(vector: Any, robot: URLabArticulation, kind: str) -> list[float]:
    """A robot's numbers out of a whole state vector, joint by joint."""
    return [
        float(vector[getattr(joint, f"{kind}_offset") + i])
        for joint in robot.joints.values()
        for i in range(getattr(joint, f"{kind}_dim"))
    ]

"""What surrounds every task, as models: a room with its lights, and the table in its middle.

Floor and walls are plain, and end: software takes half as long again for an endless, textured floor. Cameras see a wall
wherever they look, so depths are finite.
"""

from urlab.evaluation.tasks.objects import TABLE_POSE_W, TABLE_SIZE_M

_FRICTION = 0.7
_LEG_M = 0.06
_ROOM_M = 6.0
_WALL_M = 3.0


def room_mjcf() -> str:
    """Floor, walls (for the eye only) and two lights beside MuJoCo's headlight."""
    half, high = _ROOM_M / 2, _WALL_M / 2
    sides = [(half, 0.0, 0.05, half), (-half, 0.0, 0.05, half), (0.0, half, half, 0.05), (0.0, -half, half, 0.05)]
    walls = "\n".join(_wall(number, *side, high) for number, side in enumerate(sides, 1))
    return f"""<mujoco model="floor">
  <worldbody>
    <body name="floor">
      <geom name="plane" type="plane" size="{half} {half} 0.05" rgba="0.42 0.45 0.49 1" friction="0.9 0.01 0.001"/>
{walls}
      <light name="sun" type="directional" pos="-1.8 -1.3 6" dir="0.35 0.25 -0.9" ambient="0.16 0.16 0.16"
             diffuse="0.46 0.46 0.44" specular="0.1 0.1 0.1"/>
      <light name="fill" type="directional" pos="0 0 6" dir="-0.6 -0.4 -0.5" diffuse="0.28 0.29 0.32"
             specular="0 0 0" castshadow="false"/>
    </body>
  </worldbody>
</mujoco>
"""


def table_mjcf() -> str:
    """The table where goals expect it, in world coordinates. It is fixed; the legs are for the eye only."""
    (x, y, thickness), (px, py, pz) = TABLE_SIZE_M, TABLE_POSE_W.pos
    legs = "\n".join(_leg(number, dx, dy, pz - thickness / 2) for number, (dx, dy) in enumerate(_corners(x, y), 1))
    return f"""<mujoco model="table">
  <asset>
    <material name="top" rgba="0.66 0.62 0.56 1" specular="0.1" shininess="0.2"/>
    <material name="leg" rgba="0.32 0.34 0.37 1" specular="0.3" shininess="0.4"/>
  </asset>
  <worldbody>
    <body name="table" pos="{px} {py} 0">
      <geom name="top" type="box" pos="0 0 {pz}" size="{x / 2} {y / 2} {thickness / 2}" material="top"
            friction="{_FRICTION} 0.01 0.0005" solref="0.006 1" solimp="0.95 0.99 0.001"/>
{legs}
    </body>
  </worldbody>
</mujoco>
"""


def _corners(x: float, y: float) -> list[tuple[float, float]]:
    return [(dx * (x - 2 * _LEG_M) / 2, dy * (y - 2 * _LEG_M) / 2) for dx in (-1, 1) for dy in (-1, 1)]


def _leg(number: int, x: float, y: float, height: float) -> str:
    return (
        f'      <geom name="leg_{number}" type="box" pos="{x} {y} {height / 2}" '
        f'size="{_LEG_M / 2} {_LEG_M / 2} {height / 2}" material="leg" contype="0" conaffinity="0"/>'
    )


def _wall(number: int, x: float, y: float, half_x: float, half_y: float, high: float) -> str:
    return (
        f'      <geom name="wall_{number}" type="box" pos="{x} {y} {high}" size="{half_x} {half_y} {high}" '
        f'rgba="0.74 0.76 0.79 1" contype="0" conaffinity="0"/>'
    )

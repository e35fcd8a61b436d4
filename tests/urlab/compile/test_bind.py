"""From a compiled model to names, ids and offsets."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import pytest

from urlab.compile import CompiledArticulation, compile_scene
from urlab.compile.assemble import assemble
from urlab.compile.bind import bind_articulation, bind_entities, bind_joints, find_owners, owner_of
from urlab.compile.blueprint import compile_spec
from urlab.compile.library import Library
from urlab.scene.blueprint_record import file_record
from urlab.scene.level import Actor, Level
from urlab_wire.enums import ActuatorType, CameraMode

Write = Callable[..., Path]
Compose = Callable[..., Any]

KINDS = """
<mujoco model="kinds">
  <worldbody>
    <body name="a" pos="0 0 1"><freejoint name="root"/><geom name="g" size=".1"/><site name="s"/>
      <body name="b" pos=".3 0 0"><joint name="h" range="-60 60"/><geom size=".1"/>
        <body name="c" pos=".3 0 0"><joint name="ball" type="ball"/><geom size=".1"/>
          <body name="d" pos=".3 0 0"><joint name="sl" type="slide"/><geom size=".1"/></body>
        </body>
      </body>
    </body>
  </worldbody>
  <tendon><fixed name="t"><joint joint="h" coef="1"/></fixed></tendon>
  <actuator>
    <motor name="motor" joint="h"/>
    <position name="position" joint="sl" kp="10"/>
    <velocity name="velocity" jointinparent="ball" kv="3"/>
    <intvelocity name="intvelocity" joint="h" kp="3" actrange="-1 1"/>
    <damper name="damper" tendon="t" kv="2" ctrlrange="0 1"/>
    <cylinder name="cylinder" site="s" timeconst=".3" area=".1"/>
    <muscle name="muscle" joint="h" lengthrange=".1 3"/>
    <adhesion name="adhesion" body="b" ctrlrange="0 1"/>
    <dcmotor name="dcmotor" joint="sl" resistance="1" motorconst=".05"/>
    <general name="general" joint="h" dyntype="filter" dynprm="1"/>
  </actuator>
  <sensor>
    <gyro name="gyro" site="s"/><jointpos name="angle" joint="h"/><framequat name="q" objtype="site" objname="s"/>
  </sensor>
</mujoco>
"""

CAMERAS = """
<mujoco model="cameras">
  <worldbody>
    <body name="a"><joint/><geom size=".1"/>
      <camera name="plain" fovy="50"/>
      <camera name="small" resolution="64 48"/>
      <camera name="deep" output="depth"/>
      <camera name="both" output="rgb depth"/>
      <camera name="told" resolution="64 48" output="depth"/>
    </body>
  </worldbody>
</mujoco>
"""
CAMERAS_SIDECAR = """
[cameras.told]
mode = "semantic"
resolution = [320, 240]
"""

UNNAMED = """
<mujoco>
  <worldbody>
    <body pos="0 0 1"><freejoint/><geom size=".1"/><geom size=".1"/><site/><camera/><light/>
      <body><joint/><geom size=".1" name="geom_1"/></body>
    </body>
  </worldbody>
  <actuator><motor joint="joint_1"/><motor name="actuator_0" joint="joint_1"/></actuator>
  <sensor><clock/></sensor>
</mujoco>
"""


@pytest.fixture
def kinds(write: Write, compose: Compose) -> Any:
    path = write("kinds", KINDS)
    return compose({"other": path, "robot": path})


def robot_of(scene: Any) -> CompiledArticulation:
    robot = scene.articulation("robot")
    assert robot is not None
    return robot


def test_actuators_are_called_what_their_author_wrote(kinds: Any) -> None:
    found = {one.short: one.kind for one in robot_of(kinds).actuators}
    assert found == {**{kind.value: kind.value for kind in ActuatorType}, "general": "motor"}


GENERALS = {
    'gainprm="2"': "motor",
    'gainprm="2" dyntype="filter" dynprm=".1"': "motor",
    'gainprm="10" biastype="affine" biasprm="0 -10 -1"': "position",
    'gainprm="10" biastype="affine" biasprm="0 -10 0"': "position",
    'gainprm="10" biastype="affine" biasprm="0 -10 -1" dyntype="filterexact" dynprm=".1"': "position",
    'gainprm="3" biastype="affine" biasprm="0 0 -3"': "velocity",
    'gainprm="10" biastype="affine" biasprm="0 -10 0" dyntype="integrator" actrange="-1 1"': "intvelocity",
    'gainprm="10" biastype="affine" biasprm="0 -9 -1"': "general",
    'gainprm="10" biastype="affine" biasprm=".1 -10 -1"': "general",
    'gainprm="10" biastype="affine" biasprm="0 -10 1"': "position",  # to MuJoCo a positive number is a damping ratio
    'gaintype="affine" gainprm="0 0 -2"': "general",
}


@pytest.mark.parametrize(("attributes", "kind"), GENERALS.items())
def test_a_general_actuator_is_called_what_it_amounts_to(
    attributes: str, kind: str, write: Write, compose: Compose
) -> None:
    text = f"""<mujoco><worldbody><body><joint name="j"/><geom size=".1"/></body></worldbody>
      <actuator><general name="it" joint="j" {attributes}/></actuator></mujoco>"""
    assert robot_of(compose({"robot": write("one", text)})).actuators[0].kind == kind


def test_an_actuator_whose_plugin_makes_the_force_is_general(write: Write, compose: Compose) -> None:
    """To MuJoCo it has a fixed gain and no bias, as a motor has; but its control is no force."""
    text = """<mujoco><extension><plugin plugin="mujoco.pid"><instance name="i"><config key="kp" value="4"/></instance>
      </plugin></extension><worldbody><body><joint name="j"/><geom size=".1"/></body></worldbody>
      <actuator><plugin name="it" joint="j" plugin="mujoco.pid" instance="i" actdim="0"/></actuator></mujoco>"""
    assert robot_of(compose({"robot": write("one", text)})).actuators[0].kind == "general"


def test_actuators_know_the_joint_that_they_drive(kinds: Any) -> None:
    found = {one.short: one.joint.short if one.joint else None for one in robot_of(kinds).actuators}
    assert found == {
        "motor": "h", "position": "sl", "velocity": "ball", "intvelocity": "h", "damper": None, "cylinder": None,
        "muscle": "h", "adhesion": None, "dcmotor": "sl", "general": "h",
    }  # fmt: skip


def test_actuators_know_their_activation(kinds: Any) -> None:
    model = kinds.model
    for one in robot_of(kinds).actuators:
        address = int(model.actuator(one.name).actadr[0])
        assert one.act_index == (None if address < 0 else address), one.name
    with_state = [one.short for one in robot_of(kinds).actuators if one.act_index is not None]
    assert with_state == ["intvelocity", "cylinder", "muscle", "general"]


def test_joints_know_where_their_numbers_are(kinds: Any) -> None:
    found = [(joint.short, joint.kind, joint.qpos, joint.qvel) for joint in robot_of(kinds).joints]
    assert found == [
        ("root", 0, slice(13, 20), slice(11, 17)), ("h", 3, slice(20, 21), slice(17, 18)),
        ("ball", 1, slice(21, 25), slice(18, 21)), ("sl", 2, slice(25, 26), slice(21, 22)),
    ]  # fmt: skip
    assert kinds.joints[4].name == kinds.joints[4].short == "robot_root"
    assert len(kinds.joints) == kinds.model.njnt


def test_sensors_know_where_their_numbers_are(kinds: Any) -> None:
    assert [(one.name, one.short, one.data) for one in robot_of(kinds).sensors] == [
        ("robot_gyro", "gyro", slice(8, 11)),
        ("robot_angle", "angle", slice(11, 12)),
        ("robot_q", "q", slice(12, 16)),
    ]


def test_ids_ascend(kinds: Any) -> None:
    robot = robot_of(kinds)
    for slots in (robot.joints, robot.actuators, robot.sensors, robot.bodies):
        ids = [slot.id for slot in slots]
        assert ids == sorted(ids)


def test_a_camera_is_what_the_model_says_unless_the_sidecar_says_otherwise(write: Write, compose: Compose) -> None:
    write("cameras.urlab.toml", CAMERAS_SIDECAR)
    scene = compose({"robot": write("cameras", CAMERAS)})
    assert {one.short: (one.mode, one.resolution) for one in robot_of(scene).cameras} == {
        "plain": (CameraMode.REAL, (640, 480)),
        "small": (CameraMode.REAL, (64, 48)),
        "deep": (CameraMode.DEPTH, (640, 480)),
        "both": (CameraMode.REAL, (640, 480)),
        "told": (CameraMode.SEMANTIC, (320, 240)),
    }
    assert robot_of(scene).cameras[0].fovy == 50
    assert scene.global_cameras == ()


def test_cameras_of_things_are_global(write: Write, compose: Compose) -> None:
    mast = '<mujoco><worldbody><body><geom size=".1"/><camera name="eye"/></body></worldbody></mujoco>'
    scene = compose({"mast": write("mast", mast), "panda": "panda"})
    assert [(one.name, one.short) for one in scene.global_cameras] == [("mast_eye", "eye")]
    assert "mast_eye" not in [one.name for one in scene.articulation("panda").cameras]


def test_every_element_has_a_name(write: Write, compose: Compose) -> None:
    path = write("unnamed", UNNAMED)
    model = compose({"robot": path, "robot-2": path}).model
    named = {
        "body": model.nbody, "joint": model.njnt, "geom": model.ngeom, "site": model.nsite, "camera": model.ncam,
        "light": model.nlight, "actuator": model.nu, "sensor": model.nsensor,
    }  # fmt: skip
    for kind, count in named.items():
        names = [getattr(model, kind)(index).name for index in range(count)]
        assert all(names), kind
        assert len(set(names)) == count, kind


def test_names_that_were_made_up_never_take_an_authors(write: Write, compose: Compose) -> None:
    scene = compose({"robot": write("unnamed", UNNAMED)})
    robot = robot_of(scene)
    assert [joint.short for joint in robot.joints] == ["free", "joint_1"]
    assert [one.short for one in robot.actuators] == ["actuator_0_2", "actuator_0"]
    assert [scene.model.geom(i).name for i in range(3)] == ["robot_geom_0", "robot_geom_1_2", "robot_geom_1"]


def test_names_find_their_owner_by_prefix() -> None:
    actors = frozenset({"arm", "arm-2", "my_arm"})
    owners = {name: owner_of(name, actors) for name in ("arm", "arm_x", "arm-2_x", "my_arm_a_b", "arms_x", "my", "")}
    assert owners == {
        "arm": "arm", "arm_x": "arm", "arm-2_x": "arm-2", "my_arm_a_b": "my_arm", "arms_x": None, "my": None, "": None,
    }  # fmt: skip


def test_binding_looks_at_each_element_a_fixed_number_of_times(write: Write) -> None:
    """What one actor costs is the same among 16 and among 64."""
    path = str(write("one", '<mujoco><worldbody><body><joint/><geom size=".1"/></body></worldbody></mujoco>'))
    assert _lookups(path, 64) / 64 <= 1.1 * _lookups(path, 16) / 16


def test_256_robots_compile(write: Write) -> None:
    xml = """
    <mujoco>
      <worldbody><body name="a"><joint name="j"/><geom size=".1"/></body></worldbody>
      <actuator><motor name="m" joint="j"/></actuator>
      <sensor><jointpos name="s" joint="j"/></sensor>
      <keyframe><key name="k" qpos="1"/></keyframe>
    </mujoco>
    """
    path = str(write("one", xml))
    scene = compile_scene(
        Level("l", tuple(Actor(f"one-{i}", path, keyframe="k") for i in range(256))), Library(file_record)
    )
    assert len(scene.articulations) == scene.model.nu == scene.model.nsensor == 256
    assert [one.joints[0].id for one in scene.articulations] == list(range(256))
    assert [one.start_key for one in scene.articulations] == list(range(256))


def _lookups(path: str, count: int) -> int:
    """How many named elements binding asks the model for."""
    assembly = assemble(Level("l", tuple(Actor(f"one-{i}", path) for i in range(count))), Library(file_record))
    model = _Counted(compile_spec(assembly.root)[0])
    owned = find_owners(model, (one.actor.name for one in assembly.placed))
    for one in assembly.placed:
        bind_articulation(model, assembly.root, one, owned)
        list(bind_entities(model, one, owned))
    bind_joints(model)
    return model.count


class _Counted:
    """A model that counts how often it is looked at."""

    def __init__(self, model: mujoco.MjModel) -> None:
        self._model, self.count = model, 0

    def __getattr__(self, name: str) -> Any:
        self.count += 1
        return getattr(self._model, name)

"""A compiled scene as XML and files: reloading them gives the same model, bit for bit."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import pytest

from urlab.compile.export import export_mjcf, save_debug_files
from urlab.geometry import Pose, normalised
from urlab.physics.options import apply_options, check_options

Write = Callable[..., Path]
Compose = Callable[..., Any]
Differ = Callable[..., list[str]]

THERE = Pose((1.0, -2.0, 0.5), normalised((0.5, -0.1, 0.7, 0.3)))

ROBOT = """
<mujoco model="robot">
  <compiler meshdir="shapes" texturedir="skins"/>
  <default>
    <geom friction=".5 .1 .1"/><default class="link"><geom rgba="1 0 0 1"/><joint damping="2"/></default>
  </default>
  <asset>
    <mesh name="part" file="part.stl" scale="{scale} 1 1"/><mesh file="deep/part.stl" name="other"/>
    <mesh file="plain.stl"/>
    <texture name="cover" type="2d" file="part.png"/><texture name="cube" type="cube" file="deep/part.png"/>
    <material name="m" texture="cover"/><material name="c" texture="cube"/>
    <hfield name="hills" file="hills.png" size="1 1 .2 .1"/>
  </asset>
  <worldbody>
    <geom type="hfield" hfield="hills" material="c"/>
    <body name="a" pos="0 0 1" euler="10 20 30" childclass="link">
      <joint name="j" range="-33.3 44.4" axis="1 2 3"/>
      <geom type="mesh" mesh="part" material="m"/><geom type="mesh" mesh="other"/><geom type="mesh" mesh="plain"/>
      <site name="s" size=".01"/>
    </body>
  </worldbody>
  <actuator><position name="p" joint="j" kp="33" dampratio="1"/></actuator>
  <sensor><user dim="2" needstage="vel"/><framepos objtype="site" objname="s"/></sensor>
  <keyframe><key name="k" qpos=".123456789012345" ctrl=".1"/></keyframe>
</mujoco>
"""


@pytest.fixture
def robots(write: Write, tetrahedron: Any, picture: Any, tmp_path: Path) -> dict[str, Path]:
    """Two robots in two folders whose files have the same names and different contents."""
    found = {}
    for number, name in enumerate(("left", "right"), start=1):
        folder = tmp_path / name
        tetrahedron(folder / "shapes" / "part.stl", 0.1 * number)
        tetrahedron(folder / "shapes" / "deep" / "part.stl", 0.25 * number)
        tetrahedron(folder / "shapes" / "plain.stl", 0.3 * number)
        picture(folder / "skins" / "part.png", 40 * number)
        picture(folder / "skins" / "deep" / "part.png", 60 * number)
        picture(folder / "shapes" / "hills.png", 10 * number)
        found[name] = write("robot", ROBOT.format(scale=number), name)
    return found


def reload(scene: Any) -> Any:
    xml, assets = export_mjcf(scene)
    return mujoco.MjModel.from_xml_string(xml, assets)


@pytest.mark.parametrize("name", ["panda", "quadruped", "terrain", "table", "box", "target", "pallet", "floor"])
@pytest.mark.parametrize("pose", [Pose(), THERE], ids=["at the origin", "moved"])
def test_shipped_models_come_back_the_same(name: str, pose: Pose, compose: Compose, differ: Differ) -> None:
    scene = compose({"it": (name, pose)})
    assert differ(scene.model, reload(scene)) == []


def test_a_whole_level_comes_back_the_same(compose: Compose, differ: Differ) -> None:
    names = ("floor", "table", "panda", "quadruped", "box", "pallet", "target", "terrain")
    scene = compose({**{name: name for name in names}, "panda-2": ("panda", THERE), "box-2": ("box", THERE)})
    assert differ(scene.model, reload(scene)) == []


def test_names_come_back_the_same(compose: Compose) -> None:
    scene = compose({"panda": "panda", "box": "box"})
    assert reload(scene).names == scene.model.names


def test_files_of_equal_names_stay_apart(robots: dict[str, Path], compose: Compose, differ: Differ) -> None:
    scene = compose({"left": robots["left"], "right": (robots["right"], THERE), "left-2": (robots["left"], THERE)})
    xml, assets = export_mjcf(scene)
    assert differ(scene.model, mujoco.MjModel.from_xml_string(xml, assets), paths=True) == []
    assert len(assets) == 12
    assert len(set(assets.values())) == 12
    assert all("/" not in name for name in assets)


def test_an_export_needs_nothing_but_itself(
    robots: dict[str, Path], compose: Compose, differ: Differ, tmp_path: Path
) -> None:
    scene = compose(dict(robots))
    xml, assets = export_mjcf(scene)
    for path in [*tmp_path.rglob("*.stl"), *tmp_path.rglob("*.png"), *tmp_path.rglob("*.xml")]:
        path.unlink()
    assert differ(scene.model, mujoco.MjModel.from_xml_string(xml, assets), paths=True) == []


def test_a_model_within_a_model_keeps_its_own_files(
    write: Write, compose: Compose, differ: Differ, tetrahedron: Any, tmp_path: Path
) -> None:
    tetrahedron(tmp_path / "mine" / "part.stl", 0.1)
    tetrahedron(tmp_path / "tool" / "shapes" / "Part.stl", 0.3)
    write(
        "tool",
        """
        <mujoco><compiler meshdir="shapes"/><asset><mesh name="part" file="Part.stl"/></asset>
          <worldbody><body name="tip"><geom type="mesh" mesh="part"/></body></worldbody></mujoco>
        """,
        "tool",
    )
    robot = """
        <mujoco><compiler meshdir="mine"/>
          <asset><mesh name="part" file="part.stl"/><model name="tool" file="tool/tool.xml"/></asset>
          <worldbody><body name="a"><joint/><geom type="mesh" mesh="part"/>
            <attach model="tool" body="tip" prefix="in_"/></body></worldbody></mujoco>
    """
    scene = compose({"robot": write("robot", robot)})
    xml, assets = export_mjcf(scene)
    assert sorted(assets) == ["Part_2.stl", "part.stl"]
    assert differ(scene.model, mujoco.MjModel.from_xml_string(xml, assets), paths=True) == []


def test_a_cube_of_six_pictures_comes_back_the_same(
    write: Write, compose: Compose, differ: Differ, picture: Any, tmp_path: Path
) -> None:
    sides = ("right", "left", "up", "down", "front", "back")
    for number, side in enumerate(sides):
        picture(tmp_path / "skins" / f"{side}.png", 40 * number)
    files = " ".join(f'file{side}="{side}.png"' for side in sides)
    robot = f"""
        <mujoco><compiler texturedir="skins"/><asset><texture name="t" type="cube" {files}/></asset>
          <worldbody><body name="a"><joint/><geom size=".1"/></body></worldbody></mujoco>
    """
    scene = compose({"robot": write("robot", robot)})
    xml, assets = export_mjcf(scene)
    assert sorted(assets) == sorted(f"{side}.png" for side in sides)
    assert differ(scene.model, mujoco.MjModel.from_xml_string(xml, assets), paths=True) == []


def test_options_in_force_are_exported(compose: Compose, differ: Differ) -> None:
    scene = compose({"panda": "panda"})
    patch = {
        "timestep": 0.00123456789,
        "gravity": [0.1, 0, -1.62],
        "solver": "cg",
        "enable_sleep": True,
        "wind": [1, 2, 3],
    }
    apply_options(scene.model.opt, check_options(patch))
    scene.model.opt.o_friction[:] = (0.5, 0.4, 0.3, 0.2, 0.1)
    again = reload(scene)
    assert differ(scene.model, again) == []
    assert again.opt.gravity.tolist() == [0.1, 0, -1.62]


def test_exporting_twice_gives_the_same(robots: dict[str, Path], compose: Compose) -> None:
    scene = compose(dict(robots))
    assert export_mjcf(scene) == export_mjcf(scene)


def test_debug_files_load_again(robots: dict[str, Path], compose: Compose, differ: Differ, tmp_path: Path) -> None:
    scene = compose({"left": robots["left"], "right": (robots["right"], THERE), "box": "box"})
    xml, mjb = save_debug_files(scene, tmp_path / "Saved" / "URLab")
    assert (xml.name, mjb.name) == ("scene_compiled.xml", "scene_compiled.mjb")
    different = differ(scene.model, mujoco.MjModel.from_binary_path(str(mjb)))
    assert [one for one in different if not one.startswith("signature")] == []
    again = mujoco.MjModel.from_xml_path(str(xml))
    assert again.names == scene.model.names
    assert (again.nq, again.nmeshvert, again.ntexdata) == (scene.model.nq, scene.model.nmeshvert, scene.model.ntexdata)


def test_debug_files_are_replaced(compose: Compose, tmp_path: Path) -> None:
    save_debug_files(compose({"panda": "panda"}), tmp_path)
    files = save_debug_files(compose({"box": "box"}), tmp_path)
    assert mujoco.MjModel.from_xml_path(str(files[0])).nq == 7
    assert mujoco.MjModel.from_binary_path(str(files[1])).nq == 7


def test_sizes_in_the_old_and_in_the_new_way_come_back_the_same(write: Write, compose: Compose, differ: Differ) -> None:
    text = "<mujoco model='{}'><size {}/><worldbody><body><joint/><geom size='.1'/></body></worldbody></mujoco>"
    old = write("old", text.format("old", "njmax='500' nconmax='100'"))
    new = write("new", text.format("new", "memory='5M'"))
    scene = compose({"old": old, "new": (new, THERE)})
    xml, files = export_mjcf(scene)
    assert differ(mujoco.MjModel.from_xml_string(xml, files), scene.model) == []


KINDS = {
    "tendons, muscles, custom data": """<worldbody><site name="w" pos="0 0 1"/><body name="b"><joint name="j"/>
      <geom name="g" type="cylinder" size=".05 .1"/><site name="s"/></body></worldbody>
      <tendon><spatial name="sp"><site site="w"/><geom geom="g"/><site site="s"/></spatial>
        <fixed name="f"><joint joint="j" coef="2"/></fixed></tendon>
      <actuator><muscle name="m" tendon="sp" lengthrange=".1 2"/></actuator>
      <sensor><user name="u" dim="3"/><tendonpos tendon="sp"/></sensor>
      <custom><numeric name="n" data="1 2 3"/><text name="x" data="hello"/></custom>""",
    "flexes": """<worldbody><body><joint/><geom size=".1"/></body><flexcomp name="c" type="grid" count="3 3 3" dim="3"
      spacing=".1 .1 .1" radius=".01" mass="1" pos="2 0 0"><pin id="0"/></flexcomp></worldbody>""",
    "skins": """<worldbody><body name="b"><joint/><geom size=".1"/></body></worldbody><deformable>
      <skin vertex="0 0 0 1 0 0 0 1 0" face="0 1 2"><bone body="b" bindpos="0 0 0" bindquat="1 0 0 0" vertid="0 1 2"
      vertweight="1 1 1"/></skin></deformable>""",
    "replicas, keyframes, mocap bodies": """<worldbody><replicate count="3" offset="1 0 0"><body name="b"><joint/>
      <geom size=".1"/></body></replicate><body name="m" mocap="true" pos="0 0 3"><geom size=".1"/></body></worldbody>
      <keyframe><key name="k" qpos="1 2 3" mpos="0 0 1"/></keyframe>""",
}


@pytest.mark.parametrize("kind", KINDS)
def test_two_copies_of_a_model_of_any_kind_come_back_the_same(
    kind: str, write: Write, compose: Compose, differ: Differ
) -> None:
    path = write("any", f"<mujoco model='any'>{KINDS[kind]}</mujoco>")
    scene = compose({"any": path, "any-2": (path, Pose((0.0, 9.0, 0.0)))})
    assert differ(scene.model, reload(scene)) == []

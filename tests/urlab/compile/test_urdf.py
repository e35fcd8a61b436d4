"""URDF files in a scene: what stock MuJoCo loads is loaded, with the visuals that can be used."""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import pytest

from urlab.compile.blueprint import load_blueprint
from urlab.errors import ImportFailed
from urlab.scene.blueprint_record import file_record

Write = Callable[..., Path]
Compose = Callable[..., Any]

INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
FLAT = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 1 1 0\nf 1 2 3\nf 2 4 3\n"
COLLADA = """<?xml version="1.0"?><COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><unit name="centimeter" meter="0.01"/><up_axis>Z_UP</up_axis></asset>
<library_geometries><geometry id="g"><mesh><source id="p"><float_array id="a" count="12">0 0 0 100 0 0 0 100 0 0 0 100
</float_array><technique_common><accessor source="#a" count="4" stride="3"><param name="X" type="float"/>
<param name="Y" type="float"/><param name="Z" type="float"/></accessor></technique_common></source>
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
<triangles count="4"><input semantic="VERTEX" source="#v" offset="0"/><p>0 2 1 0 1 3 0 3 2 1 2 3</p></triangles>
</mesh></geometry></library_geometries>
<library_visual_scenes><visual_scene id="s"><node id="n"><instance_geometry url="#g"/></node></visual_scene>
</library_visual_scenes><scene><instance_visual_scene url="#s"/></scene></COLLADA>"""
READS_COLLADA = all(importlib.util.find_spec(name) for name in ("trimesh", "collada"))


def robot(*visuals: str, head: str = "", collision: str = '<sphere radius=".1"/>') -> str:
    shown = "".join(f"<visual><geometry>{one}</geometry></visual>" for one in visuals)
    return f"""<robot name="r">{head}
      <link name="base">{INERTIAL}{shown}<collision><geometry>{collision}</geometry></collision></link>
      <link name="arm">{INERTIAL}<collision><geometry><sphere radius=".1"/></geometry></collision></link>
      <joint name="j" type="continuous"><parent link="base"/><child link="arm"/></joint></robot>"""


def mesh(file: str) -> str:
    return f'<mesh filename="{file}"/>'


def notes_of(path: Path) -> list[str]:
    return [note for note in load_blueprint(file_record(str(path))).notes if "left out" in note]


def visuals_of(scene: Any) -> int:
    return int((scene.model.geom_contype == 0).sum())


def test_a_flat_visual_is_kept(write: Write, compose: Compose) -> None:
    write("flat.obj", FLAT)
    path = write("r.urdf", robot(mesh("flat.obj")))
    assert visuals_of(compose({"r": path})) == 1
    assert notes_of(path) == []


@pytest.mark.parametrize(
    ("visual", "reason"),
    [
        ('<sphere radius="0"/>', "size 0 must be positive"),
        (mesh("broken.obj"), "broken"),
        (mesh("nowhere.stl"), "nowhere.stl"),
        (mesh("package://no_such_package/part.stl"), "part.stl"),
    ],
)
def test_a_visual_that_cannot_be_used_is_left_out_and_named(
    write: Write, compose: Compose, visual: str, reason: str
) -> None:
    write("broken.obj", "v 0 0 0\nv 1 0 0\nf 1 2 9\n")
    path = write("r.urdf", robot(visual, '<box size="1 1 1"/>'))
    assert mujoco.MjModel.from_xml_path(str(path)).ngeom == 2, "stock MuJoCo loads it"
    scene = compose({"r": path})
    assert visuals_of(scene) == 1
    (note,) = [note for note in scene.notes if "left out" in note]
    assert "a visual of link 'base'" in note
    assert reason in note


def test_a_mesh_that_collides_and_is_not_there_is_refused(write: Write) -> None:
    with pytest.raises(ImportFailed, match=r"nowhere\.stl"):
        load_blueprint(file_record(str(write("r.urdf", robot(collision=mesh("nowhere.stl"))))))


def test_without_the_extra_a_collada_visual_is_left_out_with_the_line_that_installs_it(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "collada", None)
    write("part.dae", COLLADA)
    (note,) = notes_of(write("r.urdf", robot(mesh("part.dae"))))
    assert "pip install 'urlab-headless[mesh]'" in note
    with pytest.raises(ImportFailed, match=r"(?s)part\.dae.*pip install 'urlab-headless\[mesh\]'"):
        load_blueprint(file_record(str(write("s.urdf", robot(collision=mesh("part.dae"))))))


@pytest.mark.skipif(not READS_COLLADA, reason="needs trimesh and pycollada")
def test_a_collada_mesh_is_read_in_metres_along_its_own_axes(write: Write, compose: Compose) -> None:
    write("part.dae", COLLADA)
    path = write("r.urdf", robot(mesh("part.dae"), collision=mesh("part.dae")))
    model = compose({"r": path}).model
    assert notes_of(path) == []
    assert model.nmesh == 1
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    geom = int((model.geom_contype == 0).argmax())
    corners = model.mesh_vert @ data.geom_xmat[geom].reshape(3, 3).T + data.geom_xpos[geom]
    assert sorted(corners.round(6).tolist()) == [[0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]]


@pytest.mark.parametrize(
    ("reference", "place", "head"),
    [
        ("package://arm_description/meshes/part.stl", "arm_description/meshes/part.stl", ""),
        ("package://elsewhere/part.stl", "arm_description/urdf/part.stl", ""),
        ("meshes/part.stl", "arm_description/urdf/meshes/part.stl",
         '<mujoco><compiler meshdir="meshes"/></mujoco>'),
        ("deep/part.stl", "arm_description/urdf/part.stl", ""),
    ],
)  # fmt: skip
def test_a_mesh_is_found_where_the_file_stands(
    write: Write, compose: Compose, tmp_path: Path, tetrahedron: Any, reference: str, place: str, head: str
) -> None:
    tetrahedron(tmp_path / place, 0.5)
    path = write("r.urdf", robot(collision=mesh(reference), head=head), "arm_description/urdf")
    assert compose({"r": path}).model.nmesh == 1


def test_line_numbers_are_those_of_the_file(write: Write) -> None:
    text = robot(head="<!--\n\n a long\n comment -->\n").replace('<sphere radius=".1"/>', '<sphere\n radius="x"/>', 1)
    stock = ""
    try:
        mujoco.MjModel.from_xml_path(str(write("r.urdf", text)))
    except ValueError as refused:
        stock = str(refused)
    assert "line " in stock
    with pytest.raises(ImportFailed) as caught:
        load_blueprint(file_record(str(write("r.urdf", text))))
    assert stock.rpartition("line ")[2].split()[0] == caught.value.message.rpartition("line ")[2].split()[0]


def test_a_sidecar_lets_the_root_of_a_urdf_move_freely(write: Write, compose: Compose) -> None:
    path = write("r.urdf", robot())
    fixed = compose({"r": path})
    (note,) = fixed.notes
    assert "root link 'base' is fixed" in note
    assert "free_joint = true in r.urlab.toml" in note
    write("r.urlab.toml", "free_joint = true")
    free = compose({"r": path})
    assert [joint.kind for joint in free.articulations[0].joints] == [0, 3]
    assert free.articulations[0].joints[0].short == "free"
    assert not any("fixed" in note for note in free.notes)
    write("r.urlab.toml", "free_joint = false")
    assert compose({"r": path}).notes == ()


def test_a_free_joint_needs_one_root_that_is_fixed(write: Write) -> None:
    path = write("m", "<mujoco><worldbody><body name='a'><freejoint/><geom size='1'/></body></worldbody></mujoco>")
    write("m.urlab.toml", "free_joint = true")
    with pytest.raises(ImportFailed, match="fixed to the world; it has: none"):
        load_blueprint(file_record(str(path)))

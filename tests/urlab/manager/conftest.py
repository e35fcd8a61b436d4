"""A running scene of one small robot, and a crate."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from urlab.app import open_project
from urlab.compile import CompiledScene, compile_scene
from urlab.compile.library import Library
from urlab.geometry import Pose
from urlab.manager import Manager, StepCounter
from urlab.paths import FileRoots
from urlab.scene.blueprint_record import file_record
from urlab.scene.level import Actor, Level
from urlab_wire.enums import StepMode

HOPPER = """
<mujoco model="hopper"><worldbody><body name="foot"><joint name="up" type="slide" axis="0 0 1"/>
  <geom size=".1" mass="1"/></body></worldbody>
  <actuator><motor name="push" joint="up"/></actuator></mujoco>"""
CRATE = '<mujoco><worldbody><body name="box"><freejoint/><geom size=".1" mass="2"/></body></worldbody></mujoco>'


@pytest.fixture
def hopper_scene(tmp_path: Path) -> CompiledScene:
    """Without gravity; compiled bodies are hopper_foot and crate."""
    for name, text in (("hopper", HOPPER), ("crate", CRATE)):
        (tmp_path / f"{name}.xml").write_text(text)
    actors = (
        Actor("hopper", str(tmp_path / "hopper.xml")),
        Actor("crate", str(tmp_path / "crate.xml"), pose=Pose((5.0, 0.0, 0.0))),
    )
    return compile_scene(Level("yard", actors, {"gravity": [0, 0, 0]}), Library(file_record))


@pytest.fixture
def manager(hopper_scene: CompiledScene, tmp_path: Path) -> Iterator[Manager]:
    """That scene, in direct mode."""
    roots = FileRoots(read=(tmp_path,), write=(tmp_path,))
    manager = Manager(hopper_scene, replays_dir=tmp_path / "Replays", roots=roots, counter=StepCounter())
    manager.start(StepMode.DIRECT)
    yield manager
    manager.stop()


@pytest.fixture(scope="session")
def demo_scene(tmp_path_factory: pytest.TempPathFactory) -> CompiledScene:
    """The shipped demo level, compiled once."""
    project = open_project(tmp_path_factory.mktemp("demo"))
    return compile_scene(project.open_level("demo"), Library(project.record))


@pytest.fixture
def demo_manager(demo_scene: CompiledScene, tmp_path: Path) -> Iterator[Manager]:
    """The shipped demo level, in direct mode, from its start."""
    manager = Manager(demo_scene, replays_dir=tmp_path, roots=FileRoots(), counter=StepCounter())
    manager.start(StepMode.DIRECT)
    yield manager
    manager.stop()

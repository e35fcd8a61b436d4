"""What `urlab serve` and `launch` make of the models that they are given."""

import logging
from pathlib import Path

import pytest

import urlab
from urlab.app import open_project
from urlab.authoring.targets import open_targets
from urlab.errors import LoadLevelFailed
from urlab.geometry import wxyz_from_euler_deg
from urlab.scene.project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return open_project(tmp_path / "project")


def places(project: Project, *targets: str) -> dict[str, tuple[float, ...]]:
    return {actor.name: actor.pose.pos for actor in open_targets(project, targets).actors}


def test_robots_that_would_stand_in_each_other_are_set_side_by_side(project: Project) -> None:
    where = places(project, "floor", "quadruped", "panda", "panda")
    assert where["floor"] == where["quadruped"] == (0.0, 0.0, 0.0)
    assert where["panda"][1] > 0.5
    assert where["panda-2"][1] > where["panda"][1] + 0.5


def test_models_that_touch_nothing_stay_at_the_origin(project: Project, tmp_path: Path) -> None:
    above = tmp_path / "above.xml"
    above.write_text("<mujoco><worldbody><body pos='0 0 5'><joint/><geom size='.1'/></body></worldbody></mujoco>")
    assert set(places(project, "panda", str(above), "floor", "terrain").values()) == {(0.0, 0.0, 0.0)}


def test_the_floor_that_a_robot_brings_sends_nothing_away(project: Project, tmp_path: Path) -> None:
    ant = tmp_path / "ant.xml"
    ant.write_text(
        "<mujoco model='ant'><worldbody><geom type='plane' size='40 40 1'/><body pos='0 0 .5'><joint/>"
        "<geom size='.2'/></body></worldbody></mujoco>"
    )
    above = tmp_path / "above.xml"
    above.write_text("<mujoco><worldbody><body pos='1 0 .5'><freejoint/><geom size='.1'/></body></worldbody></mujoco>")
    where = places(project, str(ant), str(above), "panda")
    assert where["above"] == (0.0, 0.0, 0.0)
    assert 0.2 < where["panda"][1] < 2


def test_a_target_may_say_where_it_stands_and_others_keep_clear_of_it(project: Project) -> None:
    level = open_targets(project, ["panda", "panda@0.1,0,0.5,90", "table@0.62,0,0"])
    first, second, table = level.actors
    assert second.pose.pos == (0.1, 0.0, 0.5)
    assert second.pose.quat_wxyz == wxyz_from_euler_deg((0.0, 0.0, 90.0))
    assert table.pose.pos == (0.62, 0.0, 0.0)
    assert first.pose.pos[1] > 0.5


def test_a_file_with_an_at_sign_in_its_name_is_a_file(project: Project, tmp_path: Path) -> None:
    path = tmp_path / "me@home.xml"
    path.write_text("<mujoco model='m'><worldbody><geom size='.1'/></worldbody></mujoco>")
    assert places(project, str(path)) == {"m": (0.0, 0.0, 0.0)}
    assert places(project, f"{path}@1,2,3") == {"m": (1.0, 2.0, 3.0)}


@pytest.mark.parametrize(
    "target", ["panda@1,2", "panda@1,2,3,4,5", "panda@1,,3", "panda@1,b,3", "panda@", "panda@1e999,0,0", "demo@1,2,3"]
)
def test_a_place_that_is_none_is_refused(project: Project, target: str) -> None:
    with pytest.raises(LoadLevelFailed, match=r"NAME@x,y,z|only models have a place"):
        open_targets(project, [target])


def test_launch_warns_of_robots_that_were_put_into_each_other(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), urlab.launch(["panda@0,0,0", "panda@0.1,0,0"], project=tmp_path) as client:
        reply = client.sim.status()
    assert reply is not None
    assert "'panda' and 'panda-2' stand in each other at the start: panda" in caplog.text


def test_the_demo_level_starts_without_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), urlab.launch(project=tmp_path):
        # On a busy machine the watchdog may complain of a thread that waits for a processor.
        assert [one.getMessage() for one in caplog.records if one.name != "urlab.watchdog"] == []


@pytest.mark.parametrize("robot", ["panda", "quadruped", "aloha", "franka_robotiq"])
def test_a_robot_that_ships_stands_still_from_the_start(robot: str, tmp_path: Path) -> None:
    with urlab.launch(["floor", robot], project=tmp_path) as client:
        start = client.data.qpos.copy()
        client.step(n_steps=2000)
        assert abs(client.data.qpos - start).max() < 0.1  # metres and radians: legs give a little

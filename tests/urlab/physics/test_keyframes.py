"""Keyframes by name."""

from typing import Any

import mujoco
import pytest

from urlab.errors import UnknownKeyframe
from urlab.physics.keyframes import find_keyframe, keyframe_names, list_keyframes

MODEL = """
<mujoco>
  <worldbody>
    <body><joint name="j"/><geom size=".1"/></body><body mocap="true"/>
  </worldbody>
  <actuator><motor joint="j"/></actuator>
  <keyframe>
    <key name="a_home" time="2" qpos="1" qvel="2" ctrl="3" mpos="4 5 6" mquat="0 0 0 1"/>
    <key name="b_home"/><key name="b_rest" qpos="7"/><key name="home-b"/>
  </keyframe>
</mujoco>
"""


@pytest.fixture(scope="module")
def model() -> Any:
    return mujoco.MjModel.from_xml_string(MODEL)


@pytest.mark.parametrize(("name", "index"), [("a_home", 0), ("b_home", 1), ("b_rest", 2), ("rest", 2), ("home-b", 3)])
def test_a_keyframe_is_found_by_its_name_with_or_without_prefix(name: str, index: int, model: Any) -> None:
    assert find_keyframe(model, name, ["a", "b"]) == index


def test_a_short_name_that_two_robots_have_is_ambiguous(model: Any) -> None:
    with pytest.raises(UnknownKeyframe, match="keyframe 'home' is ambiguous: a_home, b_home"):
        find_keyframe(model, "home", ["a", "b"])
    assert find_keyframe(model, "home", ["b"]) == 1


@pytest.mark.parametrize("name", ["", "none", "ome", "a_rest"])
def test_a_keyframe_that_is_not_there_says_which_are(name: str, model: Any) -> None:
    with pytest.raises(UnknownKeyframe, match=r"there is no keyframe '.*'; there are: a_home, b_home, b_rest, home-b"):
        find_keyframe(model, name, ["a", "b"])


def test_keyframes_are_listed_with_all_their_numbers(model: Any) -> None:
    first, second, *_ = list_keyframes(model)
    assert (first.name, first.time, first.qpos, first.qvel, first.ctrl) == ("a_home", 2, [1], [2], [3])
    assert (first.mocap_pos, first.mocap_quat) == ([4, 5, 6], [0, 0, 0, 1])
    assert (second.qpos, second.mocap_pos, second.mocap_quat) == ([0], [0, 0, 0], [1, 0, 0, 0])
    assert keyframe_names(model) == ["a_home", "b_home", "b_rest", "home-b"]

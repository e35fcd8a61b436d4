"""Names for what its author left unnamed."""

from typing import Any

import mujoco
import pytest

from urlab.compile.naming import name_the_unnamed

RICH = """
<mujoco>
  <worldbody>
    <body><freejoint/><geom size=".1"/><site/><camera/><light/></body>
    <body name="body_1"><freejoint/><geom size=".1" name="g"/></body>
    <body><joint name="j"/><joint axis="0 1 0"/><geom size=".1"/></body>
  </worldbody>
  <contact><pair geom1="g" geom2="geom_0"/><exclude body1="body_1" body2="world"/></contact>
  <tendon><fixed><joint joint="j" coef="1"/></fixed></tendon>
  <equality><joint joint1="j"/></equality>
  <actuator><motor joint="j"/></actuator>
  <sensor><clock/></sensor>
  <keyframe><key/></keyframe>
</mujoco>
"""
NAMES = {
    "bodies": ["world", "body_1_2", "body_1", "body_3"],
    "joints": ["free", "free_2", "j", "joint_3"],
    "geoms": ["geom_0", "g", "geom_2"],
    "sites": ["site_0"],
    "cameras": ["camera_0"],
    "lights": ["light_0"],
    "pairs": ["pair_0"],
    "excludes": ["exclude_0"],
    "tendons": ["tendon_0"],
    "equalities": ["equality_0"],
    "actuators": ["actuator_0"],
    "sensors": ["sensor_0"],
    "keys": ["key_0"],
}


@pytest.fixture
def spec() -> Any:
    return mujoco.MjSpec.from_string(RICH)


@pytest.mark.parametrize("kind", NAMES)
def test_every_unnamed_element_gets_a_name_that_nobody_has(kind: str, spec: Any) -> None:
    name_the_unnamed(spec)
    assert [element.name for element in getattr(spec, kind)] == NAMES[kind]


def test_naming_twice_changes_nothing(spec: Any) -> None:
    name_the_unnamed(spec)
    once = spec.to_xml()
    name_the_unnamed(spec)
    assert spec.to_xml() == once

"""Robots whose authors want inertias computed differently, in one scene."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from urlab.compile.export import export_mjcf
from urlab.errors import CompileError

Write = Callable[..., Path]
Compose = Callable[..., Any]
Differ = Callable[..., list[str]]

ARM = """
<mujoco>
  <compiler {settings}/>
  <worldbody>
    <body name="a" pos="0 0 1" euler="10 20 30">
      <inertial pos=".01 0 0" mass=".01" fullinertia=".001 .002 .0025 .0001 0 .0002"/>
      <joint range="-1 1" axis="1 1 0"/>
      <geom size=".1 .2 .3123456789" type="box" euler="1 2 3"/>
    </body>
    <body name="b" pos="1 0 0"><freejoint/>
      <geom size=".1 .2 .3" type="box" pos=".1 .1 0" euler="3 4 5" group="2"/><geom size=".1"/>
    </body>
  </worldbody>
</mujoco>
"""
SETTINGS = [
    'boundmass=".1"', 'boundinertia=".01"', 'balanceinertia="true"', 'inertiafromgeom="true"',
    'inertiagrouprange="2 3"', 'alignfree="true"', 'alignfree="true" inertiafromgeom="true" boundmass="1"',
]  # fmt: skip
OF_A_BODY = ("body_mass", "body_inertia", "body_ipos", "body_iquat", "body_pos", "body_quat")


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("first", [True, False])
def test_each_robot_weighs_what_it_weighs_alone(settings: str, first: bool, write: Write, compose: Compose) -> None:
    plain, odd = write("plain", ARM.format(settings="")), write("odd", ARM.format(settings=settings))
    scene = compose({"odd": odd, "plain": plain} if first else {"plain": plain, "odd": odd})
    for name, path in (("plain", plain), ("odd", odd)):
        alone = mujoco.MjModel.from_xml_path(str(path))
        ids = [scene.model.body(f"{name}_{body}").id for body in "ab"]
        for field in OF_A_BODY:
            found, wanted = getattr(scene.model, field)[ids], getattr(alone, field)[1:]
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-15, err_msg=field)


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_scene_of_both_can_be_exported(settings: str, write: Write, compose: Compose, differ: Differ) -> None:
    plain, odd = write("plain", ARM.format(settings="")), write("odd", ARM.format(settings=settings))
    scene = compose({"plain": plain, "odd": odd})
    xml, assets = export_mjcf(scene)
    assert differ(scene.model, mujoco.MjModel.from_xml_string(xml, assets)) == []


def test_a_model_without_an_inertia_is_still_named(write: Write, compose: Compose) -> None:
    hollow = "<mujoco><worldbody><body><joint/></body></worldbody></mujoco>"
    actors = {"plain": write("plain", ARM.format(settings='boundmass="1"')), "hollow": write("hollow", hollow)}
    with pytest.raises(CompileError, match=r"actor 'hollow': .*mass and inertia"):
        compose(actors)

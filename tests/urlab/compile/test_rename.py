"""A thing of one body is renamed to its prefix; what refers to that body in its file follows."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Write = Callable[..., Path]
Compose = Callable[..., Any]

THING = """
<mujoco>
  <worldbody>
    <body name="box" pos="0 0 1"><freejoint/><geom name="box" size=".1"/><site name="box"/></body>
    <camera name="eye" mode="targetbody" target="box" pos="0 -1 1"/>
    <light name="spot" mode="targetbody" target="box"/>
  </worldbody>
  <sensor>
    <framepos name="p" objtype="body" objname="box"/><framepos name="x" objtype="xbody" objname="box"/>
    <framepos name="g" objtype="geom" objname="box" reftype="body" refname="box"/>
    <framepos name="s" objtype="site" objname="box"/>
  </sensor>
  <equality><weld name="w" body1="box"/></equality>
  <contact><exclude body1="world" body2="box"/></contact>
  <custom>
    <tuple name="t"><element objtype="body" objname="box"/><element objtype="geom" objname="box"/></tuple>
  </custom>
</mujoco>
"""


@pytest.fixture
def crate(write: Write, compose: Compose) -> Any:
    path = write("thing", THING)
    return compose({"other": path, "crate": path}).model


def test_cameras_and_lights_keep_their_target(crate: Any) -> None:
    body = crate.body("crate").id
    assert crate.camera("crate_eye").targetbodyid == body
    assert crate.light("crate_spot").targetbodyid == body


def test_sensors_keep_what_they_watch(crate: Any) -> None:
    body, geom, site = crate.body("crate").id, crate.geom("crate_box").id, crate.site("crate_box").id
    assert {name: int(crate.sensor(f"crate_{name}").objid[0]) for name in "pxgs"} == {
        "p": body, "x": body, "g": geom, "s": site,
    }  # fmt: skip
    assert crate.sensor("crate_g").refid == body


def test_constraints_exclusions_and_tuples_keep_their_body(crate: Any) -> None:
    body = crate.body("crate").id
    assert crate.equality("crate_w").obj1id == body
    assert body in crate.exclude_signature
    assert crate.tuple("crate_t").objid.tolist() == [body, crate.geom("crate_box").id]

"""MuJoCo's warnings: in the log as they happen, and once in words."""

import logging
from pathlib import Path
from typing import Any

import mujoco
import pytest

from urlab.physics import MUJOCO_VERSION, MUJOCO_VERSION_INT, Engine

CROWDED = """
<mujoco>
  <size memory="20K"/>
  <worldbody>
    <geom type="plane" size="5 5 .1"/>
    <body pos="0 0 .05"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
    <body pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
    <body pos="0 0 .15"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
  </worldbody>
</mujoco>
"""


def go_wild(engine: Engine) -> None:
    engine.data.qvel[:] = 1e30
    engine.advance(1, 1e99)


def test_a_simulation_that_behaves_has_no_warnings(engine: Engine) -> None:
    engine.advance(100, 1e99)
    assert engine.warnings() == []


def test_an_unstable_simulation_is_reported_once(engine: Engine) -> None:
    go_wild(engine)
    (warning,) = engine.warnings()
    assert "QVEL" in warning
    assert warning.endswith("MuJoCo has reset the simulation; use a smaller timestep or gentler controls.")
    assert engine.warnings() == []


def test_a_warning_comes_back_when_it_happens_again(engine: Engine) -> None:
    for _ in range(2):
        go_wild(engine)
        assert len(engine.warnings()) == 1


def test_warnings_of_one_kind_are_counted(engine: Engine) -> None:
    engine.data.warning[mujoco.mjtWarning.mjWARN_BADCTRL].number = 2
    (warning,) = engine.warnings()
    assert warning.endswith("(2 times)")


def test_a_full_buffer_is_reported_without_talk_of_a_reset() -> None:
    engine = Engine(mujoco.MjModel.from_xml_string(CROWDED))
    engine.advance(1, 1e99)
    warnings = engine.warnings()
    assert warnings
    assert not any("reset the simulation" in one for one in warnings)


@pytest.mark.parametrize("kind", [kind for name, kind in mujoco.mjtWarning.__members__.items() if name != "mjNWARNING"])
def test_every_kind_of_warning_has_words(kind: Any, engine: Engine) -> None:
    engine.data.warning[kind].number = 1
    (warning,) = engine.warnings()
    assert len(warning) > 10


def test_mujocos_words_go_to_the_log_and_to_no_file(
    engine: Engine,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    with caplog.at_level(logging.WARNING, "urlab.physics"):
        go_wild(engine)
    assert any(text.startswith("MuJoCo: ") and "QVEL" in text for text in caplog.messages)
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []


def test_the_version_is_mujocos() -> None:
    assert mujoco.__version__ == MUJOCO_VERSION
    assert mujoco.mj_version() == MUJOCO_VERSION_INT

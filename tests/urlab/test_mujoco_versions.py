"""What differs between versions of MuJoCo. Run on older ones by `make test-versions`."""

import logging
from types import SimpleNamespace
from typing import Any

import mujoco
import pytest

from urlab import mujoco_versions as versions
from urlab.errors import BadValue, ConfigError

ACTUATORS = """
<mujoco><worldbody><body name="b"><joint name="j"/><geom size=".1"/></body></worldbody><actuator>
  <motor name="motor" joint="j"/><position name="position" joint="j" kp="3" kv="1"/>
  <velocity name="velocity" joint="j" kv="2"/><intvelocity name="intvelocity" joint="j" kp="2" actrange="-1 1"/>
  <damper name="damper" joint="j" kv="2" ctrlrange="0 1"/>
  <cylinder name="cylinder" joint="j" timeconst="1" area="2" bias="1 2 3"/>
  <muscle name="muscle" joint="j" lengthrange="0.1 1"/><adhesion name="adhesion" body="b" ctrlrange="0 1"/>
  <general name="general" joint="j" gaintype="affine" gainprm="1 2 3" biastype="affine" biasprm="1 2 3"/>
</actuator></mujoco>"""
FIELDS = ("gaintype", "gainprm", "biastype", "biasprm", "dyntype", "trntype")


def test_how_an_actuator_was_written_is_told_from_what_became_of_it() -> None:
    spec = mujoco.MjSpec.from_string(ACTUATORS)
    for actuator in spec.actuators:
        without_type: Any = SimpleNamespace(**{field: getattr(actuator, field) for field in FIELDS})
        assert versions.authored_actuator(without_type) == versions.authored_actuator(actuator) == actuator.name


def test_actuators_and_their_controls_are_counted() -> None:
    model = mujoco.MjModel.from_xml_string(ACTUATORS)
    assert versions.actuator_count(model) == 9
    assert [versions.controls_of(model, index) for index in range(9)] == [(index, 1) for index in range(9)]


def test_one_control_each_where_a_model_does_not_say() -> None:
    assert versions.controls_of(SimpleNamespace(), 4) == (4, 1)


def test_a_version_that_is_too_old_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    versions.check_version()
    monkeypatch.setattr(versions, "VERSION", (3, 8, 0))
    with pytest.raises(ConfigError, match=r"the server needs 3\.8\.1 or newer"):
        versions.check_version()


def test_threads_that_a_version_does_not_have_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = mujoco.MjData(mujoco.MjModel.from_xml_string("<mujoco/>"))
    monkeypatch.delattr(mujoco, "mju_threadpool", raising=False)
    versions.set_worker_threads(data, 0)
    with pytest.raises(BadValue, match="has no pool of threads"):
        versions.set_worker_threads(data, 2)


def test_what_cannot_be_done_to_one_model_of_several_is_said(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "urlab")
    versions.fuse_static(SimpleNamespace(modelname="arm"))
    assert "'arm'" in caplog.text
    assert "fixed bodies stay" in caplog.text


def test_fields_that_a_version_has_are_picked() -> None:
    assert versions.present(SimpleNamespace(a=1, c=2), "a", "b", "c") == ["a", "c"]

from typing import Any

import mujoco
import numpy as np
import pytest

import urlab.control
from urlab.control import Controller, make_controller
from urlab.control.controller import PassthroughController, index_of
from urlab.control.pd import PDController
from urlab.errors import ControllerSchemaViolation, ImportFailed
from urlab.scene.sidecar import ControllerConfig
from urlab_wire.enums import ControllerKind


@pytest.mark.parametrize("kind", [kind.value for kind in ControllerKind])
def test_every_kind_of_the_wire_has_a_controller(arm, describe, kind):
    controller = make_controller(describe(arm, ControllerConfig(kind)))
    assert controller is not None
    assert controller.kind == kind


def test_a_robot_whose_sidecar_names_no_controller_has_none(arm, describe):
    assert make_controller(describe(arm)) is None


def test_the_sidecar_chooses_kind_and_params(arm, describe):
    controller = make_controller(describe(arm, ControllerConfig("pd", {"kp": {"elbow": 9.0}})))
    assert isinstance(controller, PDController)
    assert controller.kind == "pd"
    assert controller.params()["kp"]["elbow"] == 9.0
    assert isinstance(make_controller(describe(arm, ControllerConfig("passthrough"))), PassthroughController)


def test_an_unknown_kind_is_refused_with_the_kinds_that_exist(arm, describe):
    with pytest.raises(ImportFailed, match=r"robot: controller.kind is 'dp'.*; the kinds are passthrough, pd"):
        make_controller(describe(arm, ControllerConfig("dp")))


def test_bad_params_in_a_sidecar_are_an_import_failure_that_names_them(arm, describe):
    with pytest.raises(ImportFailed, match=r"robot: controller.params: kp\['elbow'\] is -1.0"):
        make_controller(describe(arm, ControllerConfig("pd", {"kp": {"elbow": -1.0}})))


def test_two_controllers_of_one_kind_refuse_at_declaration():
    with pytest.raises(TypeError, match="controller kind 'pd' is already PDController"):

        class Second(PDController, kind="pd"):
            pass


def test_a_base_class_without_a_kind_registers_nothing(arm, describe):
    class Shared(Controller):
        def schema(self) -> dict[str, Any]:
            return {}

    assert not hasattr(Shared, "kind")
    with pytest.raises(ImportFailed, match=r"the kinds are (?!.*shared)"):
        make_controller(describe(arm, ControllerConfig("shared")))


def test_the_front_door_names_only_what_exists():
    assert urlab.control.__all__ == ["Controller", "StagedControl", "TwistCommand", "gains_patch", "make_controller"]
    assert all(hasattr(urlab.control, name) for name in urlab.control.__all__)


@pytest.mark.parametrize("ids", [[], [3], [2, 3, 4], [4, 3, 2], [1, 3], [2, 2]])
def test_an_index_selects_the_ids_in_their_order(ids):
    assert np.arange(10)[index_of(ids)].tolist() == ids


def test_consecutive_ids_become_a_slice_so_that_reading_copies_nothing():
    assert index_of([2, 3, 4]) == slice(2, 5)


# -- passthrough --------------------------------------------------------------------------------------------------


def test_setpoints_become_controls_as_they_are(arm, describe):
    data, setpoints = mujoco.MjData(arm), np.array([1.0, -2.0, 3.0, 1e6, 0.1])
    PassthroughController(describe(arm), {}).apply(arm, data, setpoints)
    np.testing.assert_array_equal(data.ctrl, setpoints)


def test_it_has_no_params_and_refuses_any(arm, describe):
    controller = PassthroughController(describe(arm), {})
    controller.configure({})
    with pytest.raises(ControllerSchemaViolation, match="a passthrough controller has no params; the patch has kp"):
        controller.configure({"kp": {"elbow": 1.0}})
    assert controller.params() == controller.schema() == {}

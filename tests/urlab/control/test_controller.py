from typing import Any

import pytest

import urlab.control
from urlab.control import (
    Controller,
    PassthroughController,
    PDController,
    controller_kinds,
    make_controller,
)
from urlab.errors import ImportFailed
from urlab.scene.sidecar import ControllerConfig
from urlab_wire.enums import ControllerKind


def test_every_kind_of_the_wire_has_a_controller():
    assert set(controller_kinds()) >= {kind.value for kind in ControllerKind}


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


def test_a_base_class_without_a_kind_registers_nothing():
    before = controller_kinds()

    class Shared(Controller):
        def schema(self) -> dict[str, Any]:
            return {}

    assert controller_kinds() == before
    assert not hasattr(Shared, "kind")


def test_the_front_door_names_only_what_exists():
    assert sorted(urlab.control.__all__) == [
        "Controller", "PDController", "PassthroughController", "StagedControl", "TwistController",
        "controller_kinds", "gains_patch", "make_controller",
    ]  # fmt: skip
    assert all(hasattr(urlab.control, name) for name in urlab.control.__all__)

import math

import mujoco
import numpy as np
import pytest

from urlab.control import StagedControl
from urlab.errors import BadValue, DimMismatch
from urlab_wire.enums import ControlSource


@pytest.fixture
def staged(arm, describe) -> StagedControl:
    return StagedControl(describe(arm))


def test_setpoints_begin_at_zero_from_the_wire(staged):
    assert staged.source is ControlSource.ZMQ
    assert staged.active.tolist() == [0.0] * 5


def test_staged_values_stick_until_replaced(staged):
    staged.stage([1, 2, 3, 4, 5])
    staged.stage([-2.0, -4.0], [1, 3])
    assert staged.active.tolist() == [1.0, -2.0, 3.0, -4.0, 5.0]


def test_each_source_keeps_its_own_setpoints(staged):
    staged.stage([1.0] * 5)
    staged.stage([2.0] * 5, source=ControlSource.UI)
    assert staged.active.tolist() == [1.0] * 5
    staged.source = ControlSource.UI
    assert staged.active.tolist() == [2.0] * 5
    assert staged.staged(ControlSource.ZMQ).tolist() == [1.0] * 5


def test_clearing_sets_both_sources_to_the_keyframe_or_to_zero(staged):
    staged.stage([1.0] * 5, source=ControlSource.UI)
    staged.clear(np.arange(5.0))
    assert [staged.staged(source).tolist() for source in ControlSource] == [[0.0, 1.0, 2.0, 3.0, 4.0]] * 2
    staged.clear()
    assert [staged.staged(source).tolist() for source in ControlSource] == [[0.0] * 5] * 2


def test_named_values_go_on_top_of_positional_ones_by_short_or_compiled_name(staged):
    merged = staged.merged([1, 2, 3, 4, 5], {"shoulder": 9.0, "robot_pull": 8.0})
    assert merged.tolist() == [1.0, 8.0, 9.0, 4.0, 5.0]


def test_merging_starts_from_what_is_staged_and_stages_nothing(staged):
    staged.stage([1.0] * 5)
    assert staged.merged(None, {"roll": 7.0}).tolist() == [1.0, 1.0, 1.0, 1.0, 7.0]
    assert staged.active.tolist() == [1.0] * 5


def test_raw_control_writes_the_source_in_force(staged, arm):
    data = mujoco.MjData(arm)
    staged.stage([1.0, 2.0, 3.0, 4.0, 5.0], source=ControlSource.UI)
    staged.write(data)
    assert data.ctrl.tolist() == [0.0] * 5
    staged.source = ControlSource.UI
    staged.write(data)
    assert data.ctrl.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]


@pytest.mark.parametrize(
    ("ctrl", "ctrl_map", "error", "said"),
    [
        ([1.0, 2.0], None, DimMismatch, "control of robot takes 5 numbers, but has 2"),
        ([[1.0] * 5], None, DimMismatch, "takes 5 numbers"),
        ([1.0, 2.0, 3.0, 4.0, math.nan], None, BadValue, "but is nan for roll"),
        ([1.0, 2.0, 3.0, 4.0, 10**400], None, BadValue, "takes finite numbers"),
        ([1.0, 2.0, 3.0, 4.0, "up"], None, BadValue, "takes finite numbers"),
        (None, {"roll": math.inf}, BadValue, "must be finite"),
        (None, {"rol": 1.0}, BadValue, r"no actuator 'rol' \(did you mean 'roll'\?\); it has elbow_motor, pull"),
    ],
)
def test_bad_controls_are_refused_with_the_reason(staged, ctrl, ctrl_map, error, said):
    with pytest.raises(error, match=said):
        staged.merged(ctrl, ctrl_map)


def test_a_refused_stage_changes_nothing(staged):
    staged.stage([1.0] * 5)
    with pytest.raises(BadValue):
        staged.stage([2.0, math.nan], [0, 1])
    with pytest.raises(DimMismatch):
        staged.stage([2.0], [0, 1])
    assert staged.active.tolist() == [1.0] * 5


def test_an_actuator_that_alone_drives_a_joint_answers_to_the_joint_s_name(describe):
    model = mujoco.MjModel.from_xml_string("""
      <mujoco><worldbody><body><joint name="knee"/><geom size=".1"/>
        <body><joint name="hip"/><geom size=".1"/></body></body></worldbody>
      <actuator><motor name="actuator_0" joint="knee"/>
        <motor name="a" joint="hip"/><motor name="b" joint="hip"/></actuator>
      </mujoco>""")
    staged = StagedControl(describe(model))
    assert staged.positions(["knee", "robot_knee"]).tolist() == [0, 0]
    with pytest.raises(BadValue, match="no actuator 'hip'"):
        staged.positions(["hip"])

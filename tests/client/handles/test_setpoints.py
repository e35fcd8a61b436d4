"""Which setpoints travel, and how."""

import numpy as np

from urlab_client.handles.setpoints import Setpoints


def test_nothing_is_sent_until_something_is_given():
    assert Setpoints(["a", "b"]).command() == {}


def test_some_setpoints_travel_by_name():
    setpoints = Setpoints(["a", "b", "c"])
    setpoints.give([1], [0.0])
    assert setpoints.command() == {"ctrl_map": {"b": 0.0}}


def test_all_setpoints_travel_by_position():
    setpoints = Setpoints(["a", "b"])
    setpoints.give([0], [1.0])
    setpoints.give([1], [0.0])
    assert setpoints.command() == {"ctrl": [1.0, 0.0]}


def test_writing_into_the_array_gives_all_of_them_zeros_included():
    setpoints = Setpoints(["a", "b", "c"])
    setpoints.give([0], [1.0])
    setpoints.values[2] = 3.0
    assert setpoints.command() == {"ctrl": [1.0, 0.0, 3.0]}


def test_once_given_a_zero_is_sent_like_any_other_number():
    setpoints = Setpoints(["a", "b"])
    setpoints.values[:] = [1.0, 2.0]
    setpoints.command()
    setpoints.values[:] = 0.0
    assert setpoints.command() == {"ctrl": [0.0, 0.0]}


def test_only_given_setpoints_are_written_into_local_data():
    setpoints = Setpoints(["a", "b"])
    setpoints.give([1], [5.0])
    ctrl = np.array([7.0, 7.0, 7.0])
    setpoints.write_into(ctrl, np.array([0, 2]))
    assert ctrl.tolist() == [7.0, 7.0, 5.0]


def test_an_articulation_without_actuators_sends_none():
    assert Setpoints([]).command() == {}

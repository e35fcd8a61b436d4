"""Topics are delivered as the rules say, and otherwise by convention."""

import pytest

from urlab.ros2.publishers import TopicRegistry
from urlab.ros2.qos import LATCHED, PICTURES, BadRule, Qos, parse_rule


@pytest.fixture
def ruled():
    """What a topic of some usual quality gets by rules."""
    return lambda topic, qos, *rules: TopicRegistry(map(parse_rule, rules)).open(topic, "any/msg/Type", qos)


def test_a_rule_changes_what_it_names_and_nothing_else(ruled):
    assert ruled("/joint_states", LATCHED, "/joint_states=best_effort") == Qos(False, True, 1)
    assert ruled("/joint_states", LATCHED, "/joint_states=volatile,depth=7") == Qos(True, False, 7)
    assert ruled("/clock", LATCHED, "/joint_states=best_effort") == LATCHED


def test_a_pattern_fits_every_robot_and_the_later_rule_wins(ruled):
    rules = ("*/image_raw=best_effort,depth=5", "/panda/*=reliable")
    assert ruled("/go2/camera/front/image_raw", PICTURES, *rules) == Qos(False, False, 5)
    assert ruled("/panda/camera/wrist/image_raw", PICTURES, *rules) == Qos(True, False, 5)
    assert ruled("/go2/camera/front/image_raw/compressed", PICTURES, *rules) == PICTURES


def test_a_rule_that_fits_no_topic_is_known():
    registry = TopicRegistry(map(parse_rule, ("/clok=reliable", "*/image_raw=depth=5")))
    registry.open("/panda/camera/wrist/image_raw", "sensor_msgs/msg/Image", PICTURES)
    assert registry.unused_patterns == ["/clok"]


@pytest.mark.parametrize(
    "text",
    ["", "joint_states", "/joint_states", "joint_states=reliable", "/a=", "/a=fast", "/a=depth", "/a=depth=0",
     "/a=depth=-1", "/a=depth=99999999", "/a=reliable,,depth=2"],
)  # fmt: skip
def test_what_is_no_rule_is_refused_with_what_one_looks_like(text: str):
    with pytest.raises(BadRule, match=r"TOPIC=WORD|there are: reliable, best_effort, transient_local, volatile, depth"):
        parse_rule(text)

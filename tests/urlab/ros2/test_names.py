"""Names of ROS, and their names in DDS."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from urlab.ros2.names import (
    checked,
    legal_token,
    legal_tokens,
    reply_to_dds,
    request_to_dds,
    topic_to_dds,
    type_to_dds,
)

LEGAL = re.compile(r"[A-Za-z](_?[A-Za-z0-9])*")


@pytest.mark.parametrize(
    ("text", "token"),
    [
        ("panda", "panda"),
        ("panda-2", "panda_2"),
        ("wrist camera (left)", "wrist_camera_left"),
        ("a//b", "a_b"),
        ("__init__", "init"),
        ("2nd", "n2nd"),
        ("größe", "gr_e"),
        ("", "unnamed"),
        ("日本", "unnamed"),
        ("ab_" * 40, "ab_" * 29 + "ab"),
    ],
)
def test_a_text_becomes_the_nearest_legal_token(text: str, token: str) -> None:
    assert legal_token(text) == token


@given(st.text())
def test_every_text_becomes_a_token_that_ros_allows(text: str) -> None:
    token = legal_token(text)
    assert LEGAL.fullmatch(token)
    assert legal_token(token) == token
    assert checked(f"/{token}/camera/{token}/image_raw/compressedDepth")


def test_no_two_texts_share_a_token_and_legal_ones_keep_their_name() -> None:
    assert legal_tokens(["panda-2", "panda_2", "panda 2", "arm"]) == {
        "panda-2": "panda_2_2",
        "panda_2": "panda_2",
        "panda 2": "panda_2_3",
        "arm": "arm",
    }


@given(st.lists(st.sampled_from(["a", "a_2", "a-2", "a 2", "a_2_2", "-a", "a-", "日本", "本"])))
def test_tokens_are_as_many_as_texts(texts: list[str]) -> None:
    tokens = legal_tokens(texts)
    assert list(tokens) == list(dict.fromkeys(texts))
    assert len(set(tokens.values())) == len(tokens)
    assert all(LEGAL.fullmatch(token) for token in tokens.values())


def test_topics_and_services_have_prefixes_in_dds() -> None:
    assert topic_to_dds("/panda/joint_states") == "rt/panda/joint_states"
    assert request_to_dds("/panda/reset") == "rq/panda/resetRequest"
    assert reply_to_dds("/panda/reset") == "rr/panda/resetReply"


def test_types_have_a_namespace_of_their_own_in_dds() -> None:
    assert type_to_dds("sensor_msgs/msg/JointState") == "sensor_msgs::msg::dds_::JointState_"
    assert type_to_dds("std_srvs/srv/Trigger_Request") == "std_srvs::srv::dds_::Trigger_Request_"


@pytest.mark.parametrize("name", ["JointState", "sensor_msgs/JointState", "sensor_msgs/msg/joint_state", "a/b/C", ""])
def test_what_is_no_type_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="not the name of a ROS type"):
        type_to_dds(name)


@pytest.mark.parametrize("name", ["joint_states", "/a/", "/a-b", "/1st", "/a__b", "", "/", "/a b", "/~a", "/ä"])
def test_what_is_no_name_is_refused_with_the_rules(name: str) -> None:
    with pytest.raises(ValueError, match="must be absolute"):
        checked(name)


def test_a_name_has_its_longest_length() -> None:
    assert checked("/" + "x" * 246)
    with pytest.raises(ValueError, match="248 characters; a ROS name may have 247"):
        checked("/" + "x" * 247)

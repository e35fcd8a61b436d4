"""How far the bridge reaches, by options and variables."""

from pathlib import Path

import pytest

from urlab.ros2.reach import Reach, reach_of

RANGE = "ROS_AUTOMATIC_DISCOVERY_RANGE"


@pytest.mark.parametrize(
    ("environment", "discovery", "is_loopback"),
    [
        ({}, "LOCALHOST", True),
        ({RANGE: ""}, "LOCALHOST", True),
        ({RANGE: "LOCALHOST"}, "LOCALHOST", True),
        ({RANGE: "OFF"}, "OFF", True),
        ({RANGE: "SUBNET"}, "SUBNET", False),
        ({RANGE: "SYSTEM_DEFAULT"}, "SYSTEM_DEFAULT", False),
        ({"ROS_LOCALHOST_ONLY": "1"}, "LOCALHOST", True),
        ({"ROS_LOCALHOST_ONLY": "1", RANGE: "SUBNET"}, "LOCALHOST", True),
        ({"ROS_LOCALHOST_ONLY": "0"}, "SUBNET", False),
        ({"ROS_LOCALHOST_ONLY": "0", RANGE: "LOCALHOST"}, "LOCALHOST", True),
        ({"ROS_STATIC_PEERS": "192.0.2.7;"}, "LOCALHOST", False),
        ({"ROS_STATIC_PEERS": " ; "}, "LOCALHOST", True),
        ({"ROS_STATIC_PEERS": "192.0.2.7", RANGE: "OFF"}, "OFF", True),
        ({"CYCLONEDDS_URI": "<General><FragmentSize>1300B</FragmentSize></General>"}, "LOCALHOST", True),
        ({"CYCLONEDDS_URI": "<General><Interfaces><NetworkInterface name='eth0'/>"}, "SUBNET", False),
        ({"CYCLONEDDS_URI": "<NetworkInterface name='eth0'/>", RANGE: "LOCALHOST"}, "LOCALHOST", False),
    ],
)
def test_it_is_this_machine_unless_a_variable_of_ros_says_otherwise(
    environment: dict[str, str], discovery: str, is_loopback: bool
) -> None:
    reach = reach_of(environment)
    assert (reach.discovery, reach.is_loopback) == (discovery, is_loopback)


def test_an_unknown_range_is_this_machine_and_is_told(caplog: pytest.LogCaptureFixture) -> None:
    assert reach_of({RANGE: "GALAXY"}) == Reach("LOCALHOST")
    assert "GALAXY" in caplog.text


def test_interfaces_in_a_file_of_cyclone_count(tmp_path: Path) -> None:
    (tmp_path / "mine.xml").write_text("<NetworkInterface name='eth0'/>")
    assert not reach_of({"CYCLONEDDS_URI": f"file://{tmp_path}/mine.xml"}).is_loopback


def test_the_option_wins_over_the_variables() -> None:
    assert reach_of({}, network=True).discovery == "SUBNET"
    assert reach_of({"ROS_LOCALHOST_ONLY": "1"}, network=True).discovery == "SUBNET"
    assert reach_of({RANGE: "SYSTEM_DEFAULT"}, network=True).discovery == "SYSTEM_DEFAULT"
    assert reach_of({RANGE: "SUBNET", "ROS_STATIC_PEERS": "192.0.2.7"}, network=False) == Reach("LOCALHOST")


@pytest.mark.parametrize("network", [None, True, False])
@pytest.mark.parametrize("environment", [{}, {RANGE: "SUBNET"}, {"ROS_LOCALHOST_ONLY": "1"}, {RANGE: "OFF"}])
def test_what_was_decided_is_told_to_ros_in_its_own_variables(
    environment: dict[str, str], network: bool | None
) -> None:
    decided = reach_of(environment, network)
    told = dict(environment)
    decided.export(told)
    assert reach_of(told) == decided
    assert told["ROS_LOCALHOST_ONLY"] == ("1" if decided.discovery == "LOCALHOST" else "0")

"""Messages of ROS without ROS."""

import os
import struct
import subprocess
import sys

import numpy as np
import pytest

from urlab.ros2 import messages
from urlab.ros2.messages import UnknownType, deserialise, knows, make, register, serialise, type_hash, typestore

JOINT_STATE = "sensor_msgs/msg/JointState"


def test_what_is_not_given_is_zero_or_as_the_definition_has_it() -> None:
    pose = make("geometry_msgs/msg/Pose")
    assert (pose.position.x, pose.orientation.x, pose.orientation.w) == (0.0, 0.0, 1.0)
    info = make("sensor_msgs/msg/CameraInfo")
    assert (info.header.frame_id, info.distortion_model, info.roi.do_rectify) == ("", "", False)
    assert np.array_equal(info.k, np.zeros(9))
    assert info.d.shape == (0,)


def test_no_two_messages_share_a_default() -> None:
    first, second = make("sensor_msgs/msg/Imu"), make("sensor_msgs/msg/Imu")
    first.orientation_covariance[0] = 1.0
    first.header.frame_id = "imu"
    assert (second.orientation_covariance[0], second.header.frame_id) == (0.0, "")


def test_numbers_become_arrays_of_the_field_s_type() -> None:
    state = make(JOINT_STATE, name=("a", "b"), position=[1, 2], velocity=np.float32([3, 4]), effort=(5.0, 6.0))
    assert [values.dtype for values in (state.position, state.velocity, state.effort)] == [np.float64] * 3
    assert state.name == ["a", "b"]
    image = make("sensor_msgs/msg/Image", data=b"\x01\x02")
    assert (image.data.dtype, image.data.tolist()) == (np.uint8, [1, 2])
    square = make("sensor_msgs/msg/CameraInfo", k=np.eye(3)[:, ::-1])
    assert square.k.tolist() == [0, 0, 1, 0, 1, 0, 1, 0, 0]


def test_a_field_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(TypeError, match="JointState has no field angle, torque; it has: header, name, position"):
        make(JOINT_STATE, torque=[], angle=[])


def test_an_unknown_type_is_refused_with_those_of_its_package() -> None:
    with pytest.raises(UnknownType, match="of tf2_msgs there are: tf2_msgs/msg/TF2Error, tf2_msgs/msg/TFMessage"):
        make("tf2_msgs/msg/Transform")
    with pytest.raises(UnknownType, match="there is no type of 'nowhere'"):
        type_hash("nowhere/msg/Thing")


def test_every_type_survives_the_wire() -> None:
    names = [name for name in typestore.types if not name.startswith("urlab_test")]
    wires = {name: serialise(make(name), name) for name in names}
    assert {name: serialise(deserialise(wire, name), name) for name, wire in wires.items()} == wires


def test_cdr_is_little_endian_plain_cdr() -> None:
    """Worked out by hand: every value is aligned to its size, counted from behind the 4-byte header."""
    stamp = make("builtin_interfaces/msg/Time", sec=1, nanosec=2)
    header = make("std_msgs/msg/Header", stamp=stamp, frame_id="base")
    expected = b"\x00\x01\x00\x00" + struct.pack(
        "<iI I5s3x I I2s2x I4x d I I", 1, 2, 5, b"base\0", 1, 2, b"j\0", 1, 1.5, 0, 0
    )
    assert serialise(make(JOINT_STATE, header=header, name=["j"], position=[1.5]), JOINT_STATE) == expected


def test_type_hashes_are_those_that_ros_computes() -> None:
    assert type_hash("std_msgs/msg/String") == (
        "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18"
    )
    assert type_hash("std_msgs/msg/Empty") == (
        "RIHS01_20b625256f32d5dbc0d04fee44f43c41e51c70d3502f84b4a08e7a9c26a96312"
    )


def test_a_message_type_is_learnt_from_its_file() -> None:
    assert not knows("urlab_test_msgs/msg/Pair")
    register("urlab_test_msgs/msg/Single", "float64 value\n")
    register("urlab_test_msgs/msg/Pair", "# two of them\nSingle left\nSingle[] rest\nint32 MANY=3\n")
    pair = make("urlab_test_msgs/msg/Pair", left=make("urlab_test_msgs/msg/Single", value=2.5))
    again = deserialise(serialise(pair, "urlab_test_msgs/msg/Pair"), "urlab_test_msgs/msg/Pair")
    assert again.left.value == 2.5
    assert type_hash("urlab_test_msgs/msg/Pair").startswith("RIHS01_")


def test_a_service_becomes_a_request_and_a_response() -> None:
    register("urlab_test_msgs/srv/Ask", "---\nbool success\nstring message\ngeometry_msgs/Pose pose\n")
    response = make("urlab_test_msgs/srv/Ask_Response", success=True, message="yes")
    again = deserialise(serialise(response, "urlab_test_msgs/srv/Ask_Response"), "urlab_test_msgs/srv/Ask_Response")
    assert (again.success, again.message, again.pose.orientation.w) == (True, "yes", 1.0)
    empty = serialise(make("urlab_test_msgs/srv/Ask_Request"), "urlab_test_msgs/srv/Ask_Request")
    assert empty == b"\x00\x01\x00\x00\x00"


@pytest.mark.parametrize(("distro", "gid_bytes"), [("humble", 24), ("jazzy", 16), ("", 16), ("unheard_of", 16)])
def test_definitions_are_those_of_the_distribution(
    distro: str, gid_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROS_DISTRO", distro)
    fields = messages._open_store().fielddefs["rmw_dds_common/msg/Gid"][1]
    assert fields[0][1][1][1] == gid_bytes


@pytest.mark.parametrize(
    ("module", "missing"),
    [("urlab.ros2.messages", "rosbags"), ("urlab.ros2.dds", "cyclonedds")],
)
def test_a_missing_library_is_named_with_the_line_that_installs_it(module: str, missing: str) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None; import {module}"
    done = subprocess.run(
        [sys.executable, "-c", code], env=dict(os.environ), capture_output=True, text=True, check=False
    )
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 1
    assert missing in last
    assert last.endswith("pip install 'urlab-headless[ros2]'")

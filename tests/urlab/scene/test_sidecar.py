import pickle

import pytest

from urlab.errors import ImportFailed
from urlab.robots import model_path
from urlab.scene.sidecar import (
    ActuatorConfig,
    CameraConfig,
    ControllerConfig,
    Sidecar,
    parse_sidecar,
    read_sidecar,
)
from urlab_wire.enums import ActuatorType, CameraMode

FULL = """\
twist = false
[controller]
kind = "pd"
[controller.params]
default_kp = 60.0
kp = { FL_hip = 80.0 }
[cameras.wrist]
mode = "depth"
resolution = [848, 480]
[semantic]
class = "robot"
[semantic.bodies]
hand = "gripper"
[[actuators]]
name = "elbow"
joint = "elbow_joint"
kind = "position"
kp = 100.0
ctrlrange = [-1, 1.5]
[[actuators]]
name = "wheel"
gear = 2
"""


def refusal(text: str) -> str:
    with pytest.raises(ImportFailed) as failed:
        parse_sidecar(text, source="arm.urlab.toml")
    return failed.value.message


def test_every_field_is_read():
    assert parse_sidecar(FULL, source="arm.urlab.toml") == Sidecar(
        controller=ControllerConfig("pd", {"default_kp": 60.0, "kp": {"FL_hip": 80.0}}),
        twist=False,
        cameras={"wrist": CameraConfig(CameraMode.DEPTH, (848, 480))},
        semantic_class="robot",
        semantic_bodies={"hand": "gripper"},
        actuators=(
            ActuatorConfig("elbow", "elbow_joint", ActuatorType.POSITION, kp=100.0, ctrlrange=(-1.0, 1.5)),
            ActuatorConfig("wheel", "wheel", ActuatorType.MOTOR, gear=2.0),
        ),
    )


def test_an_empty_file_and_no_file_say_nothing(tmp_path):
    assert parse_sidecar("", source="x") == Sidecar()
    assert read_sidecar(tmp_path / "arm.xml") == Sidecar()
    assert Sidecar().twist is True


def test_the_file_beside_the_model_is_read(tmp_path):
    (tmp_path / "arm.urlab.toml").write_text('[controller]\nkind = "pd"\n')
    assert read_sidecar(tmp_path / "arm.xml") == Sidecar(controller=ControllerConfig("pd"))
    assert read_sidecar(tmp_path / "arm.urdf") == read_sidecar(tmp_path / "arm.xml")


def test_a_robot_that_we_ship_has_its_controller():
    controller = read_sidecar(model_path("quadruped")).controller
    assert controller is not None
    assert controller.kind == "pd"


def test_a_sidecar_can_travel_to_another_process():
    sidecar = parse_sidecar(FULL, source="x")
    assert pickle.loads(pickle.dumps(sidecar)) == sidecar


def test_a_file_that_is_not_text_or_not_a_file_is_refused_by_name(tmp_path):
    (tmp_path / "arm.urlab.toml").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "leg.urlab.toml").mkdir()
    for stem in ("arm", "leg"):
        with pytest.raises(ImportFailed, match=rf"{stem}\.urlab\.toml: cannot read the sidecar"):
            read_sidecar(tmp_path / f"{stem}.xml")


def test_an_error_read_from_a_file_names_the_file(tmp_path):
    (tmp_path / "arm.urlab.toml").write_text("\ntwist = 1\n")
    with pytest.raises(ImportFailed, match=r"arm\.urlab\.toml:2: twist: is 1, expected true or false"):
        read_sidecar(tmp_path / "arm.xml")


def test_broken_syntax_names_line_and_column():
    assert refusal("twist = true\nx = \n").startswith("arm.urlab.toml:2:5: not TOML: ")
    assert refusal("twist = true\nx = [1,\n").startswith("arm.urlab.toml:3: not TOML: ")
    assert refusal("x = " + "[" * 5000).startswith("arm.urlab.toml:1: not TOML: ")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("twist = false", "twist = 'no'", ":1: twist: is 'no', expected true or false"),
        ("twist", "twits", ":1: twits: unknown key (did you mean 'twist'?); allowed: controller, twist, cameras"),
        ('kind = "pd"', "", ":2: controller.kind: is missing"),
        ('kind = "pd"', 'kind = ""', ":3: controller.kind: is '', expected a non-empty string"),
        (
            "[controller.params]",
            "[controller.parms]",
            ":4: controller.parms: unknown key (did you mean 'params'?)",
        ),
        (
            '"depth"',
            '"dept"',
            ":8: cameras.wrist.mode: is 'dept', expected one of real, depth, semantic, instance",
        ),
        ("480]", "0]", ":9: cameras.wrist.resolution: is [848, 0], expected [width, height]"),
        ("480]", "480.0]", ":9: cameras.wrist.resolution: is [848, 480.0]"),
        ("resolution", "size", ":9: cameras.wrist.size: unknown key; allowed: mode, resolution"),
        ('"robot"', "1", ":11: semantic.class: is 1, expected a non-empty string"),
        ('hand = "gripper"', '"left hand" = 3', ":13: semantic.bodies.left hand: is 3"),
        ('name = "elbow"', "", ":14: actuators[0].name: is missing"),
        (
            '"position"',
            '"muscle"',
            ":17: actuators[0].kind: is 'muscle', expected one of motor, position, velocity",
        ),
        ("kp = 100.0", "kp = -1", ":18: actuators[0].kp: is -1, expected a number that is not negative"),
        ("kp = 100.0", "kp = nan", ":18: actuators[0].kp: is nan, expected a finite number"),
        ("kp = 100.0", "kp = true", ":18: actuators[0].kp: is True, expected a finite number"),
        (
            "[-1, 1.5]",
            "[2, 1.5]",
            ":19: actuators[0].ctrlrange: is [2, 1.5], expected two numbers, [lower, upper]",
        ),
        ('"wheel"', '"elbow"', ":21: actuators[1].name: is 'elbow', which an actuator above has already"),
        ("gear = 2", "kp = 2", ":22: actuators[1].kp: a motor actuator has no kp"),
        ("gear = 2", "gear = 1" + "0" * 400, ":22: actuators[1].gear: is 1000"),
    ],
)
def test_a_wrong_field_is_named_with_its_line_and_what_is_allowed(old, new, said):
    assert refusal(FULL.replace(old, new, 1)).startswith("arm.urlab.toml" + said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cameras = 3", ":1: cameras: is 3, expected a table"),
        ("actuators = 3", ":1: actuators: is 3, expected an array of tables: [[actuators]]"),
        ("actuators = [3]", ":1: actuators[0]: is 3, expected a table"),
        ("\ncameras = { a = { mode = 3 } }", ":2: cameras.a.mode: is 3"),
        ("\ncameras.'a b'.mode = 3", ":2: cameras.a b.mode: is 3"),
        ("# [cameras]\n[ cameras . \"a\" ] # x\nmode = 3", ":3: cameras.a.mode: is 3"),
        ("[controller.params]\nkp = 1", ":1: controller.kind: is missing"),
    ],
)  # fmt: skip
def test_the_line_is_found_however_the_key_is_written(text, said):
    assert refusal(text).startswith("arm.urlab.toml" + said)

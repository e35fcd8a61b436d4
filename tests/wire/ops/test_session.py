import json

import msgpack

from urlab_wire import encode
from urlab_wire.enums import Encoding
from urlab_wire.ops.session import ArticulationBlock, CameraTopic, EntityBlock, HelloReply, OriginalNames
from urlab_wire.ops.sim import BeginPieReply

EDITOR = HelloReply(
    session_id="s",
    urlab_version="urlab/0.1.0",
    mujoco_version_int=4_000_000,
    mujoco_version="4.0.0",
    manager_present=False,
    articulations=[],
)


def test_a_handshake_without_a_simulation_ends_with_no_articulations() -> None:
    assert list(msgpack.unpackb(encode(EDITOR))) == [
        "op", "session_id", "urlab_version", "mujoco_version_int", "mujoco_version", "manager_present",
        "articulations",
    ]  # fmt: skip


def test_begin_pie_embeds_a_whole_handshake() -> None:
    reply = BeginPieReply(state="ready", compile_error="", handshake_payload=EDITOR)
    assert msgpack.unpackb(encode(reply))["handshake_payload"] == msgpack.unpackb(encode(EDITOR))


def test_an_embedded_handshake_carries_its_model_under_json_too() -> None:
    hello = HelloReply(**{name: getattr(EDITOR, name) for name in EDITOR.__struct_fields__} | {"mjb": b"model"})
    reply = BeginPieReply(state="ready", compile_error="", handshake_payload=hello)
    payload = json.loads(encode(reply, Encoding.JSON))["handshake_payload"]
    assert (payload["mjb_base64"], payload["mjb_size"]) == ("bW9kZWw=", 5)


def test_an_articulation_without_a_controller_has_no_controller_block() -> None:
    names = OriginalNames(actuators={}, joints={}, sensors={}, bodies={})
    camera = CameraTopic(mode="real", resolution=(64, 48), fovy=58.0, zmq_endpoint="tcp://h:1", zmq_topic="g1/camera/c")
    block = ArticulationBlock(
        prefix="g1",
        actor_id="",
        default_control_mode="raw",
        actuator_types={"hip": "position"},
        original_names=names,
        camera_topics={"c": camera},
    )
    got = msgpack.unpackb(encode(block))
    assert list(got) == [
        "prefix", "actor_id", "default_control_mode", "actuator_types", "original_names", "camera_topics",
    ]  # fmt: skip
    assert got["original_names"] == {"actuators": {}, "joints": {}, "sensors": {}, "bodies": {}}
    assert got["camera_topics"]["c"]["resolution"] == [64, 48]


def test_a_fixed_entity_has_no_offsets() -> None:
    assert msgpack.unpackb(encode(EntityBlock(id=12, has_free_base=False))) == {"id": 12, "has_free_base": False}

"""From a handshake to a local model and handles."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import mujoco

from urlab_client.handles.articulation import URLabArticulation
from urlab_client.handles.camera import GLOBAL, URLabCameraView
from urlab_client.handles.controller import make_controller
from urlab_client.handles.entity import URLabEntity
from urlab_client.handles.named import Named
from urlab_client.handles.parts import ModelParts
from urlab_wire.enums import ControlMode

if TYPE_CHECKING:
    from urlab_client.client import URLabClient

_MJB_NAME = "scene.mjb"


class UnreadableModelError(ValueError):
    """The compiled model of a handshake cannot be loaded by this MuJoCo build."""


def is_foreign(handshake: Mapping[str, Any]) -> bool:
    """Whether the server names another MuJoCo version than ours."""
    version = handshake.get("mujoco_version")
    return bool(version) and version != mujoco.__version__


def load_model(handshake: Mapping[str, Any]) -> Any:
    """The MjModel of a handshake, or None when it carries none.

    The binary is only good for the build that wrote it: a foreign server's XML and assets, when sent, come first.
    """
    source, binary = handshake.get("mjcf_compiled"), handshake.get("mjb")
    if source and (is_foreign(handshake) or not binary):
        return mujoco.MjModel.from_xml_string(source, dict(handshake.get("vfs_assets") or {}))
    if not binary:
        return None
    try:
        return mujoco.MjModel.from_binary_path(_MJB_NAME, {_MJB_NAME: binary})
    except ValueError as broken:
        if source:
            return mujoco.MjModel.from_xml_string(source, dict(handshake.get("vfs_assets") or {}))
        raise UnreadableModelError(f"the server's compiled model cannot be loaded: {broken}") from broken


def build_articulations(
    handshake: Mapping[str, Any], model: Any, client: "URLabClient"
) -> dict[str, URLabArticulation]:
    """The articulations by prefix, in handshake order, with the parts that the model has for them."""
    blocks = {block["prefix"]: block for block in handshake.get("articulations") or () if block.get("prefix")}
    parts = ModelParts(model, blocks) if model is not None else None
    built = {prefix: _articulation(block, client) for prefix, block in blocks.items()}
    if parts is not None:
        for prefix, articulation in built.items():
            parts.give_to(articulation, blocks[prefix].get("actuator_types") or {})
    return built


def build_entities(handshake: Mapping[str, Any], client: "URLabClient") -> dict[str, URLabEntity]:
    """The bodies outside the articulations, by compiled name."""
    return {name: _entity(name, block, client) for name, block in (handshake.get("entities") or {}).items()}


def setpoints_of(handshake: Mapping[str, Any]) -> dict[str, Any]:
    """The setpoints in force, by prefix, of the articulations whose block tells them."""
    blocks = handshake.get("articulations") or ()
    return {block["prefix"]: block["setpoints"] for block in blocks if block.get("prefix") and block.get("setpoints")}


def remember_initial_state(
    model: Any, articulations: Iterable[URLabArticulation], entities: Iterable[URLabEntity]
) -> None:
    """Tell handles that will have no local model the state that the model starts in."""
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    robots = list(articulations)
    for one in robots:
        one.observed.qpos, one.observed.qvel = data.qpos[one._qpos_index].tolist(), data.qvel[one._qvel_index].tolist()
    for entity in (*robots, *entities):
        if 0 <= entity.body_id < model.nbody:
            entity._initial_pose = {key: getattr(data, key)[entity.body_id].copy() for key in ("xpos", "xquat")}


def build_cameras(block: Mapping[str, Any] | None, lock: Any, owner: str = "") -> dict[str, URLabCameraView]:
    """The cameras of one owner, by name; ``lock`` is the client's data lock."""
    views = {
        name: URLabCameraView.from_handshake(name, payload, owner=owner, lock=lock)
        for name, payload in (block or {}).items()
    }
    return Named("camera", views)


def camera_keys(views: Iterable[URLabCameraView]) -> dict[str, URLabCameraView]:
    """The names that a reply may call a camera by: ``owner/name`` (the scene's owner is ``global``), and the bare name
    where only one has it."""
    table: dict[str, URLabCameraView] = {}
    same_name: dict[str, list[URLabCameraView]] = defaultdict(list)
    for view in views:
        same_name[view.name].append(view)
        table[f"{view.owner or GLOBAL}/{view.name}"] = view
    return table | {name: group[0] for name, group in same_name.items() if len(group) == 1}


def _articulation(block: Mapping[str, Any], client: "URLabClient") -> URLabArticulation:
    prefix = block["prefix"]
    built = URLabArticulation(
        prefix,
        actor_id=block.get("actor_id") or "",
        control_mode=block.get("default_control_mode") or ControlMode.RAW,
        controller=make_controller(prefix, block.get("controller"), client),
        original_names=block.get("original_names"),
        client=client,
    )
    built.cameras = build_cameras(block.get("camera_topics"), client._data_lock, prefix)
    return built


def _entity(name: str, block: Mapping[str, Any], client: "URLabClient") -> URLabEntity:
    return URLabEntity(
        name,
        block.get("id", -1),
        bool(block.get("has_free_base")),
        block.get("free_joint"),
        block.get("free_joint_id"),
        block.get("qpos_offset"),
        block.get("qvel_offset"),
        client=client,
    )

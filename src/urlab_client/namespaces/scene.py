"""``client.scene``: authoring of levels. Locations are metres, ``rotation_quat`` is x, y, z, w."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from urlab_client.enums import LightKind, coerce
from urlab_client.errors import URLabRPCError
from urlab_client.namespaces.base import RpcNamespace, Target, Vector, maybe, numbers, rotated, targeted
from urlab_client.types import (
    ActorHierarchyNode,
    SceneSnapshot,
    URLabAsset,
    URLabBlueprint,
    URLabLightHandle,
    URLabSpawnHandle,
)
from urlab_wire.errors import ErrorCode

Blueprint = str | URLabBlueprint


class SceneNamespace(RpcNamespace):
    """Levels, imports and actors. Works before a simulation runs; what it changes is simulated from its next start."""

    __slots__ = ()

    NAME = "scene"

    def create_level(self, name: str, *, force_overwrite: bool = False) -> None:
        """Create an empty level and open it."""
        self._ask("create_level", name=name, force_overwrite=force_overwrite)

    def load_level(self, name_or_path: str) -> None:
        """Open a level; unsaved edits of the current one are discarded."""
        self._ask("load_level", level_path=name_or_path)

    def save_level(self) -> None:
        """Save the open level."""
        self._ask("save_level")

    def current_level(self) -> str:
        """The path of the open level."""
        return str(self._ask("current_level").get("level_path") or "")

    def ensure_manager(self) -> bool:
        """Put a manager into the level if it has none; returns whether it had one."""
        return bool(self._ask("ensure_manager").get("was_existing"))

    def import_xml(self, xml_path: str | os.PathLike[str], *, force_reimport: bool = False) -> URLabBlueprint:
        """Import a model file of the server's machine."""
        return URLabBlueprint.from_wire(
            self._ask("import_xml", path=os.fspath(xml_path), force_reimport=force_reimport)
        )

    def destroy_asset(self, asset_path: str) -> bool:
        """Delete a level or an import from the project; returns whether there was one."""
        return bool(self._ask("destroy_asset", asset_path=asset_path).get("was_found"))

    def spawn_actor(
        self,
        blueprint: Blueprint,
        actor_id: str,
        *,
        location: Vector = (0, 0, 0),
        rotation_quat: Vector | None = None,
        rotation_euler: Vector | None = None,
        scale: Vector = (1, 1, 1),
        keyframe: str | None = None,
        tags: Sequence[str] | None = None,
        config: Mapping[str, Any] | None = None,
        heightfield: Mapping[str, Any] | None = None,
    ) -> URLabSpawnHandle:
        """Put a blueprint (a class path or a file is fine too) into the level; an actor of that id is moved instead.

        The last four are extensions of this server: the keyframe to start from, words for ``find_actors``, fields of
        the model's sidecar, and ground as ``{"size": (x, y, height), "heights": rows}`` or with ``"image": path``.
        """
        if isinstance(tags, str):
            raise TypeError(f"tags is a list of words, not the text {tags!r}")
        reply = self._ask(
            "spawn_actor",
            blueprint=_class_path(blueprint),
            actor_id=actor_id,
            location=numbers("location", location),
            scale=numbers("scale", scale),
            keyframe=keyframe,
            tags=None if tags is None else list(tags),
            config=None if config is None else dict(config),
            heightfield=None if heightfield is None else dict(heightfield),
            **rotated(rotation_quat, rotation_euler),
        )
        return URLabSpawnHandle.from_wire(reply)

    def spawn_grid(
        self,
        blueprint: Blueprint,
        base_actor_id: str,
        count_x: int,
        count_y: int,
        *,
        spacing: Vector = (1, 1, 0),
        origin: Vector = (0, 0, 0),
        rotation_quat: Vector | None = None,
        rotation_euler: Vector | None = None,
        scale: Vector = (1, 1, 1),
    ) -> dict[str, URLabSpawnHandle]:
        """Spawn ``count_x`` by ``count_y`` copies, ids ``<base>_<i>_<j>``, at most 1024; handles by actor id."""
        if count_x <= 0 or count_y <= 0:
            raise ValueError(f"a grid needs counts above zero, not {count_x} x {count_y}")
        reply = self._ask(
            "spawn_grid",
            blueprint=_class_path(blueprint),
            base_actor_id=base_actor_id,
            count_x=int(count_x),
            count_y=int(count_y),
            spacing=numbers("spacing", spacing),
            origin=numbers("origin", origin),
            scale=numbers("scale", scale),
            **rotated(rotation_quat, rotation_euler),
        )
        shared = {key: reply.get(key) for key in ("blueprint_class_path", "requires_pie_restart")}
        cells = [URLabSpawnHandle.from_wire(block, **shared) for block in reply.get("actors") or ()]
        return {cell.actor_id: cell for cell in cells}

    def spawn_light(
        self,
        kind: str | LightKind = "directional",
        actor_id: str = "",
        *,
        location: Vector = (0, 0, 0),
        rotation_euler: Vector = (0, 0, 0),
        intensity: float = 5000.0,
        color: Vector = (1, 1, 1),
    ) -> URLabLightHandle:
        """Put a light (directional, point, spot) into the level; ``color`` is r, g, b in 0..1."""
        reply = self._ask(
            "spawn_light",
            kind=coerce(LightKind, kind).value,
            actor_id=actor_id,
            location=numbers("location", location),
            rotation_euler=numbers("rotation_euler", rotation_euler),
            intensity=float(intensity),
            color=numbers("color", color),
        )
        return URLabLightHandle.from_wire(reply)

    def destroy_actor(self, target: Target, *, by_name: bool = False) -> None:
        """Remove an actor from the level."""
        self._ask("destroy_actor", **targeted(target, by_name))

    def set_actor_transform(
        self,
        target: Target,
        *,
        by_name: bool = False,
        location: Vector | None = None,
        rotation_quat: Vector | None = None,
        rotation_euler: Vector | None = None,
    ) -> None:
        """Move an actor; what is not given stays."""
        pose = {**rotated(rotation_quat, rotation_euler), "location": maybe("location", location)}
        self._ask("set_actor_transform", **targeted(target, by_name), **pose)

    def duplicate_actor(
        self, target: Target, new_actor_id: str, *, by_name: bool = False, location: Vector | None = None
    ) -> URLabSpawnHandle:
        """Copy an actor; without a location, one metre along +X."""
        who, where = targeted(target, by_name), maybe("location", location)
        reply = self._ask("duplicate_actor", **who, new_actor_id=new_actor_id, location=where)
        return URLabSpawnHandle.from_wire(reply)

    def actor_hierarchy(self, target: Target, *, by_name: bool = False) -> ActorHierarchyNode:
        """The parts of an actor as a tree."""
        reply = self._ask("actor_hierarchy", **targeted(target, by_name))
        return ActorHierarchyNode.from_wire(reply.get("root") or {})

    def snapshot(self) -> SceneSnapshot:
        """Everything in the level, with the element names of articulations."""
        return SceneSnapshot.from_wire(self._ask("snapshot"))

    def apply_scene(
        self, level_name: str, assets: Sequence[URLabAsset], *, save: bool = True
    ) -> dict[str, URLabSpawnHandle]:
        """Open or create a level and put these assets into it; handles by actor id.

        Each model is imported once. A repeated call moves the actors that are there: nothing is spawned twice.
        """
        ids = [asset.actor_id for asset in assets]
        if len(set(ids)) != len(ids):
            raise ValueError(f"every asset needs its own actor_id, but these repeat: {ids}")
        self._open_level(level_name)
        blueprints = {xml: self.import_xml(xml) for xml in dict.fromkeys(asset.xml for asset in assets)}
        handles = {asset.actor_id: self._place(asset, blueprints[asset.xml]) for asset in assets}
        if save:
            self.save_level()
        return handles

    def _open_level(self, name: str) -> None:
        try:
            self.load_level(name)
        except URLabRPCError as missing:
            if missing.code != ErrorCode.LOAD_LEVEL_FAILED:
                raise
            self._create_instead(name, missing)

    def _create_instead(self, name: str, missing: URLabRPCError) -> None:
        """A level that is there but cannot be loaded is told as such: nobody wants it replaced."""
        try:
            self.create_level(name)
        except URLabRPCError as refused:
            raise missing from refused

    def _place(self, asset: URLabAsset, blueprint: URLabBlueprint) -> URLabSpawnHandle:
        return self.spawn_actor(
            blueprint,
            asset.actor_id,
            location=asset.location,
            rotation_quat=asset.rotation_quat,
            rotation_euler=asset.rotation_euler,
            scale=asset.scale,
        )


def _class_path(blueprint: Blueprint) -> str:
    return blueprint.class_path if isinstance(blueprint, URLabBlueprint) else blueprint

"""``client.scene``: authoring of levels. Locations are metres, ``rotation_quat`` is x, y, z, w."""

import io
import os
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from urlab_client.checks import Vector, maybe_numbers, numbers
from urlab_client.enums import LightKind, coerce
from urlab_client.errors import URLabRPCError
from urlab_client.namespaces.base import RpcNamespace, Target, found_path, rotated, targeted, written_path
from urlab_client.results import result_of
from urlab_client.types import (
    ActorHierarchyNode,
    EditStep,
    LevelInfo,
    LevelStatus,
    SceneSnapshot,
    SceneSnapshotActor,
    UploadedAsset,
    URLabAsset,
    URLabBlueprint,
    URLabLightHandle,
    URLabSpawnHandle,
)
from urlab_wire.codec import plain_map
from urlab_wire.errors import ErrorCode
from urlab_wire.ops import scene as wire

Blueprint = str | URLabBlueprint


class SceneNamespace(RpcNamespace):
    """Levels, imports and actors. Works before a simulation runs; what it changes is simulated from its next start."""

    NAME = "scene"

    def create_level(self, name: str, *, force_overwrite: bool = False) -> None:
        """Create an empty level and open it; one of that name is replaced only with ``force_overwrite``."""
        self._ask(wire.CreateLevelRequest(name=name, force_overwrite=force_overwrite))

    def load_level(self, name_or_path: str) -> None:
        """Open a level by name or ``/Game/Levels/...`` path; unsaved edits of the current one are discarded."""
        self._ask(wire.LoadLevelRequest(level_path=name_or_path))

    def save_level(self, name: str | None = None) -> None:
        """Save the open level to the project; under another ``name`` (extension), which no level may have yet."""
        self._ask(wire.SaveLevelRequest(name=name))

    def list_levels(self) -> list[LevelInfo]:
        """Every level that can be opened, the project's own first (extension)."""
        return [result_of(LevelInfo, one) for one in self._ask(wire.ListLevelsRequest()).levels]

    def current_level(self) -> str:
        """The path of the open level, ``/Game/Levels/<name>``."""
        return self._ask(wire.CurrentLevelRequest()).level_path

    def level_status(self) -> LevelStatus:
        """The open level, whether it has changes that are not saved, and what can be undone and redone (extension)."""
        return result_of(LevelStatus, self._ask(wire.CurrentLevelRequest()))

    def undo(self) -> EditStep:
        """Take back the last edit of the open level (extension); `URLabRPCError` when there is none.

        The last 200 are kept, until another level is opened; saving keeps them.
        """
        return result_of(EditStep, self._ask(wire.UndoRequest()))

    def redo(self) -> EditStep:
        """Make the edit again that was taken back last (extension); `URLabRPCError` when there is none."""
        return result_of(EditStep, self._ask(wire.RedoRequest()))

    def ensure_manager(self) -> bool:
        """Put a manager into the level if it has none; returns whether it had one."""
        return self._ask(wire.EnsureManagerRequest()).was_existing

    def import_xml(self, xml_path: str | os.PathLike[str], *, force_reimport: bool = False) -> URLabBlueprint:
        """Import a model file of the server's machine; returns what `spawn_actor` takes.

        A relative path with a folder in it (``./arm.xml`` too) is meant from this program's folder.
        """
        reply = self._ask(wire.ImportXmlRequest(path=written_path(xml_path), force_reimport=force_reimport))
        return URLabBlueprint(reply.blueprint_class_path, reply.blueprint_short_name, reply.imported_now)

    def upload(self, path_or_name: str | os.PathLike[str], data: bytes | None = None) -> UploadedAsset:
        """Send a model from this machine to the server's project; `import_xml` takes its ``path`` (extension).

        A file is sent as it is: a model, a mesh, or a ``.zip`` or ``.mjz`` with a model and its files. A folder is sent
        as a zip file, without hidden files. With ``data`` nothing is read: the first argument is just a file name. What
        was uploaded under the same name before is replaced.
        """
        name, content = _packed(Path(path_or_name)) if data is None else (os.fspath(path_or_name), bytes(data))
        if len(content) > wire.MAX_UPLOAD_BYTES:
            raise ValueError(f"{name} has {len(content)} bytes; an upload has at most {wire.MAX_UPLOAD_BYTES}")
        return result_of(UploadedAsset, self._ask(wire.UploadAssetRequest(name=name, data=content)))

    def destroy_asset(self, asset_path: str) -> bool:
        """Delete a level or an import from the project; returns whether there was one."""
        return self._ask(wire.DestroyAssetRequest(asset_path=asset_path)).was_found

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

        ``location`` in metres, world frame; ``rotation_quat`` x, y, z, w or ``rotation_euler`` roll, pitch, yaw in
        degrees.

        The last four are extensions of this server: the keyframe to start from, words for ``find_actors``, fields of
        the model's sidecar, and ground as ``{"size": (x, y, height), "heights": rows}`` or with ``"image": path``.
        """
        if isinstance(tags, str):
            raise TypeError(f"tags is a list of words, not the text {tags!r}")
        quat, euler = rotated(rotation_quat, rotation_euler)
        request = wire.SpawnActorRequest(
            blueprint=_class_path(blueprint),
            actor_id=actor_id,
            location=numbers("location", location),
            rotation_quat=quat,
            rotation_euler=euler,
            scale=numbers("scale", scale),
            keyframe=keyframe,
            tags=None if tags is None else list(tags),
            config=None if config is None else dict(config),
            heightfield=None if heightfield is None else _heightfield(heightfield),
        )
        return result_of(URLabSpawnHandle, self._ask(request))

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
        """Spawn ``count_x`` by ``count_y`` copies, ids ``<base>_<i>_<j>``, at most 1024; handles by actor id.

        Cell (i, j) is at ``origin + (i * spacing[0], j * spacing[1], 0)``, metres; rotations as in `spawn_actor`.
        """
        if count_x <= 0 or count_y <= 0:
            raise ValueError(f"a grid needs counts above zero, not {count_x} x {count_y}")
        quat, euler = rotated(rotation_quat, rotation_euler)
        request = wire.SpawnGridRequest(
            blueprint=_class_path(blueprint),
            base_actor_id=base_actor_id,
            count_x=int(count_x),
            count_y=int(count_y),
            spacing=numbers("spacing", spacing),
            origin=numbers("origin", origin),
            rotation_quat=quat,
            rotation_euler=euler,
            scale=numbers("scale", scale),
        )
        reply = self._ask(request)
        of_all = {
            "blueprint_class_path": reply.blueprint_class_path,
            "requires_pie_restart": reply.requires_pie_restart,
        }
        return {cell.actor_id: result_of(URLabSpawnHandle, cell, **of_all) for cell in reply.actors}

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
        """Put a light (directional, point, spot) into the level.

        ``location`` in metres, ``rotation_euler`` roll, pitch, yaw in degrees (at identity it shines along +X),
        ``color`` r, g, b in 0..1.
        """
        request = wire.SpawnLightRequest(
            kind=coerce(LightKind, kind).value,
            actor_id=actor_id,
            location=numbers("location", location),
            rotation_euler=numbers("rotation_euler", rotation_euler),
            intensity=float(intensity),
            color=numbers("color", color),
        )
        return result_of(URLabLightHandle, self._ask(request, absent={"intensity": 5000.0}))

    def destroy_actor(self, target: Target, *, by_name: bool = False) -> None:
        """Remove an actor from the level; the running simulation keeps it until its next start."""
        name, by = targeted(target, by_name)
        self._ask(wire.DestroyActorRequest(target=name, target_by=by))

    def set_actor_transform(
        self,
        target: Target,
        *,
        by_name: bool = False,
        location: Vector | None = None,
        rotation_quat: Vector | None = None,
        rotation_euler: Vector | None = None,
    ) -> None:
        """Move an actor: metres, x, y, z, w or degrees, world frame; what is not given stays."""
        name, by = targeted(target, by_name)
        quat, euler = rotated(rotation_quat, rotation_euler)
        place = maybe_numbers("location", location)
        self._ask(
            wire.SetActorTransformRequest(
                target=name, target_by=by, location=place, rotation_quat=quat, rotation_euler=euler
            )
        )

    def duplicate_actor(
        self, target: Target, new_actor_id: str, *, by_name: bool = False, location: Vector | None = None
    ) -> URLabSpawnHandle:
        """Copy an actor to ``location`` (metres); without one, one metre along +X."""
        name, by = targeted(target, by_name)
        place = maybe_numbers("location", location)
        request = wire.DuplicateActorRequest(target=name, target_by=by, new_actor_id=new_actor_id, location=place)
        return result_of(URLabSpawnHandle, self._ask(request))

    def actor_hierarchy(self, target: Target, *, by_name: bool = False) -> ActorHierarchyNode:
        """The parts of an actor as a tree."""
        name, by = targeted(target, by_name)
        return _node(self._ask(wire.ActorHierarchyRequest(target=name, target_by=by)).root)

    def snapshot(self) -> SceneSnapshot:
        """Everything in the level, with the element names of articulations."""
        reply = self._ask(wire.SnapshotRequest())
        return SceneSnapshot(reply.level_path, reply.in_pie, [_snapshot_actor(block) for block in reply.actors])

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
        """A level that is there but cannot be loaded stays, and its own error is raised."""
        try:
            self.load_level(name)
        except URLabRPCError as missing:
            if missing.code != ErrorCode.LOAD_LEVEL_FAILED:
                raise
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
    return blueprint.class_path if isinstance(blueprint, URLabBlueprint) else found_path(blueprint)


def _heightfield(given: Mapping[str, Any]) -> wire.HeightfieldBlock:
    if "size" not in given:
        raise ValueError(f"heightfield needs a size (x, y, height in metres), not only {', '.join(given) or 'nothing'}")
    image = given.get("image")
    path = None if image is None else found_path(image)
    return wire.HeightfieldBlock(size=given["size"], heights=given.get("heights"), image=path)


def _packed(path: Path) -> tuple[str, bytes]:
    """The name and the bytes of a file; of a folder, those of a zip file of it."""
    if not path.is_dir():
        return path.name, path.read_bytes()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as archive:
        for file in sorted(path.rglob("*")):
            inside = file.relative_to(path)
            if file.is_file() and not any(part.startswith(".") for part in inside.parts):
                archive.write(file, inside)
    return f"{path.resolve().name}.zip", packed.getvalue()


def _node(block: wire.HierarchyNode) -> ActorHierarchyNode:
    children = [_node(child) for child in block.children]
    return result_of(ActorHierarchyNode, block, actor_class=block.class_, children=children)


def _snapshot_actor(block: wire.SnapshotActor) -> SceneSnapshotActor:
    names = None if block.urlab is None else plain_map(block.urlab)
    return result_of(SceneSnapshotActor, block, actor_class=block.class_, urlab=names)

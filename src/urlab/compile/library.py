"""The blueprints of a project, loaded: each is read once, in every shape in which actors want it."""

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from urlab.compile.blueprint import MUJOCO_ERRORS, Blueprint, compile_spec, load_blueprint
from urlab.compile.hulls import HullProgress, HullSource
from urlab.compile.scaling import scale_spec
from urlab.compile.static_mesh import convert_spec, mesh_file
from urlab.errors import ImportFailed
from urlab.scene.blueprint_record import BlueprintKind, BlueprintRecord
from urlab.scene.level import UNIT_SCALE, Actor

Find = Callable[[str], BlueprintRecord]
"""What a level's word for a blueprint stands for; ImportFailed when nothing."""


class Library:
    """Loads blueprints. Any thread may call it; one that is being loaded is waited for, and no other."""

    def __init__(self, find: Find, hull_source: HullSource | None = None) -> None:
        self._find = find
        self._hull_source = hull_source
        self._loaded: dict[tuple[Any, ...], Blueprint] = {}
        self._loading: dict[tuple[Any, ...], threading.Lock] = {}
        self._forgotten = 0
        self._lock = threading.Lock()

    def blueprint(self, actor: Actor) -> Blueprint:
        """The actor's model, scaled, configured and converted as the actor says; ImportFailed or EditError if not."""
        return self.blueprint_from(self._find(actor.blueprint), actor)

    def blueprint_from(self, record: BlueprintRecord, actor: Actor) -> Blueprint:
        """The same, for a caller that knows already what the actor's word for its blueprint stands for."""
        convert = actor.quick_convert
        if convert is not None and convert.complex_mesh and self._hull_source is not None:
            # Without the lock, so that other threads can load something else meanwhile.
            self._hull_source.hulls(mesh_file(record), convert.coacd_threshold)
        config = json.dumps(actor.config, sort_keys=True, default=str) if actor.config else ""
        key = (record.word, record.content, actor.scale, actor.quick_convert, config)
        with self._lock:
            found = self._loaded.pop(key, None)
            if found is not None:
                self._loaded[key] = found  # the last now: see `bound`
                return found
            turn = self._loading.setdefault(key, threading.Lock())
        with turn:
            return self._loaded.get(key) or self._load_and_keep(key, record, actor)

    def _load_and_keep(self, key: tuple[Any, ...], record: BlueprintRecord, actor: Actor) -> Blueprint:
        before, blueprint = self._forgotten, None
        try:
            blueprint = self._load(record, actor)
            return blueprint
        finally:
            with self._lock:
                self._loading.pop(key, None)
                if blueprint is not None and before == self._forgotten:
                    self._loaded[key] = blueprint

    def prepare(self, actor: Actor) -> None:
        """Load an actor's model; what would take long, cutting up its mesh, only begins, in the background."""
        convert = actor.quick_convert
        if convert is not None and convert.complex_mesh and self._hull_source is not None:
            self._hull_source.start(mesh_file(self._find(actor.blueprint)), convert.coacd_threshold)
        else:
            self.blueprint(actor)

    def conversion(self, actor: Actor) -> HullProgress | None:
        """How far the cutting up of an actor's mesh is; None when there is nothing to cut."""
        convert = actor.quick_convert
        if convert is None or not convert.complex_mesh or self._hull_source is None:
            return None
        return self._hull_source.progress(mesh_file(self._find(actor.blueprint)), convert.coacd_threshold)

    def cancel_conversions(self) -> None:
        """Cut up no more meshes for now; a caller that waits for one gets ImportFailed."""
        if self._hull_source is not None:
            self._hull_source.cancel()

    def bound(self, most: int) -> None:
        """Keep so many shapes at most: those go that have not been asked for longest."""
        with self._lock:
            while len(self._loaded) > most:
                del self._loaded[next(iter(self._loaded))]

    def forget_files(self) -> None:
        """Read those models again that are used where they stand: they may have changed."""
        with self._lock:
            self._forgotten += 1
            self._loaded = {key: one for key, one in self._loaded.items() if one.record.content}

    def _load(self, record: BlueprintRecord, actor: Actor) -> Blueprint:
        blueprint = load_blueprint(record, actor.config)
        if actor.scale == UNIT_SCALE and record.kind is not BlueprintKind.STATIC_MESH:
            return blueprint
        spec = blueprint.spec.copy()
        if actor.scale != UNIT_SCALE:
            scale_spec(spec, actor.scale, is_articulation=blueprint.is_articulation)
        if actor.quick_convert is not None:
            convert_spec(spec, record, actor.quick_convert, actor.scale, self._hull_source)
        try:
            compile_spec(spec.copy())
        except MUJOCO_ERRORS as refused:
            raise ImportFailed(f"{record.file}, scaled or converted as asked: {refused}") from refused
        return replace(blueprint, spec=spec)

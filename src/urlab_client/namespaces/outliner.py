"""``client.outliner``: what there is in the level, and quick convert."""

from urlab_client.checks import Vector, numbers
from urlab_client.namespaces.base import RpcNamespace, Target, targeted
from urlab_client.results import result_of
from urlab_client.types import ActorBounds, ActorInfo, BlueprintInfo, URLabBlueprint
from urlab_wire.ops import outliner as wire


class OutlinerNamespace(RpcNamespace):
    """Look through the level."""

    NAME = "outliner"

    def list_actors(self) -> list[ActorInfo]:
        """All actors of the level, lights included; locations in metres, ``rotation_quat`` x, y, z, w."""
        return [_actor_info(block) for block in self._ask(wire.ListActorsRequest()).actors]

    def list_blueprints(self) -> list[BlueprintInfo]:
        """All blueprints (imported and shipped models) of the project."""
        found = self._ask(wire.ListBlueprintsRequest()).blueprints
        return [BlueprintInfo(block.blueprint_class_path, block.blueprint_short_name) for block in found]

    def blueprint_picture(
        self, path: str | BlueprintInfo | URLabBlueprint, width: int = 256, height: int = 192
    ) -> bytes:
        """A picture of a blueprint by itself, as the bytes of a PNG file; the size in pixels (extension).

        ``path`` is its class path or name, or what `list_blueprints` or `import_xml` told. A robot stands at its
        keyframe ``home``, if it has one.
        """
        name = path.class_path if isinstance(path, BlueprintInfo | URLabBlueprint) else path
        return self._ask(wire.BlueprintPictureRequest(blueprint_path=name, width=width, height=height)).png

    def find_actors(
        self,
        *,
        class_filter: str | None = None,
        tag: str | None = None,
        name_prefix: str | None = None,
        in_pie: bool = False,
    ) -> list[ActorInfo]:
        """The actors that match every given filter; ``in_pie`` looks into the running simulation."""
        request = wire.FindActorsRequest(class_filter=class_filter, tag=tag, name_prefix=name_prefix, in_pie=in_pie)
        return [_actor_info(block) for block in self._ask(request).actors]

    def get_actor_bounds(self, target: Target, *, by_name: bool = False, components_only: bool = False) -> ActorBounds:
        """The axis-aligned box around an actor, metres in the world frame; ``extents`` are half sizes."""
        name, by = targeted(target, by_name)
        request = wire.GetActorBoundsRequest(target=name, target_by=by, components_only=components_only)
        return result_of(ActorBounds, self._ask(request))

    def select_actor(self, target: Target, *, by_name: bool = False) -> None:
        """Select an actor in every view."""
        name, by = targeted(target, by_name)
        self._ask(wire.SelectActorRequest(target=name, target_by=by))

    def add_quick_convert(
        self,
        target: Target,
        *,
        by_name: bool = False,
        static: bool = False,
        complex_mesh: bool = False,
        coacd_threshold: float = 0.05,
        driven_by_unreal: bool = False,
        friction: Vector = (1, 1, 1),
    ) -> None:
        """Make a static-mesh actor collide: as a fixed or a free body, with a simple or a decomposed shape."""
        name, by = targeted(target, by_name)
        self._ask(
            wire.AddQuickConvertRequest(
                target=name,
                target_by=by,
                static=static,
                complex_mesh=complex_mesh,
                coacd_threshold=float(coacd_threshold),
                driven_by_unreal=driven_by_unreal,
                friction=numbers("friction", friction),
            )
        )

    def remove_quick_convert(self, target: Target, *, by_name: bool = False) -> None:
        """Undo `add_quick_convert`."""
        name, by = targeted(target, by_name)
        self._ask(wire.RemoveQuickConvertRequest(target=name, target_by=by))


def _actor_info(block: wire.ActorBlock) -> ActorInfo:
    quick = block.quick_convert if block.has_quick_convert else None
    if quick is None:
        return result_of(ActorInfo, block, actor_class=block.class_)
    shape = {name: getattr(quick, name) for name in ("static", "complex_mesh", "coacd_threshold", "driven_by_unreal")}
    friction = tuple(numbers("friction", quick.friction)) if quick.friction else None
    return result_of(
        ActorInfo, block, actor_class=block.class_, friction=friction, conversion=quick.conversion, **shape
    )

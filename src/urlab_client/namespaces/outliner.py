"""``client.outliner``: what there is in the level, and quick convert."""

from urlab_client.checks import Vector, numbers
from urlab_client.namespaces.base import RpcNamespace, Target, targeted
from urlab_client.types import IDENTITY_XYZW, ActorBounds, ActorInfo, BlueprintInfo, vec3, vec4
from urlab_wire.ops import outliner as wire


class OutlinerNamespace(RpcNamespace):
    """Look through the level."""

    __slots__ = ()

    NAME = "outliner"

    def list_actors(self) -> list[ActorInfo]:
        """All actors."""
        return [_actor_info(block) for block in self._ask(wire.ListActorsRequest()).actors]

    def list_blueprints(self) -> list[BlueprintInfo]:
        """All blueprints of the project."""
        found = self._ask(wire.ListBlueprintsRequest()).blueprints
        return [BlueprintInfo(block.blueprint_class_path, block.blueprint_short_name) for block in found]

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
        """The axis-aligned box around an actor, in metres."""
        name, by = targeted(target, by_name)
        box = self._ask(wire.GetActorBoundsRequest(target=name, target_by=by, components_only=components_only))
        return ActorBounds(box.actor_name, vec3(box.min), vec3(box.max), vec3(box.center), vec3(box.extents))

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
    info = ActorInfo(
        name=block.name,
        actor_class=block.class_,
        actor_id=block.actor_id,
        is_articulation=block.is_articulation,
        has_quick_convert=block.has_quick_convert,
        location=vec3(block.location),
        rotation_quat=vec4(block.rotation_quat, IDENTITY_XYZW),
        is_static_mesh_actor=block.is_static_mesh_actor,
        is_light=block.is_light,
        label=block.label,
    )
    quick = block.quick_convert if block.has_quick_convert else None
    if quick is not None:
        info.static, info.complex_mesh = quick.static, quick.complex_mesh
        info.coacd_threshold, info.driven_by_unreal = quick.coacd_threshold, quick.driven_by_unreal
        info.friction = vec3(quick.friction) if quick.friction else None
    return info

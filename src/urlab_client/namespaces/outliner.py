"""``client.outliner``: what there is in the level, and quick convert."""

from urlab_client.namespaces.base import RpcNamespace, Target, Vector, numbers, targeted
from urlab_client.types import ActorBounds, ActorInfo, BlueprintInfo


class OutlinerNamespace(RpcNamespace):
    """Look through the level."""

    __slots__ = ()

    NAME = "outliner"

    def list_actors(self) -> list[ActorInfo]:
        """All actors."""
        return [ActorInfo.from_wire(block) for block in self._ask("list_actors").get("actors") or ()]

    def list_blueprints(self) -> list[BlueprintInfo]:
        """All blueprints of the project."""
        return [BlueprintInfo.from_wire(block) for block in self._ask("list_blueprints").get("blueprints") or ()]

    def find_actors(
        self,
        *,
        class_filter: str | None = None,
        tag: str | None = None,
        name_prefix: str | None = None,
        in_pie: bool = False,
    ) -> list[ActorInfo]:
        """The actors that match every given filter; ``in_pie`` looks into the running simulation."""
        reply = self._ask("find_actors", class_filter=class_filter, tag=tag, name_prefix=name_prefix, in_pie=in_pie)
        return [ActorInfo.from_wire(block) for block in reply.get("actors") or ()]

    def get_actor_bounds(self, target: Target, *, by_name: bool = False, components_only: bool = False) -> ActorBounds:
        """The axis-aligned box around an actor, in metres."""
        return ActorBounds.from_wire(
            self._ask("get_actor_bounds", **targeted(target, by_name), components_only=components_only)
        )

    def select_actor(self, target: Target, *, by_name: bool = False) -> None:
        """Select an actor in every view."""
        self._ask("select_actor", **targeted(target, by_name))

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
        self._ask(
            "add_quick_convert",
            **targeted(target, by_name),
            static=static,
            complex_mesh=complex_mesh,
            coacd_threshold=float(coacd_threshold),
            driven_by_unreal=driven_by_unreal,
            friction=numbers("friction", friction),
        )

    def remove_quick_convert(self, target: Target, *, by_name: bool = False) -> None:
        """Undo `add_quick_convert`."""
        self._ask("remove_quick_convert", **targeted(target, by_name))

"""Elements of a scene by the names that clients give: a compiled name, or a short one where only one actor has it."""

from collections.abc import Mapping

from urlab.compile import CompiledScene
from urlab.errors import BadValue, LookupFailed, UnknownBody, known


class SceneNames:
    """The bodies and equality constraints of one scene. Any thread."""

    def __init__(self, scene: CompiledScene) -> None:
        model = scene.model
        self.bodies: Mapping[str, int] = {model.body(index).name: index for index in range(model.nbody)}
        self.equalities: Mapping[str, int] = {model.equality(index).name: index for index in range(model.neq)}
        self._actors = {one.actor_id: one.prefix for one in scene.articulations if one.actor_id}
        self._prefixes = tuple(one.actor.name for one in scene.placed)

    def body(self, name: str) -> int:
        """The id of a body; UnknownBody lists those that exist."""
        return self._find("body", name, self.bodies, UnknownBody)

    def prefix(self, target: str, *, by_name: bool = False) -> str:
        """The prefix of the articulation whose actor_id this is; any other word stays as it is, as in ``by_name``."""
        return target if by_name else self._actors.get(target, target)

    def equality(self, name: str) -> int:
        """The id of an equality constraint; BadValue lists those that exist."""
        return self._find("equality constraint", name, self.equalities, BadValue)

    def _find(
        self, kind: str, name: str, ids: Mapping[str, int], error: type[LookupFailed] | type[BadValue]
    ) -> int:  # fmt: skip
        if name in ids:
            return ids[name]
        full = [f"{prefix}_{name}" for prefix in self._prefixes if f"{prefix}_{name}" in ids]
        if len(full) == 1:
            return ids[full[0]]
        if full:
            raise error(f"{kind} {name!r} is ambiguous: {known(full)}")
        raise error(f"there is no {kind} {name!r}; there are: {known(ids)}")

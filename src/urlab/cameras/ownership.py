"""Whom everything that can be seen belongs to."""

from typing import Any, NamedTuple

import mujoco

from urlab.compile.assemble import PlacedActor
from urlab.compile.bind import owner_of
from urlab.compile.compiled_scene import CompiledScene

WORLD = "world"


class Owner(NamedTuple):
    """The class, and the one thing, that something seen is part of."""

    semantic: str
    instance: str


def body_owners(scene: CompiledScene) -> list[Owner]:
    """Per body id. A robot is one thing, but for free bodies in its file; of everything else, each body is one.

    The class is the blueprint's short name unless the sidecar says otherwise, for all or for that body.
    """
    owners = [Owner(WORLD, WORLD)] * int(scene.model.nbody)
    alone = {entity.body_id for entity in scene.entities}
    for placed in scene.placed:
        for compiled, original in zip(placed.body_names, _names_in_file(placed), strict=False):
            body = int(scene.model.body(compiled).id)
            parent = int(scene.model.body_parentid[body])
            instance = compiled
            if placed.blueprint.is_articulation and body not in alone:
                instance = owners[parent].instance if parent else placed.actor.name
            owners[body] = Owner(_class_of(placed, original), instance)
    return owners


def element_owners(scene: CompiledScene, bodies: list[Owner]) -> dict[int, list[Owner]]:
    """Per kind of element (mjtObj) that MuJoCo draws, per id. ``bodies`` are the owners of the bodies.

    What is fixed to the world in a file that has bodies too is part of the world: a floor is no part of its robot.
    """
    model, kinds = scene.model, mujoco.mjtObj
    flexes = [_flex_body(model, flex) for flex in range(model.nflex)]
    skins = [_skin_body(model, skin) for skin in range(model.nskin)]
    bearers = {
        kinds.mjOBJ_GEOM: model.geom_bodyid.tolist(),
        kinds.mjOBJ_SITE: model.site_bodyid.tolist(),
        kinds.mjOBJ_FLEX: flexes,
        kinds.mjOBJ_SKIN: skins,
    }
    actors = _Actors(scene)
    owners = {
        int(kind): [bodies[body] if body else actors.world_of(kind, index) for index, body in enumerate(borne_by)]
        for kind, borne_by in bearers.items()
    }
    owners[int(kinds.mjOBJ_TENDON)] = [actors.owner_of_tendon(tendon) for tendon in range(model.ntendon)]
    return owners


class _Actors:
    """Finds the actor of what no body bears, by its name."""

    def __init__(self, scene: CompiledScene) -> None:
        self._model = scene.model
        self._actors = {placed.actor.name: placed for placed in scene.placed}
        self._names = frozenset(self._actors)

    def world_of(self, kind: Any, index: int) -> Owner:
        """The world, in the class that the file of this element gives to it."""
        actor = self._actor_of(kind, index)
        return Owner(actor.blueprint.sidecar.semantic_bodies.get(WORLD, WORLD) if actor else WORLD, WORLD)

    def owner_of_tendon(self, index: int) -> Owner:
        """The actor that brought it: a tendon has no body of its own."""
        actor = self._actor_of(mujoco.mjtObj.mjOBJ_TENDON, index)
        return Owner(_class_of(actor), actor.actor.name) if actor else Owner(WORLD, WORLD)

    def _actor_of(self, kind: Any, index: int) -> PlacedActor | None:
        name = mujoco.mj_id2name(self._model, kind, index) or ""
        return self._actors.get(owner_of(name, self._names) or "")


def _names_in_file(placed: PlacedActor) -> list[str]:
    """The bodies of the model file; what it fixes to its world becomes a body when it has no other."""
    return [body.name for body in placed.blueprint.spec.bodies[1:]] or [WORLD]


def _class_of(placed: PlacedActor, body: str = "") -> str:
    sidecar = placed.blueprint.sidecar
    return sidecar.semantic_bodies.get(body, sidecar.semantic_class or placed.blueprint.record.short_name)


def _flex_body(model: Any, flex: int) -> int:
    """The first body that carries it; 0 when it is fixed to the world."""
    vertices = _slice(model.flex_vertadr[flex], model.flex_vertnum[flex])
    nodes = _slice(model.flex_nodeadr[flex], model.flex_nodenum[flex])
    bodies = [*model.flex_vertbodyid[vertices], *model.flex_nodebodyid[nodes]]
    return next((int(body) for body in bodies if body > 0), 0)


def _skin_body(model: Any, skin: int) -> int:
    bones = _slice(model.skin_boneadr[skin], model.skin_bonenum[skin])
    return next((int(body) for body in model.skin_bonebodyid[bones]), 0)


def _slice(start: Any, count: Any) -> slice:
    return slice(max(int(start), 0), max(int(start), 0) + int(count))

"""Which colour stands for what in the segmentation modes: owners of what is drawn, their labels, their colours."""

import colorsys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import count, islice
from typing import Any, NamedTuple

import mujoco

from urlab.compile.assemble import PlacedActor
from urlab.compile.bind import owner_of
from urlab.compile.compiled_scene import CompiledScene
from urlab_wire.enums import CameraMode

LabelColor = tuple[int, int, int]
"""Red, green, blue, each 0 to 255."""

BLACK: LabelColor = (0, 0, 0)

_GOLDEN = 0.6180339887498949
_ROOT_2 = 0.4142135623730951
_ROOT_3 = 0.7320508075688772

WORLD = "world"
BACKGROUND = "background"


class Owner(NamedTuple):
    """The class, and the one thing, that something seen is part of."""

    semantic: str
    instance: str


@dataclass(frozen=True, slots=True)
class Label:
    """One row of the table: a class or a thing. Id 0 is the background, which is black."""

    id: int
    color: LabelColor
    name: str


@dataclass(frozen=True)
class Segmentation:
    """The labels of a scene in the order of their ids, and whom each element belongs to, by mjtObj and id."""

    semantic: tuple[Label, ...]
    instance: tuple[Label, ...]
    owners: Mapping[int, list[Owner]]

    def labels(self, mode: CameraMode) -> dict[int, list[Label]]:
        """The label of each element in the semantic or the instance mode, by mjtObj and id."""
        is_semantic = mode is CameraMode.SEMANTIC
        rows = {label.name: label for label in (self.semantic if is_semantic else self.instance)[1:]}
        return {
            kind: [rows[owner.semantic if is_semantic else owner.instance] for owner in owners]
            for kind, owners in self.owners.items()
        }


def segment(scene: CompiledScene) -> Segmentation:
    """The labels of a scene: the same ones for the same scene, on every machine."""
    bodies = body_owners(scene)
    owners = element_owners(scene, bodies)
    found = [*bodies[1:], *(owner for kind in owners.values() for owner in kind)]
    semantic = _labels(owner.semantic for owner in found)
    return Segmentation(semantic, _labels(owner.instance for owner in found), owners)


def segmentation_table(scene: CompiledScene) -> dict[str, list[dict[str, Any]]]:
    """``{"semantic": [{"id", "color": [r, g, b], "name"}], "instance": [...]}``; the first row is the background.

    Within a mode all colours differ, so that a pixel's colour tells its id.
    """
    found = segment(scene)
    return {"semantic": _rows(found.semantic), "instance": _rows(found.instance)}


def _labels(names: Iterable[str]) -> tuple[Label, ...]:
    distinct = list(dict.fromkeys(names))
    colors = distinct_colors(len(distinct))
    things = (Label(number, color, name) for number, (color, name) in enumerate(zip(colors, distinct, strict=True), 1))
    return (Label(0, BLACK, BACKGROUND), *things)


def _rows(labels: Iterable[Label]) -> list[dict[str, Any]]:
    return [{**asdict(label), "color": list(label.color)} for label in labels]


# -- owners ----------------------------------------------------------------------------------------------------------


def body_owners(scene: CompiledScene) -> list[Owner]:
    """Per body id. A robot is one thing, but for free bodies in its file; of everything else, each body is one.

    The class is the blueprint's short name unless the sidecar says otherwise, for all or for that body.
    """
    owners = [Owner(WORLD, WORLD)] * int(scene.model.nbody)
    alone = {entity.body_id for entity in scene.entities}
    for placed in scene.placed:
        # What a model file fixes to its world becomes a body when it has no other.
        originals = [body.name for body in placed.blueprint.spec.bodies[1:]] or [WORLD]
        for compiled, original in zip(placed.body_names, originals, strict=False):
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


# -- colours ---------------------------------------------------------------------------------------------------------


def distinct_colors(wanted: int) -> list[LabelColor]:
    """That many colours, no two the same and none black. The first ones are always the same, on every machine."""
    return list(islice(_colors(), wanted))


def _colors() -> Iterator[LabelColor]:
    """Hues that are far apart for neighbours; strength and brightness vary too, or the hues would run out."""
    seen = {BLACK}
    for number in count():
        color = _color(number)
        if color not in seen:
            seen.add(color)
            yield color


def _color(number: int) -> LabelColor:
    hue = number * _GOLDEN % 1.0
    strength = 1.0 - 0.5 * (number * _ROOT_2 % 1.0)
    brightness = 1.0 - 0.5 * (number * _ROOT_3 % 1.0)
    red, green, blue = (round(255 * part) for part in colorsys.hsv_to_rgb(hue, strength, brightness))
    return red, green, blue

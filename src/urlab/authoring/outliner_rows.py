"""Actors as the outliner shows them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from urlab.authoring.world import LIGHT_CLASSES, World
from urlab.compile.hulls import HullProgress
from urlab.errors import UrlabError
from urlab.geometry import Pose
from urlab.scene.blueprint_record import BlueprintKind
from urlab.scene.level import MANAGER_NAME, Actor, Level, Light, QuickConvert

ACTOR_ID_TAG = "URLab.ActorId="
_THING = "MjEntity"
ROBOT_CLASS = "MjArticulation"
CLASS_OF_KIND = {BlueprintKind.STATIC_MESH: "StaticMeshActor", BlueprintKind.HEIGHTFIELD: "MjHeightfieldActor"}
_MANAGER_CLASS = "AMjManager"
_ROOTS = ("Actor", "Object")


@dataclass(frozen=True, slots=True)
class ActorRow:
    """One actor. ``classes`` begins with its own class and goes on with those that it descends from."""

    name: str
    classes: tuple[str, ...]
    actor_id: str = ""
    pose: Pose = Pose()  # noqa: RUF009 - it is frozen
    tags: tuple[str, ...] = ()
    is_static_mesh: bool = False
    is_light: bool = False
    robot: Actor | None = None
    """The actor, if it is an articulation."""
    quick_convert: QuickConvert | None = None
    conversion: HullProgress | None = None
    problem: str | None = None
    """Why it cannot be played, if its model cannot be had."""

    @property
    def label(self) -> str:
        """What a person would call it."""
        return self.actor_id or self.name

    def is_a(self, word: str) -> bool:
        """Whether it or an ancestor is of that class, in any case; a leading A, U or F may be there or not."""
        wanted = _bare(word)
        return any(wanted & _bare(one) for one in self.classes)


def rows(world: World, level: Level, poses: Mapping[str, Pose] | None = None) -> Iterator[ActorRow]:
    """All actors of a level; ``poses`` says where they are now, if not where the level puts them."""
    now = poses or {}
    if level.has_manager:
        yield ActorRow(MANAGER_NAME, (_MANAGER_CLASS, *_ROOTS))
    for actor in level.actors:
        yield _actor_row(world, actor, now.get(actor.name, actor.pose))
    for light in level.lights:
        yield _light_row(light)


def class_name(world: World, one: Actor | Light) -> str:
    """The class of an actor."""
    if isinstance(one, Light):
        return LIGHT_CLASSES[one.kind]
    record = world.project.record(one.blueprint)
    return CLASS_OF_KIND.get(record.kind, f"{record.short_name}_C")


def _actor_row(world: World, actor: Actor, pose: Pose) -> ActorRow:
    try:
        return _known_actor_row(world, actor, pose)
    except UrlabError as missing:
        tags = _tags(actor.actor_id, actor.tags)
        return ActorRow(actor.name, ("MissingActor", *_ROOTS), actor.actor_id, pose, tags, problem=missing.message)


def _known_actor_row(world: World, actor: Actor, pose: Pose) -> ActorRow:
    kind = world.project.record(actor.blueprint).kind
    is_robot = kind is BlueprintKind.MODEL and world.library.blueprint(actor).is_articulation
    family = () if kind in CLASS_OF_KIND else (ROBOT_CLASS if is_robot else _THING,)
    return ActorRow(
        name=actor.name,
        classes=(class_name(world, actor), *family, *_ROOTS),
        actor_id=actor.actor_id,
        pose=pose,
        tags=_tags(actor.actor_id, actor.tags),
        robot=actor if is_robot else None,
        is_static_mesh=kind is BlueprintKind.STATIC_MESH,
        quick_convert=actor.quick_convert,
        conversion=world.library.conversion(actor),
    )


def _light_row(light: Light) -> ActorRow:
    classes = (LIGHT_CLASSES[light.kind], "Light", *_ROOTS)
    return ActorRow(light.name, classes, light.actor_id, light.pose, _tags(light.actor_id, ()), is_light=True)


def _tags(actor_id: str, tags: tuple[str, ...]) -> tuple[str, ...]:
    return (f"{ACTOR_ID_TAG}{actor_id}", *tags) if actor_id else tags


def _bare(word: str) -> set[str]:
    """A class name in lower case, with and without the letter that Unreal puts before it."""
    lower = word.lower()
    return {lower, lower[1:]} if len(word) > 1 and word[0] in "AUF" and word[1].isupper() else {lower}

"""What a command line or `launch` names, as a level: a level, or models in a fresh one, each in a place of its own."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from urlab.compile.blueprint import model_name_of
from urlab.compile.bounds import Aabb
from urlab.compile.inspection import inspect
from urlab.compile.library import Library
from urlab.errors import LoadLevelFailed, UrlabError, known
from urlab.geometry import Pose, wxyz_from_euler_deg
from urlab.scene.blueprint_record import IMPORTS_FOLDER, MODEL_SUFFIXES
from urlab.scene.level import Actor, Level
from urlab.scene.level_file import read_level
from urlab.scene.names import ActorNames, level_name
from urlab.scene.project import Project

DEFAULT_LEVEL = "demo"
HOME = "home"

_PLACE = re.compile(r"(?P<target>.+)@(?P<numbers>[-+.,\deE ]+)", re.DOTALL)
_GAP_M = 0.5
_ROOM_M = 2.0
"""What stands still and is wider than this both ways is surroundings: others may stand in it."""
_TOUCH_M = 0.001


@dataclass(frozen=True)
class _Target:
    """``pose`` is None where the caller leaves it to us."""

    name: str
    pose: Pose | None


def open_targets(project: Project, targets: Sequence[str | Path], library: Library | None = None) -> Level:
    """The level that was named, or a fresh one that holds the named models; nothing named is the demo.

    ``NAME@x,y,z`` or ``NAME@x,y,z,yaw`` (metres, degrees) says where a model stands. The others stand at the origin;
    of those that would stand in each other, later ones are set beside, along +y.
    """
    named = [_target(str(target)) for target in targets]
    for one in named:
        _refuse_bad_place(project, one.name)
    if not named:
        return project.open_level(DEFAULT_LEVEL)
    if all(_is_model(project, one.name) for one in named):
        return _fresh_level(project, named, library or Library(project.record))
    if len(named) > 1:
        odd = [one.name for one in named if not _is_model(project, one.name)]
        raise LoadLevelFailed(
            f"of several targets each must be a model, and {known(odd)} is none; models: "
            f"{known(project.shipped_models)}; or give model files ({', '.join(MODEL_SUFFIXES)})"
        )
    name = named[0].name
    if named[0].pose is not None:
        raise LoadLevelFailed(f"{targets[0]}: only models have a place, and {name!r} is none")
    if Path(name).suffix.lower() == ".toml":
        return read_level(Path(name))
    _refuse_unknown(project, name)
    return project.open_level(name)


def is_of_project(project: Project, targets: Sequence[str | Path], level: Level) -> bool:
    """Whether the level was opened by its name in the project, or by its file there: then it is saved there again."""
    names = [str(target) for target in targets] or [DEFAULT_LEVEL]
    if len(names) > 1 or _is_model(project, _target(names[0]).name):
        return False
    path = Path(names[0])
    return path.suffix.lower() != ".toml" or path.resolve() == project.level_file(level.name).resolve()


def _target(text: str) -> _Target:
    match = _PLACE.fullmatch(text)
    if match is None:
        return _Target(text, None)
    try:
        numbers = [float(number) for number in match["numbers"].split(",")]
    except ValueError:
        numbers = []
    if len(numbers) not in (3, 4) or not all(map(math.isfinite, numbers)):
        raise _bad_place(text)
    x, y, z, yaw = (*numbers, 0.0)[:4]
    return _Target(match["target"], Pose((x, y, z), wxyz_from_euler_deg((0.0, 0.0, yaw))))


def _bad_place(text: str) -> LoadLevelFailed:
    return LoadLevelFailed(f"{text!r}: a place is NAME@x,y,z or NAME@x,y,z,yaw, in metres and degrees")


def _refuse_bad_place(project: Project, name: str) -> None:
    """A name that is a model up to its last ``@``, and no model with it, was meant to have a place."""
    model, at, _ = name.rpartition("@")
    if at and not _is_model(project, name) and _is_model(project, model):
        raise _bad_place(name)


def _is_model(project: Project, name: str) -> bool:
    return Path(name).suffix.lower() in MODEL_SUFFIXES or name in project.shipped_models or _is_import(project, name)


def _is_import(project: Project, name: str) -> bool:
    return name.startswith(f"{IMPORTS_FOLDER}/") and project.imported(name.rpartition("/")[2]) is not None


def _refuse_unknown(project: Project, name: str) -> None:
    if level_name(name) not in project.level_names():
        raise LoadLevelFailed(
            f"there is no level or model {name!r}; levels: {known(project.level_names())}; "
            f"models: {known(project.shipped_models)}; or give a model file ({', '.join(MODEL_SUFFIXES)})"
        )


def _fresh_level(project: Project, targets: Sequence[_Target], library: Library) -> Level:
    actors, names = [], ActorNames()
    for one in targets:
        word = str(Path(one.name).resolve()) if Path(one.name).suffix.lower() in MODEL_SUFFIXES else one.name
        record = project.record(word)
        name = names.take_unique(model_name_of(record.file))
        actor = Actor(name, record.word, pose=one.pose or Pose())
        actors.append(replace(actor, keyframe=_start(actor, project, library)))
    free = [one.pose is None for one in targets]
    return Level("Untitled", tuple(actors if len(actors) == 1 else _spread(actors, free, library)))


def _start(actor: Actor, project: Project, library: Library) -> str:
    """The keyframe that an actor starts from. Robots that ship stand at home, and their controls hold them there.

    A model of the user starts as it does in plain MuJoCo.
    """
    if actor.blueprint not in project.shipped_models:
        return ""
    return HOME if any(key.name == HOME for key in library.blueprint(actor).spec.keys) else ""


def _spread(actors: Sequence[Actor], may_move: Sequence[bool], library: Library) -> list[Actor]:
    """The actors, with those set beside that may move and would stand in one before them, or in one that may not."""
    boxes = [_box(actor, library) for actor in actors]
    taken = [box for box, free in zip(boxes, may_move, strict=True) if box is not None and not free]
    placed = list(actors)
    for index, (actor, box) in enumerate(zip(actors, boxes, strict=True)):
        if box is None or not may_move[index]:
            continue
        if any(_overlap(box, other) for other in taken):
            shift = max(other.upper[1] for other in taken) + _GAP_M - box.lower[1]
            placed[index] = replace(actor, pose=Pose((0.0, shift, 0.0)))
            box = _shifted(box, shift)
        taken.append(box)
    return placed


def _box(actor: Actor, library: Library) -> Aabb | None:
    """The space that an actor takes for itself; None for surroundings, and for a model that cannot be used."""
    try:
        blueprint = library.blueprint(actor)
        stands_still = not blueprint.is_articulation and not blueprint.spec.joints
        box = inspect(blueprint).aabb(actor.pose, colliding_only=True, with_ground=stands_still)
    except UrlabError:
        return None  # compiling the level says why
    if box is None or (stands_still and min(box.half_size[:2]) * 2 > _ROOM_M):
        return None
    return box


def _overlap(one: Aabb, other: Aabb) -> bool:
    return all(
        one.lower[axis] < other.upper[axis] - _TOUCH_M and other.lower[axis] < one.upper[axis] - _TOUCH_M
        for axis in range(3)
    )


def _shifted(box: Aabb, along_y: float) -> Aabb:
    (x0, y0, z0), (x1, y1, z1) = box.lower, box.upper
    return Aabb((x0, y0 + along_y, z0), (x1, y1 + along_y, z1))

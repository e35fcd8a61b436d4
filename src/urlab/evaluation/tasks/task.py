"""A task: what the robot has to do with which objects. Read from one TOML file."""

import dataclasses
import hashlib
import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

import msgspec

from urlab.errors import BadValue, FileError
from urlab.evaluation.camera_config import CameraMounts
from urlab.evaluation.embodiments import EMBODIMENTS, load_rig
from urlab.evaluation.tasks.goal import Goal
from urlab.evaluation.tasks.objects import ObjectSpec
from urlab.evaluation.tasks.oracle_steps import OracleStep
from urlab.evaluation.tasks.reading import allowed_words, read_goal, read_objects, read_oracle
from urlab.scene.randomisation import Randomisation, parse_randomisation
from urlab.toml_tables import TomlTable

_DATA = Path(__file__).resolve().parent / "data"


class TaskError(FileError):
    """A task file that cannot be used: the message has the file, the line, the field and what is allowed."""


@dataclass(frozen=True)
class Task:
    """A task, checked. Its ``name`` is its file's, without the suffix; ``embodiment`` is a key of `EMBODIMENTS`.

    ``instructions`` are templates: ``{cube}`` stands for one of the labels of the object ``cube``.
    ``cameras`` are those of the file that the task names, None the robot's own. ``randomize`` are the entries of
    `urlab.scene.randomisation` that every episode draws of its seed, for parameters of the model.
    """

    name: str
    embodiment: str
    title: str
    category: str
    instructions: tuple[str, ...]
    num_steps: int
    objects: Mapping[str, ObjectSpec]
    goal: Goal
    oracle: tuple[OracleStep, ...]
    cameras: CameraMounts | None = None
    randomize: Randomisation = dataclasses.field(default_factory=dict, repr=False)

    @property
    def digest(self) -> str:
        """A short text that differs where anything of the task does; comments and order in its file do not count."""
        drawn = repr(sorted(self.randomize.items())) if self.randomize else ""
        return hashlib.sha256(f"{self!r}{drawn}".encode()).hexdigest()[:16]


class _Head(msgspec.Struct, forbid_unknown_fields=True):
    """The fields of a task file."""

    embodiment: str
    title: str
    category: str
    instructions: Annotated[list[Annotated[str, msgspec.Meta(min_length=1)]], msgspec.Meta(min_length=1)]
    num_steps: Annotated[int, msgspec.Meta(ge=10, le=100_000)]
    objects: dict[str, Any]
    goal: Any
    oracle: Any = []
    cameras: str | None = None
    randomize: dict[str, dict[str, Any]] = {}


def task_names() -> tuple[str, ...]:
    """The tasks that we ship, sorted."""
    return tuple(sorted(path.stem for path in _DATA.glob("*.toml")))


def find_task(name: str) -> Task:
    """A shipped task by its name, or the task in the file of that path (``.toml``)."""
    if name in task_names():
        return _shipped(name)
    if name.endswith(".toml"):
        return load_task(Path(name))
    raise TaskError(f"there is no task {name!r}, nor is it a .toml file; {allowed_words(name, task_names())}")


def own_tasks(paths: Iterable[str]) -> list[Task]:
    """The tasks in these files; TaskError also where two tasks would have one name, as results are kept by name."""
    found: dict[str, str] = dict.fromkeys(task_names(), "a shipped task")
    tasks = []
    for path in dict.fromkeys(paths):
        task = load_task(Path(path))
        if task.name in found:
            raise TaskError(f"{path}: {found[task.name]} is called {task.name!r} as well: rename the file")
        found[task.name] = path
        tasks.append(task)
    return tasks


def load_task(path: Path | str) -> Task:
    """The task in a file; TaskError says what is wrong with it."""
    path = Path(path)
    if not path.stem[:1].isalnum():
        raise TaskError(f"{path}: the name of the file is the task's: it must begin with a letter or a digit")
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as unreadable:
        raise TaskError(f"{path}: cannot be read: {unreadable.strerror}") from unreadable
    except UnicodeDecodeError as unreadable:
        raise TaskError(f"{path}: cannot be read: {unreadable}") from unreadable
    return parse_task(text, name=path.stem, source=str(path), folder=path.parent)


def parse_task(text: str, *, name: str, source: str, folder: Path = Path()) -> Task:
    """A task from TOML text; ``source`` is what messages call it, and it names files relative to ``folder``."""
    file = TomlTable.parse(text, source=source, error=TaskError)
    embodiment = EMBODIMENTS[file.word("embodiment", EMBODIMENTS)]
    head = file.convert(_Head)
    objects = read_objects(file)
    _check_templates(file, head.instructions, objects)
    return Task(
        name,
        head.embodiment,
        head.title,
        head.category,
        tuple(head.instructions),
        head.num_steps,
        objects,
        read_goal(file, objects, embodiment),
        read_oracle(file, objects, embodiment),
        _cameras(file, head, folder),
        _randomisation(file, head),
    )


def _randomisation(file: TomlTable, head: _Head) -> Randomisation:
    try:
        return parse_randomisation(head.randomize)
    except BadValue as wrong:
        file.fail(wrong.message, "randomize")


def _cameras(file: TomlTable, head: _Head, folder: Path) -> CameraMounts | None:
    if head.cameras is None:
        return None
    rig = load_rig(folder / head.cameras)
    if rig.embodiment != head.embodiment:
        file.fail(f"{head.cameras} has cameras of {rig.embodiment}, and the task is for {head.embodiment}", "cameras")
    return rig.mounts


@lru_cache(maxsize=64)
def _shipped(name: str) -> Task:
    return load_task(_DATA / f"{name}.toml")


def _check_templates(file: TomlTable, templates: list[str], objects: Mapping[str, ObjectSpec]) -> None:
    for number, template in enumerate(templates):
        for field in _template_fields(file, number, template):
            if field not in objects:
                file.fail(f"{{{field}}} names no object; {allowed_words(field, objects)}", "instructions", number)


def _template_fields(file: TomlTable, number: int, template: str) -> list[str]:
    try:
        parts = list(string.Formatter().parse(template))
    except ValueError as broken:
        file.fail(f"braces must be in pairs: {broken}", "instructions", number)
    if any(spec or conversion for _, _, spec, conversion in parts):
        file.fail("braces hold the name of an object and nothing else: {cube}", "instructions", number)
    return [field for _, field, _, _ in parts if field is not None]

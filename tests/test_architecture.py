"""Rules of the house that no linter knows: they read the source, and every failure lists all offenders."""

import ast
import gc
import importlib
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src"
EXAMPLES = ROOT / "examples"

MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 50
MAX_MODULES_PER_FOLDER = 16
SMALL_MODULE_LINES = 40
REGISTRIES = {"urlab.ops.handlers", "urlab.control", "urlab.cameras.modes", "urlab.cli", "urlab.importing.formats"}
"""Where one file may declare one member of a family; such a file may be short."""

PEOPLE = re.compile(r"\b(somebody|nobody|whoever|anybody|everybody|someone|anyone)\b", re.IGNORECASE)
"""Where the client, the subscriber or a thread is meant."""

METAPHORS = {
    *("Told", "Heard", "Seen", "Asked", "Pictured", "Kept", "Taken", "Letter", "Desk", "Errand", "Film", "Lookout"),
    *("Tape", "Turn", "Company", "Workshop", "Trail", "Ear", "Walk", "Orders", "Eagerness", "Thing", "Things", "Lens"),
}
"""Names of classes where the field has a word."""

NAMES_THAT_SAY_NOTHING = {"util", "utils", "helper", "helpers", "misc"}

PAGES_ABOUT_THE_SOURCE = ("ARCHITECTURE.md", "CONTRIBUTING.md")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@pytest.fixture(scope="module", autouse=True)
def _trees() -> Iterator[None]:
    """The source as trees, some million objects: kept while this file runs, and not looked through for garbage."""
    gc.disable()
    yield
    parse.cache_clear()
    gc.enable()


@cache
def source_files() -> list[Path]:
    return sorted(SRC.rglob("*.py"))


def example_files() -> list[Path]:
    return sorted(EXAMPLES.glob("*.py"))


def pages() -> list[Path]:
    return sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


def module_name(path: Path) -> str:
    parts = path.relative_to(SRC).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def package_folders() -> list[Path]:
    """Every folder that holds Python source, or holds one that does."""
    return sorted({folder for path in source_files() for folder in path.parents if folder.is_relative_to(SRC)} - {SRC})


def rooms() -> Iterator[Path]:
    """The front door of every package, and the rooms of one file."""
    yield from (folder / "__init__.py" for folder in package_folders())
    yield from (path for path in (SRC / "urlab").glob("*.py") if path.name != "__init__.py")


def function_lengths(path: Path) -> Iterator[tuple[str, int]]:
    """Of what they do: a command's list of options is long, and no story."""
    for node in ast.walk(parse(path)):
        if isinstance(node, Function):
            body = node.body[1:] if ast.get_docstring(node) and len(node.body) > 1 else node.body
            yield node.name, (node.end_lineno or node.lineno) - body[0].lineno + 1


def declares_all(path: Path) -> bool:
    targets = [target for node in parse(path).body if isinstance(node, ast.Assign) for target in node.targets]
    return any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets)


def relative_links(page: Path) -> Iterator[str]:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if not re.match(r"[a-z]+:|#", target):
            yield target.partition("#")[0]


def page_words(page: str) -> list[str]:
    """What a page sets in backticks, outside of blocks of code."""
    text = re.sub(r"^```.*?^```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"`([^`\n]+)`", text)


def is_file_of_ours(word: str) -> bool:
    return any((folder / word).exists() for folder in (ROOT, SRC, SRC / "urlab"))


@cache
def names_in(path: Path) -> frozenset[str]:
    """The module's name, and every name that its code declares or uses; no strings."""
    return frozenset({path.stem, *names_of(parse(path))})


def names_of(tree: ast.Module) -> Iterator[str]:
    for one in ast.walk(tree):
        if isinstance(one, ast.Name):
            yield one.id
        elif isinstance(one, ast.Attribute):
            yield one.attr
        elif isinstance(one, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef, ast.alias)):
            yield one.name
        elif isinstance(one, (ast.arg, ast.keyword)) and one.arg:
            yield one.arg


def defines(path: Path, function: str) -> bool:
    """Whether a file has that function, or method as ``Class.method``."""
    scope: list[ast.stmt] = parse(path).body
    for name in function.split("."):
        found = [one for one in scope if isinstance(one, ast.ClassDef | Function) and one.name == name]
        if not found:
            return False
        scope = found[0].body
    return True


def without_type_checking(node: ast.AST) -> Iterator[ast.AST]:
    """Every node below, but what only the type checker reads."""
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"):
            yield child
            yield from without_type_checking(child)


@cache
def imported_modules(path: Path, walk: Callable[[ast.AST], Iterator[ast.AST]] = ast.walk) -> set[str]:
    """The modules of ours that a file imports, wherever in it."""
    found: set[str] = set()
    for node in walk(parse(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def is_run_as_a_script(path: Path) -> bool:
    return '__name__ == "__main__"' in path.read_text(encoding="utf-8") or path.stem == "__main__"


def sub_package(module: str, room: str) -> str:
    """The part of a room that a module belongs to: a sub-package, or the module itself at the room's top."""
    return module.removeprefix(f"{room}.").partition(".")[0]


def arrows_within(room: str) -> dict[str, set[str]]:
    """Which parts of a room import which other parts; its front door is no part."""
    paths = {module_name(path): path for path in source_files()}
    arrows: dict[str, set[str]] = {}
    for module, path in paths.items():
        if module.startswith(f"{room}."):
            targets = {
                name
                for name in imported_modules(path, without_type_checking)
                if name in paths and name.startswith(f"{room}.")
            }
            part = sub_package(module, room)
            arrows.setdefault(part, set()).update({sub_package(name, room) for name in targets} - {part})
    return arrows


def cycle_in(arrows: dict[str, set[str]]) -> list[str]:
    """Parts that are left when those without arrows out are taken away again and again."""
    left = dict(arrows)
    while ends := [part for part, targets in left.items() if not targets & left.keys()]:
        for part in ends:
            del left[part]
    return sorted(left)


def test_there_is_source_to_judge() -> None:
    assert {folder.name for folder in package_folders() if folder.parent == SRC} == {
        "urlab",
        "urlab_client",
        "urlab_wire",
    }


def test_every_package_has_a_front_door() -> None:
    assert [shown(folder) for folder in package_folders() if not (folder / "__init__.py").exists()] == []


def test_every_room_says_what_it_is_for() -> None:
    assert [shown(room) for room in rooms() if room.exists() and not ast.get_docstring(parse(room))] == []


def test_no_file_is_long() -> None:
    lengths = {shown(path): len(path.read_text(encoding="utf-8").splitlines()) for path in source_files()}
    assert {path: lines for path, lines in lengths.items() if lines > MAX_FILE_LINES} == {}


def test_no_function_is_long() -> None:
    offenders = {
        f"{shown(path)}: {name}": lines
        for path in source_files()
        for name, lines in function_lengths(path)
        if lines > MAX_FUNCTION_LINES
    }
    assert offenders == {}


def test_a_folder_reads_like_a_table_of_contents() -> None:
    modules = Counter(path.parent for path in source_files() if path.name != "__init__.py")
    crowded = {shown(folder): count for folder, count in modules.items() if count > MAX_MODULES_PER_FOLDER}
    assert crowded == {}


def test_no_small_module_serves_one_other_only() -> None:
    importers: dict[str, set[Path]] = {}
    for path in source_files():
        for name in imported_modules(path):
            importers.setdefault(name, set()).add(path)
    crumbs = [
        f"{shown(path)}: {lines} lines for {shown(next(iter(importers[module])))}"
        for path in source_files()
        if path.name != "__init__.py"
        and not is_run_as_a_script(path)
        and (module := module_name(path)).rpartition(".")[0] not in REGISTRIES
        and (lines := len(path.read_text(encoding="utf-8").splitlines())) < SMALL_MODULE_LINES
        and [one.name != "__init__.py" for one in importers.get(module, ())] == [True]
    ]
    assert crumbs == []


def test_a_public_class_name_means_one_thing() -> None:
    places: dict[str, list[str]] = {}
    for path in source_files():
        for node in parse(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(shown(path))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_the_parts_of_a_room_have_no_cycles() -> None:
    rooms = [module_name(folder / "__init__.py") for folder in package_folders()]
    cycles = {room: cycle for room in rooms if (cycle := cycle_in(arrows_within(room)))}
    assert cycles == {}


def test_sentences_name_the_client_or_the_thread_and_not_somebody() -> None:
    lines = [
        f"{shown(path)}:{number}: {line.strip()}"
        for path in [*source_files(), *pages()]
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if PEOPLE.search(line)
    ]
    assert lines == []


def test_classes_have_the_names_of_the_field() -> None:
    classes = [
        f"{shown(path)}: {node.name}"
        for path in source_files()
        for node in ast.walk(parse(path))
        if isinstance(node, ast.ClassDef) and node.name.strip("_") in METAPHORS
    ]
    assert classes == []


def test_nothing_is_left_for_later() -> None:
    left = re.compile(r"\b(TODO|FIXME)\b")
    files = [*source_files(), *example_files()]
    assert [shown(path) for path in files if left.search(path.read_text(encoding="utf-8"))] == []


def test_every_module_is_named_after_what_it_holds() -> None:
    names = {shown(path): path.parent.name if path.stem == "__init__" else path.stem for path in source_files()}
    assert [path for path, name in names.items() if name.strip("_") in NAMES_THAT_SAY_NOTHING] == []


def test_every_name_in_all_exists() -> None:
    modules = [importlib.import_module(module_name(path)) for path in source_files() if declares_all(path)]
    missing = [
        f"{module.__name__}.{name}" for module in modules for name in module.__all__ if not hasattr(module, name)
    ]
    assert missing == []


def test_every_example_is_numbered() -> None:
    numbered = re.compile(r"\d\d_[a-z0-9_]+\.py")
    assert [shown(path) for path in example_files() if not numbered.fullmatch(path.name)] == []


def test_no_two_examples_share_a_number() -> None:
    numbers = Counter(path.name[:2] for path in example_files())
    assert [number for number, count in numbers.items() if count > 1] == []


def test_every_link_between_our_pages_leads_somewhere() -> None:
    dead = [
        f"{shown(page)} -> {link}"
        for page in pages()
        for link in relative_links(page)
        if not (page.parent / link).exists()
    ]
    assert dead == []


def test_the_pages_about_the_source_name_files_that_exist() -> None:
    path = re.compile(r"(src|tests|benchmarks|urlab|urlab_wire|urlab_client)/[\w/.]+|[\w/]+\.py")
    missing = [
        f"{page}: {word}"
        for page in PAGES_ABOUT_THE_SOURCE
        for word in page_words(page)
        if path.fullmatch(word) and not is_file_of_ours(word)
    ]
    assert missing == []


def test_the_pages_about_the_source_name_classes_that_exist() -> None:
    names = {name for path in [*source_files(), *(ROOT / "benchmarks").glob("*.py")] for name in names_in(path)}
    known = {*names, "MjData", "MjModel", "XReply"}
    missing = [
        f"{page}: {word}"
        for page in PAGES_ABOUT_THE_SOURCE
        for word in page_words(page)
        if re.fullmatch(r"[\w.]*[A-Z][a-z]\w*(\.\w+)*", word) and word.rpartition(".")[2] not in known
    ]
    assert missing == []


def test_the_way_of_a_step_leads_through_functions_that_exist() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    hops = re.findall(r"^\| \d+ \| `([\w/.]+)` \| `([\w.]+)` \|", page, flags=re.MULTILINE)
    assert len(hops) > 10
    files = {hop: next(path for path in (SRC / hop[0], SRC / "urlab" / hop[0]) if path.exists()) for hop in hops}
    assert [hop for hop, path in files.items() if not defines(path, hop[1])] == []


def test_front_doors_name_modules_that_exist() -> None:
    missing = []
    for folder in package_folders():
        names = {name for path in folder.rglob("*.py") for name in names_in(path)}
        names |= {path.name for path in folder.iterdir()}
        for word in re.findall(r"(?<!`)`([\w.]+)`(?!`)", ast.get_docstring(parse(folder / "__init__.py")) or ""):
            path = word.replace(".", "/")
            if not ({word, word.rpartition(".")[2]} & names or is_file_of_ours(path) or is_file_of_ours(f"{path}.py")):
                missing.append(f"{shown(folder)}: {word}")
    assert missing == []


def test_every_room_is_on_the_map_and_in_the_front_door_of_urlab() -> None:
    section = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").partition("## Rooms of the server")[2]
    on_the_map = set(re.findall(r"[\w.]+", section.split("```")[1]))
    named = set(re.findall(r"`(\w+)`", ast.get_docstring(parse(SRC / "urlab" / "__init__.py")) or ""))
    there = [path for path in (SRC / "urlab").iterdir() if (path / "__init__.py").exists() or path.suffix == ".py"]
    found = {path.name for path in there if not path.name.startswith("__")}
    assert sorted(found - on_the_map) == []
    assert sorted({Path(name).stem for name in found} - named) == []

"""Rules of the house that no linter knows: they read the source, and every failure lists all offenders."""

import ast
import importlib
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src"
EXAMPLES = ROOT / "examples"

MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 60
NAMES_THAT_SAY_NOTHING = {"util", "utils", "helper", "helpers", "misc"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def source_files() -> list[Path]:
    return sorted(SRC.rglob("*.py"))


def example_files() -> list[Path]:
    return sorted(EXAMPLES.glob("*.py"))


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
    for node in ast.walk(parse(path)):
        if isinstance(node, Function):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


def declares_all(path: Path) -> bool:
    targets = [target for node in parse(path).body if isinstance(node, ast.Assign) for target in node.targets]
    return any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets)


def relative_links(page: Path) -> Iterator[str]:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if not re.match(r"[a-z]+:|#", target):
            yield target.partition("#")[0]


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
        for page in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
        for link in relative_links(page)
        if not (page.parent / link).exists()
    ]
    assert dead == []

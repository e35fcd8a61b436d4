"""``urlab levels``: the levels of a project, for people: list, show, copy, delete."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from urlab.cli import options as opt
from urlab.cli.console import WRONG_USE, CommandError, in_words, print_json, stdout
from urlab.config import default_project

if TYPE_CHECKING:
    from urlab.scene.level import Level
    from urlab.scene.project import Project

ProjectDir = Annotated[
    Path | None, typer.Option("--project", metavar="DIR", help="Project folder.", show_default="per-user data folder")
]
Name = Annotated[str, typer.Argument(metavar="LEVEL", help="Its name, or /Game/Levels/NAME.")]

levels = typer.Typer(
    name="levels",
    help="List, show, copy and delete levels. A level is a TOML file in the project folder.",
    epilog="Example: urlab levels copy demo mine, then urlab serve mine",
    rich_markup_mode="rich",
)


@levels.callback(invoke_without_command=True)
def list_levels(context: typer.Context, project: ProjectDir = None, as_json: opt.AsJson = False) -> None:
    """List the levels, your own and those that are shipped.

    Example: [bold]urlab levels[/bold]; in a script: [bold]urlab levels --json | jq -r '.levels[].name'[/bold]
    """
    if context.invoked_subcommand is not None:
        context.obj = project
        return
    opened = _open(context, project)
    rows = [_row(opened, name) for name in opened.level_names()]
    if as_json:
        print_json({"project": str(opened.folder), "levels": rows})
    else:
        _show_list(opened, rows)


@levels.command()
def show(context: typer.Context, level: Name, project: ProjectDir = None, as_json: opt.AsJson = False) -> None:
    """Show what is in a level, and where its file is.

    Example: [bold]urlab levels show demo[/bold]
    """
    opened = _open(context, project)
    found = opened.open_level(level)
    if as_json:
        print_json({**_row(opened, level), "actors": [_actor(one) for one in found.actors]})
        return
    from urlab.scene.level_file import level_text

    stdout().print(f"[dim]# {escape(str(_file(opened, level)))}[/]")
    stdout().print(escape(level_text(found)), end="")


@levels.command()
def copy(
    context: typer.Context,
    source: Name,
    target: Annotated[str, typer.Argument(metavar="COPY", help="Name of the copy.")],
    project: ProjectDir = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a level of that name.")] = False,
) -> None:
    """Copy a level of yours or a shipped one into the project.

    Example: [bold]urlab levels copy demo mine[/bold]
    """
    from urlab.scene.names import level_name

    opened, name = _open(context, project), level_name(target)
    if opened.has_level(name) and not force:
        raise CommandError(f"level {name!r} exists; use --force to replace it", WRONG_USE)
    path = opened.save_level(replace(opened.open_level(source), name=name))
    stdout().print(f"wrote {escape(str(path))}")


@levels.command()
def delete(
    context: typer.Context,
    level: Name,
    project: ProjectDir = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete a level of yours.

    Example: [bold]urlab levels delete mine --yes[/bold]
    """
    from urlab.scene.names import level_name

    opened, name = _open(context, project), level_name(level)
    if not opened.has_level(name):
        own = ", ".join(opened.own_level_names()) or "none"
        raise CommandError(f"there is no level {name!r} in {opened.levels_dir}; yours are: {own}", WRONG_USE)
    if not yes:
        typer.confirm(f"Delete {opened.level_file(name)}?", abort=True)
    opened.delete_level(name)
    stdout().print(f"deleted {escape(name)}")


def _open(context: typer.Context, folder: Path | None) -> "Project":
    """The project of ``--project``, which may stand before the subcommand or after it."""
    from urlab.app import open_project

    return open_project((folder or context.obj or default_project()).expanduser().resolve())


def _file(project: "Project", word: str) -> Path:
    from urlab.scene.names import level_name

    name = level_name(word)
    own = project.levels_dir / f"{name}.toml"
    return project.shipped_levels[name] if name in project.shipped_levels and not own.exists() else own


def _row(project: "Project", word: str) -> dict[str, Any]:
    """One level; a broken one is listed with what is wrong."""
    from urlab.errors import UrlabError

    path = _file(project, word)
    row: dict[str, Any] = {"name": path.stem, "file": str(path), "shipped": path.parent != project.levels_dir}
    try:
        level = project.open_level(word)
    except UrlabError as broken:
        return {**row, "error": broken.message}
    return {**row, **_counts(level)}


def _counts(level: "Level") -> dict[str, Any]:
    return {"actors": len(level.actors), "lights": len(level.lights), "options": len(level.options)}


def _actor(actor: Any) -> dict[str, Any]:
    return {
        "name": actor.name,
        "actor_id": actor.actor_id,
        "blueprint": actor.blueprint,
        "location": list(actor.pose.pos),
    }


def _show_list(project: "Project", rows: list[dict[str, Any]]) -> None:
    table = Table(title=escape(f"levels of {project.folder}"), title_justify="left")
    for heading in ("level", "", "holds"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        counts = {thing: row.get(thing, 0) for thing in ("actors", "lights", "options")}
        holds = f"[red]{escape(row['error'])}[/]" if "error" in row else in_words(counts) or "nothing"
        table.add_row(escape(row["name"]), "[dim]shipped[/]" if row["shipped"] else "yours", holds)
    stdout().print(table)

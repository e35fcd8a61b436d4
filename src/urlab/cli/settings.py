"""Options from a settings file and from the environment, and ``urlab config``, which shows what is in force.

What is said on the command line wins over the variable ``URLAB_<OPTION>``, that over the settings file, that over the
default. The file is the one of ``--config``, else of ``URLAB_CONFIG``, else ``urlab/urlab.toml`` in the user's
configuration folder. A file in the current folder is not read unasked: a setting may name a plugin, which is code, and
a folder that was downloaded must not run code.

In the file a command's options stand in its table, without their dashes in front::

    [serve]
    step-port = 6000
    model-root = ["~/robots"]

    [eval.serve]
    workers = 2
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from urlab.cli import options as opt
from urlab.cli.console import WRONG_USE, CommandError, print_json, stdout
from urlab.errors import ConfigError
from urlab.toml_tables import TomlTable, unknown_key

FILE_VARIABLE = "URLAB_CONFIG"
_NOT_SETTINGS = {"--config", "--help", "--version", "--install-completion", "--show-completion"}

ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help=f"Settings file (TOML); `urlab config` shows what is in force. Default: {FILE_VARIABLE}, else the user's.",
        show_default=False,
        is_eager=True,
        callback=lambda context, value: _use_file(context, value),
    ),
]


def listen_to_environment(command: Any) -> None:
    """Let every option of a command, and of the commands below it, be set by a variable of the environment."""
    for one in (*_options(command), *command.params):
        if one.envvar is None and one.opts[0].startswith("--") and one.opts[0] not in _NOT_SETTINGS:
            one.envvar, one.show_envvar = variable_of(one.opts[0]), False
    for below in getattr(command, "commands", {}).values():
        listen_to_environment(below)


def variable_of(option: str) -> str:
    """The variable that sets an option: ``URLAB_STEP_PORT`` for ``--step-port``."""
    return "URLAB_" + option.removeprefix("--").replace("-", "_").upper()


def use_default_file(context: Any) -> None:
    """Let the commands take what the command line and the environment do not say from the settings file."""
    if (path := default_file()) is not None:
        context.default_map = read_settings(path, context.command)


def default_file() -> Path | None:
    """The settings file that is read without ``--config``; None when there is none."""
    named = os.environ.get(FILE_VARIABLE)
    if named:
        return Path(named).expanduser()
    folder = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    path = folder / "urlab" / "urlab.toml"
    return path if path.is_file() else None


def _use_file(context: Any, path: Path | None) -> Path | None:
    """For an eager option: the file's table of this command, instead of the default file's."""
    if path is not None:
        root = context.find_root()
        tables: Any = read_settings(path.expanduser(), root.command)
        for name in context.command_path.split()[1:]:
            tables = tables.get(name, {})
        context.default_map = tables
    return path


def read_settings(path: Path, root: Any) -> dict[str, Any]:
    """The values of a settings file by command and parameter, as the parser of the command line wants them."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as failed:
        reason = failed.strerror if isinstance(failed, OSError) else "it is not text in UTF-8"
        raise ConfigError(f"the settings file {path} cannot be read: {reason}") from failed
    return _values(TomlTable.parse(text, source=str(path), error=ConfigError), root)


def _values(table: TomlTable, command: Any) -> dict[str, Any]:
    """The values that a table gives to a command's options, and the tables below it to its subcommands."""
    commands = getattr(command, "commands", {})
    options = {one.opts[0].removeprefix("--"): one for one in _options(command)}
    values: dict[str, Any] = {}
    for key, value in table.content.items():
        if key in commands:
            values[key] = _values(table.table(key), commands[key])
        elif key.replace("_", "-") in options:
            option = options[key.replace("_", "-")]
            values[option.name] = _checked(table, key, value, option, command)
        else:
            table.fail(unknown_key(key, [*commands, *options]), key)
    return values


def _checked(table: TomlTable, key: str, value: Any, option: Any, command: Any) -> Any:
    """A value that the option takes; the error names the file and the line, and not just the option."""
    is_list = isinstance(value, list)
    if isinstance(value, Mapping) or (is_list and not option.multiple):
        table.fail(f"is {value!r}, and {option.opts[0]} takes one value", key)
    if isinstance(value, bool) != option.is_flag:
        table.fail(f"is {value!r}, expected {'true or false' if option.is_flag else 'a value'}", key)
    if option.is_flag:
        return value
    listed = [str(one) for one in (value if is_list else [value])]
    for one in listed:
        if complaint := _complaint(command, option, one):
            table.fail(complaint, key)
    return listed if option.multiple else listed[0]


def _complaint(command: Any, option: Any, text: str) -> str | None:
    """What the parser of the command line says to a value; None when it takes it."""
    try:
        command.make_context(command.name, [option.opts[0], text])
    except Exception as wrong:  # noqa: BLE001 - the parser's errors have no public class to name here
        if getattr(wrong, "param", None) is option:
            return str(getattr(wrong, "message", wrong)).rstrip(".")
    return None


def _options(command: Any) -> Iterator[Any]:
    for one in command.params:
        if one.opts[0].startswith("--") and one.opts[0] not in _NOT_SETTINGS:
            yield one


# -- urlab config -------------------------------------------------------------------------------------------------


def config(
    context: typer.Context,
    command: Annotated[
        list[str] | None, typer.Argument(metavar="COMMAND", help="serve (default), eval serve, ros2 ...")
    ] = None,
    config_file: ConfigFile = None,  # noqa: ARG001 - its callback has taken it
    as_json: opt.AsJson = False,
) -> None:
    """Show a command's options: the value in force, where it comes from, and the variable that sets it.

    Example: [bold]urlab config[/bold] for the server; [bold]URLAB_STEP_PORT=6000 urlab config serve[/bold]
    """
    path = tuple(command or ("serve",))
    rows = list(_rows(context, path))
    used = context.params.get("config_file") or default_file()
    if as_json:
        print_json({"command": " ".join(path), "file": str(used) if used else None, "options": rows})
        return
    stdout().print(Text.assemble(("settings file  ", "dim"), str(used) if used else "none"))
    table = Table("option", "value", "from", "variable", box=None, header_style="dim", pad_edge=False)
    for row in rows:
        style = "" if row["from"] == "default" else "bold"
        table.add_row(row["option"], Text(_shown(row["value"]), style), row["from"], Text(row["variable"], "dim"))
    stdout().print(table)


def _rows(context: typer.Context, path: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    root = context.find_root()
    if context.params.get("config_file"):
        root.default_map = read_settings(context.params["config_file"].expanduser(), root.command)
    found, parent = _found(root, path)
    needs_more = any(one.required for one in found.params)
    inner = found.make_context(path[-1], [], parent=parent, resilient_parsing=needs_more)
    for one in _options(found):
        source = inner.get_parameter_source(one.name)
        yield {
            "option": one.opts[0],
            "value": _plain(inner.params.get(one.name)),
            "from": _SOURCES.get(getattr(source, "name", ""), "default"),
            "variable": one.envvar or "",
        }


_SOURCES = {"ENVIRONMENT": "environment", "DEFAULT_MAP": "file"}


def _found(root: Any, path: tuple[str, ...]) -> tuple[Any, Any]:
    """The command of that path, and the context of the one above it."""
    command, parent = root.command, root
    for place, name in enumerate(path):
        below = getattr(command, "commands", {}).get(name)
        if below is None:
            there = ", ".join(sorted(getattr(command, "commands", {}))) or "none below it"
            raise CommandError(f"there is no command {' '.join(path[: place + 1])!r}; there are: {there}", WRONG_USE)
        if place < len(path) - 1:
            parent = below.make_context(name, [], parent=parent, resilient_parsing=True)
        command = below
    if hasattr(command, "commands"):
        raise CommandError(
            f"{' '.join(path)} has commands of its own: {', '.join(sorted(command.commands))}", WRONG_USE
        )
    return command, parent


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value if isinstance(value, bool | int | float | None) else str(value)


def _shown(value: Any) -> str:
    if value is None or value == []:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)

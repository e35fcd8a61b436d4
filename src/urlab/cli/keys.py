"""``urlab keys``: who may connect to a server from other machines, and as what."""

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from urlab.access import KeysFolder, Role
from urlab.access.keys import client_file, write_client_file
from urlab.cli import options as opt
from urlab.cli.console import print_json, stdout

keys = typer.Typer(
    name="keys", help="Keys of clients on other machines: make, list and revoke them.", no_args_is_help=True
)

Folder = Annotated[
    Path | None,
    typer.Option("--keys", metavar="DIR", help="The keys folder. Default: that of this user.", show_default=False),
]
Name = Annotated[str, typer.Argument(help="The client's name, which the audit log and the roles go by.")]


def default_folder() -> Path:
    """The keys folder of this user: ``$XDG_CONFIG_HOME/urlab/keys``."""
    return Path(os.environ.get("XDG_CONFIG_HOME", Path.home() / ".config")) / "urlab" / "keys"


@keys.command("new")
def new(
    name: Name,
    role: Annotated[Role, typer.Option("--role", help="What its holder may do.")] = Role.DRIVER,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Where to write it. Default: NAME.key here.", show_default=False),
    ] = None,
    folder: Folder = None,
) -> None:
    """Make a key for a client, and let it in.

    The file that is written is for the client: bring it there by a safe way, and keep no copy. An observer may look, an
    operator may change the world beside the driver, a driver may take the driver's seat, an admin may delete files.

    Example: [bold]urlab keys new alice --role operator[/bold], then [bold]urlab serve --host 0.0.0.0 --keys DIR[/bold]
    """
    from urlab.transport.guard import new_pair

    where, file = KeysFolder(folder or default_folder()), out or Path(f"{name}.key")
    server, pair = where.server_pair(new_pair), new_pair()
    where.add(name, role, pair.public)
    try:
        write_client_file(file, client_file(name, pair, server.public))
    except BaseException:
        where.revoke(name)
        raise
    stdout().print(f"{file} is the key of {name} ({role}): give it to the client, who uses it as", highlight=False)
    stdout().print(f"  URLabClient('tcp://SERVER', key='{file.name}')   or   URLAB_KEY={file.name}", highlight=False)
    stdout().print(f"The server lets it in with  --keys {where.path}", highlight=False, soft_wrap=True)


@keys.command("list")
def list_keys(folder: Folder = None, as_json: opt.AsJson = False) -> None:
    """List the keys that are let in.

    Example: [bold]urlab keys list --json | jq -r '.keys[].name'[/bold]
    """
    where = KeysFolder(folder or default_folder())
    clients = where.clients()
    if as_json:
        print_json({"folder": str(where.path), "keys": [{"name": one.name, "role": one.role} for one in clients]})
        return
    table = Table(title=f"{len(clients)} keys in {where.path}", title_justify="left")
    table.add_column("name")
    table.add_column("role")
    for one in clients:
        table.add_row(one.name, one.role)
    stdout().print(table)


@keys.command("revoke")
def revoke(name: Name, folder: Folder = None) -> None:
    """Let a key in no longer; a running server ends its connections within a second.

    Example: [bold]urlab keys revoke alice[/bold]
    """
    KeysFolder(folder or default_folder()).revoke(name)
    stdout().print(f"{name} is let in no longer", highlight=False)

"""Options that several words of `urlab eval` share, and what is checked before the work begins."""

import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from urlab.cli.console import WRONG_USE, CommandError
from urlab.errors import UrlabError
from urlab.evaluation.settings import TOKEN_VARIABLE

if TYPE_CHECKING:
    from urlab.evaluation.camera_config import CameraChoice

DEFAULT_PORT = 8087
DEFAULT_URL = f"http://127.0.0.1:{DEFAULT_PORT}"
DEFAULT_RESULTS = Path("eval-results")
INSTALL_LINE = "pip install 'urlab-headless[eval]'"
FOR_TASKS = ("scipy",)
FOR_A_SERVER = ("fastapi", "httptools", "scipy", "uvicorn")
_ALL = "all"

Episodes = Annotated[int, typer.Option("--episodes", min=1, help="Episodes of each task, each with a seed of its own.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="The first seed; the others follow it.")]
Results = Annotated[Path, typer.Option("--results", metavar="DIR", help="The folder of results.")]
RunId = Annotated[
    str | None,
    typer.Option(
        "--run-id", metavar="NAME", help="Name of the run; one that exists is continued.", show_default="time"
    ),
]
Token = Annotated[
    str | None,
    typer.Option(
        "--token", metavar="TEXT", envvar=TOKEN_VARIABLE, help="The server's bearer token.", show_default=False
    ),
]
CameraFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--camera-config",
        metavar="FILE",
        help="Cameras of a robot from a .toml file, in place of those that ship; may be given for each robot.",
    ),
]
Ray = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="ADDRESS",
        help="Workers on the actors of this Ray cluster (host:6379, auto), or of one that is started here (local). All "
        "its machines need the folder of results.",
        show_default="processes of this machine",
    ),
]
Url = Annotated[str, typer.Option("--url", metavar="URL", help="Where the server is; a bare host:port will do.")]


def server_url(text: str) -> str:
    """``host:port`` is what people write, and ``http://host:port`` what is meant."""
    url = text if "://" in text else f"http://{text}"
    return url.rstrip("/")


def names(text: str) -> list[str]:
    """Names between commas."""
    return [word.strip() for word in text.split(",") if word.strip()]


def need_packages(names: tuple[str, ...]) -> None:
    """CommandError with the line that installs them, if a package is missing."""
    missing = [name for name in names if not _is_there(name)]
    if missing:
        raise CommandError(f"this needs packages that are missing ({', '.join(missing)}): {INSTALL_LINE}")


def _is_there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:
        return False


def check_folder(option: str, folder: Path) -> None:
    """CommandError if nothing can be written in the folder, or if it can be neither there nor made."""
    nearest = next(one for one in (folder.absolute(), *folder.absolute().parents) if one.exists())
    if not nearest.is_dir():
        raise CommandError(f"{option} {folder}: {nearest} is a file, and a folder is needed", WRONG_USE)
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise CommandError(f"{option} {folder}: {nearest} cannot be written; choose another folder", WRONG_USE)


def check_file(option: str, file: Path | None) -> None:
    """CommandError if the file cannot be written; None is no file."""
    if file is None:
        return
    if file.is_dir():
        raise CommandError(f"{option} {file} is a folder; name a file in it", WRONG_USE)
    check_folder(option, file.parent)


def check_drawing() -> None:
    """CommandError without GL: every episode would fail, one after the other."""
    from urlab.cameras import GlThread

    gl = GlThread()
    try:
        gl.gl_name()
    except UrlabError as none:
        raise CommandError(f"{none.message}. Policies that need no pictures run with --no-cameras.") from none
    finally:
        gl.close()


def camera_choice(files: Sequence[Path], drawn: Sequence[str] = (), *, depth: bool = True) -> "CameraChoice | None":
    """The cameras that files give to robots, and those of them that are drawn; None if all is as it ships.

    CameraConfigError says what is wrong with a file, CommandError with a camera that is to be drawn.
    """
    if not files and not drawn and depth:
        return None
    from urlab.evaluation.camera_config import CameraChoice
    from urlab.evaluation.embodiments import EMBODIMENTS, load_rig

    rigs = {one.embodiment: one.mounts for one in map(load_rig, files)}
    wanted = dict(map(_drawn_camera, drawn)) if drawn else None
    named = {mount.name for robot in EMBODIMENTS.values() for mount in rigs.get(robot.name, robot.cameras)}
    for name in wanted or ():
        if name not in named:
            raise CommandError(f"no robot has a camera {name!r}; there are: {', '.join(sorted(named))}", WRONG_USE)
    return CameraChoice(rigs, wanted, depth)


def _drawn_camera(word: str) -> tuple[str, tuple[int, int] | None]:
    """``obs_camera`` as it is, ``obs_camera=224x224`` in that size."""
    name, equals, size = word.partition("=")
    if not equals:
        return name, None
    width, _, height = size.partition("x")
    if not (width.isdecimal() and height.isdecimal()) or not all(16 <= int(one) <= 4096 for one in (width, height)):
        raise CommandError(f"--draw {word!r} is not CAMERA or CAMERA=WIDTHxHEIGHT with 16 to 4096 pixels", WRONG_USE)
    return name, (int(width), int(height))


def known_tasks(text: str) -> tuple[str, ...]:
    """Tasks, task files, robots (all their tasks) or ``all``, as written; TaskError lists the tasks there are."""
    from urlab.evaluation.embodiments import EMBODIMENTS
    from urlab.evaluation.tasks.task import TaskError, own_tasks, task_names

    words = names(text)
    if not words:
        raise TaskError(f"--tasks {text!r} names no task; there are: {_ALL}, {', '.join(task_names())}")
    own_tasks(word for word in words if word.endswith(".toml"))
    allowed = (_ALL, *EMBODIMENTS, *task_names())
    for word in words:
        if not word.endswith(".toml") and word not in allowed:
            raise TaskError(f"there is no task {word!r}{_near(word, allowed)}")
    return tuple(words)


def _near(word: str, allowed: tuple[str, ...]) -> str:
    """What may have been meant."""
    from urlab.evaluation.tasks.reading import allowed_words

    file = Path(f"{word}.toml")
    if file.is_file():
        return f", but a file {file}: name it with its ending"
    return f", nor is it a .toml file; {allowed_words(word, allowed)}"

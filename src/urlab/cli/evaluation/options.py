"""Options that several words of `urlab eval` share."""

from pathlib import Path
from typing import Annotated

import typer

DEFAULT_PORT = 8087
DEFAULT_URL = f"http://127.0.0.1:{DEFAULT_PORT}"
TOKEN_VARIABLE = "URLAB_EVAL_TOKEN"

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
Url = Annotated[str, typer.Option("--url", metavar="URL", help="Where the server is; a bare host:port will do.")]

DEFAULT_RESULTS = Path("eval-results")


def server_url(text: str) -> str:
    """``host:port`` is what people write, and ``http://host:port`` what is meant."""
    url = text if "://" in text else f"http://{text}"
    return url.rstrip("/")


def names(text: str) -> list[str]:
    """Names between commas."""
    return [word.strip() for word in text.split(",") if word.strip()]

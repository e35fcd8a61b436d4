"""The options of `urlab eval run`."""

from pathlib import Path
from typing import Annotated

import typer

from urlab.evaluation.settings import VideoChoice as Videos

Policy = Annotated[
    str,
    typer.Option(
        "--policy", metavar="POLICY", help="oracle, random, module:Class, file.py:Class or ws://host:port (openpi)."
    ),
]
PolicyArgs = Annotated[
    list[str] | None,
    typer.Option("--policy-arg", metavar="KEY=VALUE", help="Keyword argument of the policy's class; may be repeated."),
]
Tasks = Annotated[
    str | None,
    typer.Option(
        "--tasks",
        metavar="NAME,...|all",
        help="Tasks, .toml files of your own, or a robot's name for all its tasks.",
        show_default="all; with --url the job that is there",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers", min=1, help="Episodes side by side.", show_default="one per core for oracle and random, else 1"
    ),
]
Cameras = Annotated[
    bool | None,
    typer.Option(
        "--cameras/--no-cameras",
        help="Pictures in observations.",
        show_default="if the policy wants them, or videos are asked for",
    ),
]
VideoChoice = Annotated[
    Videos | None,
    typer.Option("--videos", help="Which episodes to film.", show_default="failures if there are cameras, else none"),
]
Report = Annotated[Path | None, typer.Option("--report", metavar="FILE", help="Write an HTML report there.")]
Url = Annotated[
    str | None,
    typer.Option("--url", metavar="URL", help="Use a server that runs already."),
]
MinSuccess = Annotated[
    float | None,
    typer.Option(
        "--min-success", min=0, max=1, help="Exit with 1 if a smaller part of the episodes succeeds: 0.9 is 90 %."
    ),
]

"""`urlab eval serve`: an evaluation server, whose tasks policies solve over HTTP."""

import logging
import os
import signal
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from urlab.access.web import check_token, new_token
from urlab.cli.console import WRONG_USE, CommandError, LogLevel, set_up_logging, stderr
from urlab.cli.eval import options as opt
from urlab.cli.options import Log, tls_files
from urlab.cli.signals import StopSignals
from urlab.config import is_local
from urlab.evaluation.settings import FIRST_ROBOT, TOKEN_VARIABLE, ServerSettings

log = logging.getLogger("urlab.cli")

_DEFAULT_WORKERS = 16
_MOST_LISTED = 3
_MADE_TOKEN = "auto"

Host = Annotated[str, typer.Option("--host", help="Bind address; one that others can reach needs --token.")]
Port = Annotated[int, typer.Option("--port", min=0, max=65535, help="0 = any free port.")]
Workers = Annotated[int, typer.Option("--workers", min=1, help="Most worker processes at a time.")]
Tasks = Annotated[
    str,
    typer.Option(
        "--tasks",
        metavar="NAME,...|all",
        help="Tasks of the job that is there at once: names, .toml files of your own, or a robot's name. Those of "
        "several robots are one job for each robot, one after the other.",
    ),
]
OneJob = Annotated[bool, typer.Option("--one-job", help="One job for all robots, for clients that drive them all.")]
Cameras = Annotated[bool, typer.Option("--cameras/--no-cameras", help="Pictures in observations.")]
Draw = Annotated[
    list[str] | None,
    typer.Option(
        "--draw",
        metavar="CAMERA[=WIDTHxHEIGHT]",
        help="Draw this camera only, in this size; may be repeated.",
        show_default="all cameras as they are",
    ),
]
Depth = Annotated[bool, typer.Option("--depth/--no-depth", help="Depth beside the colours of pictures.")]
Absolute = Annotated[
    bool | None,
    typer.Option(
        "--absolute/--relative",
        help="What actions without is_rel mean, for all clients.",
        show_default="by the client's generation",
    ),
]
Privileged = Annotated[bool, typer.Option("--privileged", help="Tell policies where objects are: oracles need it.")]
Videos = Annotated[bool, typer.Option("--videos/--no-videos", help="Record videos of what the cameras see.")]
Token = Annotated[
    str | None,
    typer.Option(
        "--token",
        metavar="TEXT|auto",
        envvar=TOKEN_VARIABLE,
        help="What every request must carry: 16 characters or more; 'auto' makes one and prints it.",
        show_default=False,
    ),
]
Share = Annotated[bool, typer.Option("--share", help="Let other users of this machine in, without a token.")]
Insecure = Annotated[bool, typer.Option("--insecure", help="Allow a --host that others can reach without --token.")]
AllowedHosts = Annotated[
    list[str] | None,
    typer.Option("--allow-host", metavar="NAME", help="A further name that clients may ask for; may be repeated."),
]
TlsCert = Annotated[
    Path | None, typer.Option("--tls-cert", metavar="FILE", help="Speak HTTPS, with this certificate (PEM).")
]
TlsKey = Annotated[Path | None, typer.Option("--tls-key", metavar="FILE", help="The key of --tls-cert (PEM).")]
ReadyFile = Annotated[
    Path | None,
    typer.Option("--ready-file", metavar="FILE", help="Write pid and url there once requests are answered."),
]
EndWithStdin = Annotated[bool, typer.Option("--end-with-stdin", hidden=True, help="Stop when stdin ends.")]
LiveFolder = Annotated[
    Path | None, typer.Option("--live-folder", hidden=True, help="Workers tell there what they simulate.")
]


def serve(
    host: Host = "127.0.0.1",
    port: Port = opt.DEFAULT_PORT,
    workers: Workers = _DEFAULT_WORKERS,
    tasks: Tasks = FIRST_ROBOT,
    one_job: OneJob = False,
    episodes: opt.Episodes = 10,
    seed: opt.Seed = 0,
    cameras: Cameras = True,
    camera_config: opt.CameraFiles = None,
    draw: Draw = None,
    depth: Depth = True,
    absolute: Absolute = None,
    privileged: Privileged = False,
    videos: Videos = True,
    results: opt.Results = opt.DEFAULT_RESULTS,
    run_id: opt.RunId = None,
    token: Token = None,
    share: Share = False,
    insecure: Insecure = False,
    allow_host: AllowedHosts = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    ready_file: ReadyFile = None,
    ray: opt.Ray = None,
    log_level: Log = LogLevel.INFO,
    end_with_stdin: EndWithStdin = False,
    live_folder: LiveFolder = None,
) -> None:
    """Serve tasks to a controller of yours until Ctrl-C or SIGTERM. GenManip's clients work unchanged.

    A job is there from the start, so a client just resets and steps; one that comes after its end begins a new run.
    [bold]urlab eval submit[/bold] starts another job. Actions without is_rel are changes for clients that announce
    their workers with /create_workers, and absolute for later ones.

    Example: [bold]urlab eval serve --tasks panda_cube_on_plate --episodes 20[/bold]
    """
    set_up_logging(log_level)
    with StopSignals():
        opt.need_packages(opt.FOR_A_SERVER)
        _check_places(results, ready_file)
        settings = ServerSettings(
            host=host,
            port=port,
            workers=workers,
            tasks=list(opt.known_tasks(tasks)),
            one_job=one_job,
            episodes=episodes,
            seed=seed,
            cameras=cameras,
            absolute=absolute is True,
            relative=absolute is False,
            privileged=privileged,
            results=results,
            run_id=run_id,
            videos=videos and cameras,
            ready_file=ready_file,
            camera_choice=opt.camera_choice(camera_config or (), draw or (), depth=depth),
        )
        settings = replace(
            settings,
            share=share,
            allowed_hosts=tuple(allow_host or ()),
            tls=tls_files(tls_cert, tls_key),
            live_folder=live_folder,
            ray=ray,
            results=results if ray is None else results.absolute(),
        )
        _serve_until_stopped(replace(settings, token=_token(host, token, insecure)), end_with_stdin)
    log.info("stopped")


def _serve_until_stopped(settings: ServerSettings, end_with_stdin: bool) -> None:
    from urlab.evaluation.http.app import serve as serve_requests

    if settings.cameras:
        opt.check_drawing()
    if settings.ray is not None:
        _join_cluster(settings.ray, settings.workers)
    if end_with_stdin:
        threading.Thread(target=_stop_at_end_of_stdin, daemon=True).start()
    serve_requests(settings, on_ready=lambda url: _say_where(url, settings))


def _join_cluster(address: str, workers: int) -> None:
    from urlab import ray_actors

    ray_actors.connect(address)
    cpus = ray_actors.cluster_cpus()
    if workers > cpus:
        log.warning("%d workers are allowed, and the cluster has %d CPUs: the others wait for one", workers, cpus)


def _stop_at_end_of_stdin() -> None:
    """The process that started the server holds the other end; when it is gone, the server is not needed."""
    while os.read(sys.stdin.fileno(), 1 << 10):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _check_places(results: Path, ready_file: Path | None) -> None:
    opt.check_folder("--results", results)
    opt.check_file("--ready-file", ready_file)


def _token(host: str, given: str | None, insecure: bool) -> str | None:
    """The token to ask for: the given one, or one that is made and told; ConfigError if it could be guessed."""
    if given is None and not insecure and not is_local(host):
        raise CommandError(
            f"--host {host} can be reached by others, who could then run this server's episodes: "
            "give it a --token, or say --insecure",
            WRONG_USE,
        )
    if given != _MADE_TOKEN:
        check_token(given)
        return given
    made = new_token()
    stderr().print(f"the token of this server: {made}", soft_wrap=True, markup=False, highlight=False)
    return made


def open_to(settings: ServerSettings) -> str:
    """Who can use a server that is started like this, in words."""
    if is_local(settings.host):
        if settings.token is not None:
            return "users of this machine who have the token"
        return "all users of this machine (--share)" if settings.share else "this user only"
    return "EVERYONE on the network (--insecure)" if settings.token is None else "everyone who has the token"


def _say_where(url: str, settings: ServerSettings) -> None:
    if not is_local(settings.host):
        if settings.token is None:
            log.warning("%s: everyone who reaches it can run its episodes and read its results", url)
        elif settings.tls is None:
            log.warning(
                "%s is not encrypted: its token can be read on the way; --tls-cert and --tls-key mend that", url
            )
    if not log.isEnabledFor(logging.INFO):
        return
    what = ", ".join(settings.tasks) if len(settings.tasks) <= _MOST_LISTED else f"{len(settings.tasks)} tasks"
    stderr().print(
        f"serving {what} at {url}, open to {open_to(settings)}, results in {settings.results}. Stop with Ctrl-C.",
        soft_wrap=True,
        markup=False,
    )

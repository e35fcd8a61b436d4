"""The command itself: from options to a configuration, then into the run."""

import sys
from pathlib import Path

from urlab.cli.console import LogLevel, set_up_logging
from urlab.cli.options import Log
from urlab.cli.serve import options as opt
from urlab.cli.serve.signals import StopSignals
from urlab.config import Ports, RenderProfile, RowLayout, ServerConfig, default_project
from urlab_wire.enums import StepMode


def serve(
    targets: opt.Targets = None,
    host: opt.Host = "127.0.0.1",
    insecure: opt.Insecure = False,
    step_port: opt.StepPort = 5559,
    state_port: opt.StatePort = 5555,
    control_port: opt.ControlPort = 5556,
    info_port: opt.InfoPort = 5557,
    camera_port: opt.CameraPort = 5558,
    shm: opt.Shm = sys.platform == "linux",
    step_mode: opt.Mode = StepMode.AUTO,
    play: opt.PlayAtStart = True,
    project: opt.ProjectDir = None,
    model_root: opt.ModelRoots = None,
    write_root: opt.WriteRoots = None,
    ready_file: opt.ReadyFile = None,
    save_debug_xml: opt.SaveDebugXml = False,
    render_profile: opt.Profile = RenderProfile.AUTO,
    camera_streams: opt.CameraStreams = True,
    rows: opt.Rows = RowLayout.V1,
    log_level: Log = LogLevel.INFO,
) -> None:
    """Run the server until Ctrl-C or SIGTERM.

    Example: [bold]urlab serve[/bold] plays the demo level; [bold]urlab serve my_robot.xml --step-mode direct[/bold]
    puts a robot of yours into a fresh level.
    """
    with StopSignals() as stop:
        set_up_logging(log_level)
        config = ServerConfig(
            host=host,
            insecure=insecure,
            ports=Ports(step_port, state_port, control_port, info_port, camera_port),
            shm=shm,
            step_mode=step_mode,
            play=play,
            project=project or default_project(),
            model_roots=_roots(model_root),
            write_roots=_roots(write_root),
            ready_file=ready_file,
            save_debug_xml=save_debug_xml,
            render_profile=render_profile,
            camera_streams=camera_streams,
            rows=rows,
        )
        # MuJoCo comes in here, after the signals: a stop during its import is a clean one as well.
        from urlab.cli.serve.run import run

        run(config, targets or [], stop)


def _roots(folders: list[Path] | None) -> tuple[Path, ...] | None:
    return tuple(folders) if folders else None

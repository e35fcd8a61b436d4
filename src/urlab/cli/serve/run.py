"""A server's life: start, serve, stop."""

import logging
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from urlab.app import Server
from urlab.cli.serve.banner import print_banner
from urlab.cli.serve.signals import StopSignals
from urlab.config import ServerConfig
from urlab.errors import ConfigError
from urlab_wire.enums import PIEState

log = logging.getLogger("urlab.cli")

_CLOSE_GRACE_S = 2.5
"""How long a compilation may hold up the end; it cannot be interrupted, and nothing of it is worth keeping."""


def run(config: ServerConfig, targets: Sequence[str], stop: StopSignals) -> None:
    """Serve until ``stop``. What cannot work raises a UrlabError before the ready file is there."""
    _check_ready_file(config)
    server = Server(config, targets)
    try:
        _start(server)
        stop.hold()
        if log.isEnabledFor(logging.INFO):
            print_banner(server)
        log.info("%s: stopping", stop.wait())
    finally:
        stop.hold()
        server.remove_ready_file()
        _close(server)
    log.info("stopped")


def _start(server: Server) -> None:
    server.remove_ready_file()
    server.bind_sockets()
    server.begin()
    server.open_sockets()
    server.write_ready_file()


def _check_ready_file(config: ServerConfig) -> None:
    path = config.ready_file
    if path is not None and not path.parent.is_dir():
        raise ConfigError(f"--ready-file {path}: there is no folder {path.parent}")
    if path is not None and path.is_dir():
        raise ConfigError(f"--ready-file {path} is a folder: name a file")


def _close(server: Server) -> None:
    """Recordings get all the time they need; a compilation does not."""
    closing = ThreadPoolExecutor(1, thread_name_prefix="urlab-close").submit(server.close)
    try:
        closing.result(_CLOSE_GRACE_S)
    except TimeoutError:
        if server.play.status().state is PIEState.COMPILING:
            log.warning("stopped in the middle of a compilation")
            server.leave_no_files()
            logging.shutdown()
            os._exit(0)
        closing.result()

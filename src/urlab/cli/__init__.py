"""The command line: options in; text or JSON, and an exit code, out. One file, or one folder, per command.

`main` brings the commands together; `options`, `console` and `signals` are what they share. No command imports MuJoCo
before it runs: ``urlab --help`` stays quick, and ``urlab doctor`` works on an installation where MuJoCo does not.
"""

import sys

from urlab.config import shadowing_client

if _wrong := shadowing_client():  # the commands import the client
    sys.exit(f"error: {_wrong}")

from urlab.cli.main import main

__all__ = ["main"]

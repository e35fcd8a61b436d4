"""The command line. One file, or one folder, per command; `urlab.cli.main` brings them together.

No command imports MuJoCo before it runs: ``urlab --help`` stays quick, and ``urlab doctor`` works on an installation
where MuJoCo does not.
"""

from urlab.cli.main import main

__all__ = ["main"]

"""`urlab bench`: what the server costs on this machine, against floors measured in the same run."""

from urlab.cli.bench.command import bench

__all__ = ["bench"]

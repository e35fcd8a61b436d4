"""`urlab watch`: what a running server streams, on a terminal, as JSON, or as pictures and clips."""

from urlab.cli.watch.command import watch

__all__ = ["watch"]

"""``urlab serve``: run the server until it is told to stop."""

from urlab.cli.serve.command import serve

__all__ = ["serve"]

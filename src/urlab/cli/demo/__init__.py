"""`urlab demo`: the half-minute tour."""

from urlab.cli.demo.command import demo

__all__ = ["demo"]

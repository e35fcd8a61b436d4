"""``urlab doctor``: whether this machine can run the server, and what to do where it cannot."""

from urlab.cli.doctor.command import doctor

__all__ = ["doctor"]

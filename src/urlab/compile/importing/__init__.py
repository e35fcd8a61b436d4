"""Bringing files into a project: read, made self-contained, compiled once in a child process, and kept."""

from urlab.compile.importing.bundle import Bundle
from urlab.compile.importing.importer import import_file
from urlab.compile.importing.keeper import keep
from urlab.compile.importing.limits import DEFAULT_LIMITS, Limits
from urlab.compile.importing.run_limited import stop_child_of

__all__ = ["DEFAULT_LIMITS", "Bundle", "Limits", "import_file", "keep", "stop_child_of"]

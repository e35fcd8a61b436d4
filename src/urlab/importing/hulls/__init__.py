"""Convex decomposition: a mesh cut into convex hulls with CoACD, in child processes, kept by content."""

from urlab.importing.hulls.decomposer import Decomposer

__all__ = ["Decomposer"]

"""Convex decomposition: a mesh cut into convex hulls with CoACD, in child processes, kept by content."""

from urlab.compile.decomposition.decomposer import Decomposer
from urlab.compile.decomposition.hull import Hull
from urlab.compile.decomposition.job import Progress

__all__ = ["Decomposer", "Hull", "Progress"]

"""`urlab eval`: policies on manipulation tasks, over HTTP."""

from urlab.cli.evaluation.group import evaluation

__all__ = ["evaluation"]

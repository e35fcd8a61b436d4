"""Scripted policies that know where everything is: proof that the tasks can be done, and worked examples.

`OraclePolicy` reads the ``[[oracle]]`` steps of a task's file and carries them out, one protocol action per control
step; it looks at ``privileged`` of the observation. `skills` has one function per kind of step, on `world` (what the
script knows, and how objects can be held) and `hand` (what it moves, and how).
"""

from urlab.evaluation.policies.oracle.policy import OraclePolicy

__all__ = ["OraclePolicy"]

"""Scripted policies that know where everything is: proof that the tasks can be done, and worked examples.

`OraclePolicy` reads the ``[[oracle]]`` steps of a task's file and carries them out with the skills of this package. It
looks at ``privileged`` of the observation and acts as any other policy does, one protocol action per control step.
"""

from urlab.evaluation.policies.oracle.policy import OraclePolicy

__all__ = ["OraclePolicy"]

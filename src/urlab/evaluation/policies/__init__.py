"""Policies: observations in, actions out; ours and those of others behind one protocol.

`find_policy` turns the words of a command line (``random``, ``oracle``, ``ws://host:port``, ``module:Class``) into a
`PolicySource`, which makes one policy for each worker. `base` has the protocol, `registry` the search; `oracle`,
`random_policy` and `openpi` (with `openpi_families`) are policies of ours.
"""

from urlab.evaluation.policies.base import Action, Observation, Policy, PolicyError, PolicyNotFound
from urlab.evaluation.policies.registry import PolicySource, find_policy

__all__ = ["Action", "Observation", "Policy", "PolicyError", "PolicyNotFound", "PolicySource", "find_policy"]

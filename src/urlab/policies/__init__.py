"""Trained policies on robots: an ONNX network and a TOML file that says what it sees and what it moves.

`policy_file` reads the file, `observation_terms` are what a policy may see, `runner` runs it through a client, and
`network` runs the ONNX file (extra ``policy``). It is a client of the server like any other.
"""

from urlab.policies.network import OnnxNetwork
from urlab.policies.observation_terms import TERMS, ObservationTerm, PolicyView
from urlab.policies.policy_file import PolicyFile, PolicyFileError, find_policy_file, read_policy_file
from urlab.policies.runner import PolicyRunner

__all__ = [
    "TERMS",
    "ObservationTerm",
    "OnnxNetwork",
    "PolicyFile",
    "PolicyFileError",
    "PolicyRunner",
    "PolicyView",
    "find_policy_file",
    "read_policy_file",
]

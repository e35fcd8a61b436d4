"""A policy behind an openpi websocket server: the policy serves, and we are its client."""

from urlab.evaluation.policies.openpi.policy import OpenPiPolicy

__all__ = ["OpenPiPolicy"]

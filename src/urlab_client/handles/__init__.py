"""Handles: objects that stand for the parts of a running scene."""

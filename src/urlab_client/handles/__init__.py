"""Handles: objects that stand for the parts of a running scene, made anew with every handshake.

`build` makes them: `articulation` with its `parts` (joints, actuators, sensors, bodies) and its `controller`, `entity`,
and `camera` with the `frame` that it saw last.
"""

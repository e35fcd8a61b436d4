"""Handles: objects that stand for the parts of a running scene. A handshake renews them; those whose part is gone
say so.

`build` makes them: `articulation` with its `parts` (joints, actuators, sensors, bodies), its `controller` and what was
`observed` of it, `entity`, and `camera` with the `frame` that it saw last.
"""

"""One robot at one task on the physics engine: actions in, observations and a result out. Knows nothing of HTTP.

It uses `urlab.physics.Engine` without the manager and its operations: an episode has one owner and needs no sessions.
"""

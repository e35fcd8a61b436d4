"""One robot at one task on the physics engine: actions in, observations and a result out. Knows nothing of HTTP.

`episode` is one attempt; `simulation` the physics behind it, and what relative actions add to; `scene` builds its scene
and its cameras; `actions` reads and checks actions; `kinematics` turns hand poses into joints and back. It uses
`urlab.physics.Engine` without the manager: an episode has one owner and needs no sessions.
"""

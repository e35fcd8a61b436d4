"""One robot at one task on the physics engine: actions in, observations and a result out. Knows nothing of HTTP.

`episode` is one attempt; `simulation` the physics behind it, on a scene that `scene` builds. `actions` reads and
checks actions, `commands` remembers what relative ones add to, `kinematics` turns hand poses into joints and back,
`cameras` has what a policy sees. It uses `urlab.physics.Engine` without the manager: an episode has one owner and needs
no sessions.
"""

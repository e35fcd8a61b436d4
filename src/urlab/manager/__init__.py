"""One running scene: typed requests in, changes of the simulation and observations out; and its lifecycle.

`play` compiles the edited level into a `Manager` and ends it again. `manager` brings the parts together: `modes` (what
a step means), `command` (the checks of a step), `forces` (wrenches, and what holds bodies), `articulation` (a robot's
setpoints and controller), `edits` (changes that are no steps), `states` (saving and restoring),
`record_replay`. The state goes out through `observation` and `packed` (replies),
`stream_source` and `state_rows` (streams) and `scene_view` (viewport and outliner); `stream_source` also takes the
commands of the control stream. `exports` writes saved recordings as films and datasets, `randomising` draws what a
reset asks for, and `batches` are copies of the scene that are stepped together.
"""

from urlab.manager.exports import Exports
from urlab.manager.manager import Manager, StepCounter
from urlab.manager.observation import Observation, PlainBlocks, View
from urlab.manager.play import Play, PlayStatus
from urlab.manager.scene_view import ViewportSource
from urlab.manager.stream_source import StreamSource

__all__ = [
    "Exports",
    "Manager",
    "Observation",
    "PlainBlocks",
    "Play",
    "PlayStatus",
    "StepCounter",
    "StreamSource",
    "View",
    "ViewportSource",
]

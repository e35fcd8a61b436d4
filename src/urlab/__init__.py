"""The headless simulation server, and `launch`, which runs one inside this process and returns its client.

From top to bottom; a package imports only from those below it (ARCHITECTURE.md draws the rows):

- `cli`: the command line, one file or folder per command.
- `ros2`: the bridge to ROS 2, a client of a running server. `evaluation`: policies on manipulation tasks, over HTTP.
- `app`: builds a server from the parts below.
- `transport`: frames in and out: ZeroMQ requests, streams, shared memory. `plugins`: what a user's plugin imports.
- `ops`: sessions, the dispatcher and the handler of every op.
- `manager`: one running scene: step modes, observations, the play lifecycle.
- `viewport`: pictures of a scene without a window. `authoring`: the level that clients edit.
- `control`: controllers and setpoints. `cameras`: drawing and frames. `recording`: recordings and replay.
  `overlay`: debug drawings as data.
- `importing`: model files of others into the project.
- `compile`: levels and models into one compiled scene.
- `scene`: levels, actors and blueprints as data. `physics`: the owner of MjModel and MjData. `robots`: shipped models.
- Shared ground, one file each: `geometry`, `config`, `files`, `numbers`, `toml_tables`, `child_process`, `video`,
  `errors`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from urlab.config import VERSION

if TYPE_CHECKING:
    from urlab_client import URLabClient

__version__ = VERSION


def launch(target: str | Path | Sequence[str | Path] | None = None, **options: Any) -> "URLabClient":
    """Start a server inside this process and return a connected client; see `urlab.app.launch`."""
    from urlab.app import launch as launch_app

    return launch_app(target, **options)


__all__ = ["__version__", "launch"]

"""The headless simulation server, and `launch`, which runs one inside this process and returns its client.

From top to bottom; a package imports only from those below it (ARCHITECTURE.md draws the rows):

- `cli`: the command line, one file or folder per command.
- `ros2`: the bridge to ROS 2, a client of a running server. `evaluation`: policies on manipulation tasks, over HTTP.
  `editor`: the browser editor, a client of a running server. `envs`: environments for learning.
  `policies`: trained networks that drive a robot, through a client.
- `app`: builds a server from the parts below. `health`: what a server says of itself, over HTTP. `editor_process`: the
  editor's port and process.
- `transport`: frames in and out: ZeroMQ requests, streams, shared memory. `plugins`: what a user's plugin imports.
- `ops`: sessions, the dispatcher and the handler of every op.
- `manager`: one running scene: step modes, observations, the play lifecycle.
- `viewport`: pictures of a scene without a window. `authoring`: the level that clients edit. `export`: recordings as
  files of other formats.
- `control`: controllers and setpoints. `cameras`: drawing and frames. `recording`: recordings and replay.
  `overlay`: debug drawings as data.
- `importing`: model files of others into the project.
- `compile`: levels and models into one compiled scene.
- `scene`: levels, actors and blueprints as data. `physics`: the owner of MjModel and MjData. `robots`: shipped models.
- `access`: who is let in.
- Shared ground, one file each but for `monitoring`: `geometry`, `config`, `files`, `numbers`, `toml_tables`,
  `child_process`, `ray_actors`, `video`, `mujoco_versions`; below them `paths` and `errors`.
"""

from typing import TYPE_CHECKING, Any

from urlab.config import VERSION, shadowing_client

if TYPE_CHECKING:
    from urlab.app import launch

__version__ = VERSION


def __getattr__(name: str) -> Any:
    if name != "launch":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if wrong := shadowing_client():
        raise ImportError(wrong)
    from urlab.app import launch

    return launch


def __dir__() -> list[str]:
    return [*globals(), "launch"]


__all__ = ["__version__", "launch"]

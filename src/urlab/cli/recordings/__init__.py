"""Commands about saved recordings, which need no server: `replay` makes films, `export` files for other tools."""

from urlab.cli.recordings.export import export
from urlab.cli.recordings.replay import replay

__all__ = ["export", "replay"]

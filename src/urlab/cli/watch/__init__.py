"""`urlab watch`: what a running server streams, on a terminal, as JSON, or as pictures and clips.

`command` has the options and connects through `server`; `scene` watches a whole scene and `camera` one camera. `rates`
counts messages, `display` shows what was read, `clips` writes files.
"""

from urlab.cli.watch.command import watch

__all__ = ["watch"]

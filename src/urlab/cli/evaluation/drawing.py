"""Whether this machine can draw what policies see."""

from urlab.cli.complaint import CommandError
from urlab.errors import UrlabError


def check_drawing() -> None:
    """CommandError without GL: every episode would fail, one after the other."""
    from urlab.cameras import GlThread

    gl = GlThread()
    try:
        gl.gl_name()
    except UrlabError as none:
        raise CommandError(f"{none.message}. Policies that need no pictures run with --no-cameras.") from none
    finally:
        gl.close()

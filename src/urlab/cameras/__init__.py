"""Drawing without a screen. For now: the GL context that every renderer of this process shares."""

from urlab.cameras.gl_thread import GlThread, shared_gl

__all__ = ["GlThread", "shared_gl"]

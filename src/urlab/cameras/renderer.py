"""Pictures of a scene, for whoever asks."""

from collections.abc import Sequence
from contextlib import suppress

import mujoco

from urlab.cameras.frame import Frame, Shot
from urlab.cameras.gl_thread import GlThread, shared_gl
from urlab.cameras.profile import SETTINGS, effective_profile
from urlab.cameras.scene_view import SceneView
from urlab.compile.compiled_scene import CompiledScene
from urlab.config import RenderProfile
from urlab.errors import NoViewport
from urlab.physics.snapshot import Snapshot

_FREE_LIMIT_S = 1.5


class SceneRenderer:
    """Draws one compiled scene through its cameras. Any thread may call it; the drawing is done on the GL thread.

    It keeps a state of its own, and never touches the one that is stepped. GL memory is taken with the first picture.
    """

    def __init__(self, scene: CompiledScene, profile: RenderProfile, gl: GlThread | None = None) -> None:
        self._scene = scene
        self._wanted = profile
        self._gl = gl or shared_gl()
        self._view: SceneView | None = None
        self._asked = self._closed = False

    @property
    def gl_name(self) -> str:
        """What draws, as its driver calls it; NoViewport when nothing does."""
        return self._gl.gl_name()

    @property
    def profile(self) -> RenderProfile:
        """The profile in force, never auto; NoViewport when nothing draws and it depends on what does."""
        if self._wanted is not RenderProfile.AUTO:
            return self._wanted
        return effective_profile(self._wanted, self.gl_name)

    @property
    def is_in_use(self) -> bool:
        """Whether it holds GL memory."""
        return self._view is not None

    def render(self, shots: Sequence[Shot], snapshot: Snapshot) -> list[Frame]:
        """Take pictures, in the order asked for, all of the one state. Blocks until they are there.

        NoViewport when nothing can be drawn on this machine, or not at that size, or not any more.
        """
        if not shots:
            return []
        self._asked = True
        return self._gl.run(lambda: self._draw(shots, snapshot))

    def close(self) -> None:
        """Give back the GL memory; nothing can be drawn afterwards. May be called twice."""
        self._closed = True
        if not self._asked:
            return
        with suppress(NoViewport, TimeoutError):
            self._gl.post(self.free).result(_FREE_LIMIT_S)

    def free(self) -> None:
        """Give back the GL memory; the next picture takes it anew. GL thread only."""
        view, self._view = self._view, None
        if view is not None:
            view.free()

    def _draw(self, shots: Sequence[Shot], snapshot: Snapshot) -> list[Frame]:
        if self._closed:
            raise NoViewport("this scene is not drawn any more: it was closed")
        try:
            view = self._open_view()
            view.pose(snapshot)
            return [view.take(shot, snapshot) for shot in shots]
        except (mujoco.FatalError, NoViewport) as refused:
            self.free()
            sizes = ", ".join(sorted({"x".join(map(str, shot.size)) for shot in shots}))
            raise NoViewport(f"this scene cannot be drawn at {sizes}: {refused}") from refused

    def _open_view(self) -> SceneView:
        if self._view is None:
            self._view = SceneView(self._scene, SETTINGS[self.profile])
            self._gl.adopt(self)
        return self._view

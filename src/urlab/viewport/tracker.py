"""Following an actor with a camera."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from urlab.geometry import Pose, Vec3
from urlab.viewport.camera import ViewCamera

DEFAULT_OFFSET_M: Vec3 = (-2.0, 0.0, 1.0)
"""Two metres behind and one above, in the actor's frame."""

_FRAME_RATE_HZ = 60.0
"""``smoothing`` is what is left of the camera's way after one frame of this rate, however often it is looked at."""


@dataclass(slots=True)
class Tracker:
    """Where the camera shall be. ``pose`` tells where the actor is now, or None when it is gone; ``path`` names it."""

    pose: Callable[[], Pose | None]
    path: str
    offset: Vec3
    smoothing: float
    seen_at_s: float
    """When the camera was last moved, in wall seconds."""

    def follow(self, camera: ViewCamera, now_s: float) -> ViewCamera:
        """The camera, as much nearer to its place as time has passed, looking at the actor."""
        elapsed_s, self.seen_at_s = now_s - self.seen_at_s, now_s
        actor = self.pose()
        if actor is None:
            return camera
        left = self.smoothing ** (elapsed_s * _FRAME_RATE_HZ) if self.smoothing else 0.0
        wanted = actor.apply(Pose(self.offset)).pos
        x, y, z = (w + left * (at - w) for w, at in zip(wanted, camera.location, strict=True))
        return replace(camera, location=(x, y, z)).looking_at(actor.pos)

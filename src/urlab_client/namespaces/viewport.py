"""``client.viewport``: the camera of the perspective viewport."""

from urlab_client.namespaces.base import RpcNamespace, Target, Vector, maybe, numbers, rotated, targeted
from urlab_client.types import CameraPose

MODES = ("lit", "unlit", "wireframe", "collision", "reflections")


class ViewportNamespace(RpcNamespace):
    """Place the viewport camera, let it follow an actor, choose how the scene is drawn."""

    __slots__ = ()

    NAME = "viewport"

    def set_camera(
        self,
        location: Vector,
        *,
        rotation_quat: Vector | None = None,
        rotation_euler: Vector | None = None,
        fov: float | None = None,
    ) -> CameraPose:
        """Place the camera (metres; x, y, z, w or roll, pitch, yaw degrees; horizontal ``fov`` degrees)."""
        place, rotation = numbers("location", location), rotated(rotation_quat, rotation_euler)
        return CameraPose.from_wire(self._ask("set_camera", location=place, **rotation, fov=fov))

    def get_camera(self) -> CameraPose:
        """Where the camera is."""
        return CameraPose.from_wire(self._ask("get_camera"))

    def frame_actor(self, target: Target, *, by_name: bool = False) -> CameraPose:
        """Move the camera so that an actor fills the view."""
        return CameraPose.from_wire(self._ask("frame_actor", **targeted(target, by_name)))

    def set_mode(self, mode: str) -> str:
        """Choose lit, unlit, wireframe, collision or reflections; returns the mode in force."""
        if mode not in MODES:
            raise ValueError(f"{mode!r} is no viewport mode: choose one of {', '.join(MODES)}")
        return str(self._ask("set_viewport_mode", mode=mode).get("mode", mode))

    def track_actor(
        self, target: Target, *, by_name: bool = False, offset: Vector | None = None, smoothing: float = 0.0
    ) -> str:
        """Let the camera follow an actor from ``offset`` (its frame, metres); returns the actor's path.

        ``smoothing`` in [0, 1): 0 follows at once.
        """
        if not 0.0 <= smoothing < 1.0:
            raise ValueError(f"smoothing is in [0, 1), not {smoothing}")
        where = maybe("offset", offset)
        reply = self._ask("track_actor", **targeted(target, by_name), offset=where, smoothing=float(smoothing))
        return str(reply.get("tracked_actor_path") or "")

    def untrack(self) -> bool:
        """Stop following; returns whether the camera was."""
        return bool(self._ask("untrack").get("was_tracking"))

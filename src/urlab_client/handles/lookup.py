"""From names to ids of the compiled model."""

from typing import TYPE_CHECKING

import mujoco

if TYPE_CHECKING:
    from urlab_client.client import URLabClient

_KINDS = {
    "joint": mujoco.mjtObj.mjOBJ_JOINT,
    "actuator": mujoco.mjtObj.mjOBJ_ACTUATOR,
    "sensor": mujoco.mjtObj.mjOBJ_SENSOR,
    "body": mujoco.mjtObj.mjOBJ_BODY,
    "geom": mujoco.mjtObj.mjOBJ_GEOM,
    "site": mujoco.mjtObj.mjOBJ_SITE,
    "camera": mujoco.mjtObj.mjOBJ_CAMERA,
    "keyframe": mujoco.mjtObj.mjOBJ_KEY,
}


class ModelNames:
    """Looks up elements of the model by their name with or without the ``<prefix>_``.

    Without a local model only the articulation's own joints, actuators, sensors and bodies are known.
    """

    prefix: str
    _client: "URLabClient | None"

    def mj(self, kind: str, name: str) -> int:
        """The model id of an element; KeyError when there is none.

        ``kind`` is joint, actuator, sensor, body, geom, site, camera or keyframe.
        """
        if kind not in _KINDS:
            raise KeyError(f"unknown kind {kind!r}: choose one of {', '.join(_KINDS)}")
        found = self._model_id(kind, name)
        if found is None:
            raise KeyError(f"{self.prefix!r} has no {kind} {name!r}")
        return found

    def _model_id(self, kind: str, name: str) -> int | None:
        model = self._client._model if self._client is not None else None
        if model is None:
            return self._part_id(kind, name)
        ids = (int(mujoco.mj_name2id(model, _KINDS[kind], full)) for full in (f"{self.prefix}_{name}", name))
        return next((found for found in ids if found >= 0), None)

    def _part_id(self, kind: str, name: str) -> int | None:
        """The id of one of the articulation's own parts, or None."""
        raise NotImplementedError

    def mj_joint(self, name: str) -> int:
        """The model id of a joint."""
        return self.mj("joint", name)

    def mj_actuator(self, name: str) -> int:
        """The model id of an actuator."""
        return self.mj("actuator", name)

    def mj_sensor(self, name: str) -> int:
        """The model id of a sensor."""
        return self.mj("sensor", name)

    def mj_body(self, name: str) -> int:
        """The model id of a body."""
        return self.mj("body", name)

    def mj_camera(self, name: str) -> int:
        """The model id of a camera."""
        return self.mj("camera", name)

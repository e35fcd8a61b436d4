"""Edits of the local model that the server never sees: found where they are likely, and told once each.

In direct and live mode the server simulates a model of its own, so a mass that is written into ``client.model`` changes
nothing there. The model is looked at in the step or reset that follows a reading of ``client.model``: a loop that does
not read it pays for one comparison of a flag.
"""

import warnings

import mujoco

from urlab_client.errors import URLabLocalEditWarning

_WATCHED = (
    "body_mass", "body_inertia", "body_ipos", "body_pos", "body_quat", "geom_friction", "geom_size", "geom_pos",
    "geom_rgba", "geom_solref", "geom_solimp", "dof_damping", "dof_armature", "dof_frictionloss", "jnt_stiffness",
    "jnt_range", "actuator_gainprm", "actuator_biasprm", "actuator_gear", "actuator_ctrlrange", "actuator_forcerange",
    "mat_rgba", "cam_pos", "cam_quat", "cam_fovy", "light_pos", "light_dir", "light_diffuse", "qpos0",
)  # fmt: skip
_OPTIONS = ("timestep", "gravity", "wind", "density", "viscosity")

Contents = dict[str, bytes | float]


class LocalEdits:
    """Watches one local model. Callers hold the client's data lock."""

    def __init__(self) -> None:
        self._seen: Contents | None = None
        self.suspected = False
        """Whether the model was read since it was last looked at."""

    def model_read(self, model: mujoco.MjModel | None) -> None:
        """A caller has got the model, and may edit it."""
        if model is not None:
            self.suspected = True
            if self._seen is None:
                self._seen = _contents(model)

    def follow(self, model: mujoco.MjModel | None) -> None:
        """The model is as the server's is from here on; None when there is none."""
        if self._seen is not None:
            self._seen = None if model is None else _contents(model)

    def look(self, model: mujoco.MjModel | None) -> None:
        """Warn of what was edited since the last look, if anything was."""
        self.suspected = False
        if model is None or self._seen is None:
            return
        now = _contents(model)
        edited = [name for name, content in now.items() if content != self._seen[name]]
        self._seen = now
        if edited:
            text = (
                f"{', '.join(edited)} of client.model changed here, but the server simulates a model of its own, which "
                "stays as it is. Use client.runtime.set_model_params (docs/randomisation.md) or set_sim_options; in "
                "puppet mode the local model is the one that runs."
            )
            warnings.warn(text, URLabLocalEditWarning, stacklevel=4)


def _contents(model: mujoco.MjModel) -> Contents:
    arrays: Contents = {name: getattr(model, name).tobytes() for name in _WATCHED}
    options = {f"opt.{name}": getattr(model.opt, name) for name in _OPTIONS}
    return arrays | {name: value if isinstance(value, float) else value.tobytes() for name, value in options.items()}

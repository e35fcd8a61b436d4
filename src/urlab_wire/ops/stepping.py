"""step, reset and forward: advance the simulation or evaluate it, and observe."""

from typing import Any

import msgspec

from urlab_wire.envelope import Reply, Request

_NS_PER_S = 1_000_000_000
_FAR_S = 2.0**62


class ArticulationCommand(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What a step asks of one articulation (or, for ``xfrc_applied`` only, of an entity).

    ``ctrl`` is in actuator order, ``ctrl_map`` is by actuator name; ``xfrc_applied`` maps a body to
    (fx, fy, fz, tx, ty, tz) in the world frame, held for this step's window only.
    """

    ctrl: list[float] | None = None
    ctrl_map: dict[str, float] | None = None
    control_mode: str | None = None
    xfrc_applied: dict[str, list[float]] | None = None


class StepRequest(Request["StepReply"], tag="step"):
    """Advance physics. ``time``, ``qpos``, ``qvel`` and ``ctrl`` are those of puppet mode.

    ``n_steps`` 0 (extension) takes no step and only observes.
    """

    n_steps: int | None = None
    observations: str | None = None
    include_cameras: bool | dict[str, str] | None = None
    per_articulation: dict[str, ArticulationCommand | None] | None = None
    mode: str | None = None
    time: float | None = None
    qpos: list[float] | None = None
    qvel: list[float] | None = None
    ctrl: list[float] | None = None


def split_ns(nanoseconds: int) -> tuple[int, int]:
    """Nanoseconds as whole seconds and the rest."""
    return divmod(nanoseconds, _NS_PER_S)


def split_s(seconds: float) -> tuple[int, int]:
    """Seconds as whole ones and nanoseconds, as far as they fit 64 bits; beyond that the time stands still."""
    if not -_FAR_S < seconds < _FAR_S:
        seconds = _FAR_S if seconds > 0 else -_FAR_S
    return divmod(round(seconds * _NS_PER_S), _NS_PER_S)


class ClockBlock(msgspec.Struct, kw_only=True):
    """A time split as ROS does: whole seconds and nanoseconds."""

    sec: int
    nsec: int

    @classmethod
    def of_ns(cls, nanoseconds: int) -> "ClockBlock":
        """Nanoseconds as seconds and the rest."""
        sec, nsec = split_ns(nanoseconds)
        return cls(sec=sec, nsec=nsec)

    @classmethod
    def of_s(cls, seconds: float) -> "ClockBlock":
        """Seconds, as far as they fit 64 bits; beyond that the block stands still."""
        sec, nsec = split_s(seconds)
        return cls(sec=sec, nsec=nsec)


class TwistBlock(msgspec.Struct, kw_only=True):
    """(vx, vy, 0) in m/s and (0, 0, yaw rate) in rad/s."""

    linear: list[float]
    angular: list[float]


class BodyPose(msgspec.Struct, kw_only=True):
    """World pose of a body; the quaternion is w, x, y, z."""

    xpos: list[float]
    xquat: list[float]


class ArticulationState(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Observed state of one articulation; what is present follows the observation level."""

    qpos: list[float]
    qvel: list[float]
    ctrl: list[float] | None = None
    act: list[float] | None = None
    sensors: dict[str, list[float]] | None = None
    twist: TwistBlock | None = None
    actions: int | None = None
    bodies: dict[str, BodyPose] | None = None
    actuator_force: list[float] | None = None


class EntityState(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Observed state of one entity; ``qpos`` and ``qvel`` exist for free bodies only."""

    xpos: list[float]
    xquat: list[float]
    qpos: list[float] | None = None
    qvel: list[float] | None = None


class PerturbationBlock(msgspec.Struct, kw_only=True):
    """The wrench that holds a body in puppet mode, for the client to apply to its own data.

    ``xfrc`` is (fx, fy, fz, tx, ty, tz) in the world frame, at the centre of mass. ``version`` grows with every change
    of what is held.
    """

    body_id: int
    version: int
    xfrc: list[float]


class ReplayBlock(msgspec.Struct, kw_only=True):
    """Where a running replay stands. ``frame`` is the index of the frame shown."""

    active_session: str
    frame: int
    total_frames: int


class StateReply(Reply):
    """The observation that step, reset and forward share. A server may put in blocks that are packed already.

    ``perturbation`` is the body that was taken hold of last; ``perturbations`` (extension) are all, where there are
    several.
    """

    time: float
    step: int
    sim_time: ClockBlock
    wall_time: ClockBlock
    per_articulation: dict[str, ArticulationState]
    entities: dict[str, EntityState] | None = None
    cameras: dict[str, Any] | None = None
    perturbation: PerturbationBlock | None = None
    perturbations: list[PerturbationBlock] | None = None
    replay: ReplayBlock | None = None
    warnings: list[str] | None = None


class StepReply(StateReply, tag="step_ok"):
    """State after a step."""


class ModelChange(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One parameter of the compiled model, or of how it starts, and the value that it gets (extension).

    ``kind`` and ``field`` are words of docs/randomisation.md, ``name`` is the compiled or short name of an element (an
    option has none). ``value`` is a number, or as many as the field has; for a texture its name.
    """

    kind: str
    field: str
    value: Any
    name: str = ""


class ModelWrite(msgspec.Struct, kw_only=True):
    """Numbers for an array of MuJoCo's MjModel, from ``start`` on in its flat order; ``opt.gravity`` is an option's."""

    array: str
    start: int
    values: list[float]


class ModelWrites(msgspec.Struct, kw_only=True):
    """What brings a copy of the model up to date: ``writes`` in order, then mj_setConst if ``derive``."""

    writes: list[ModelWrite]
    derive: bool


class ResetRequest(Request["ResetReply"], tag="reset"):
    """Go back to the start, or to a keyframe, with joint overrides ``{prefix: {joint: value}}``.

    ``scope`` (extension) is what goes back: ``all`` (as without it), ``state`` (time goes on), or ``time`` (and nothing
    else, so that it takes none of the other fields). ``randomize`` (extension) are entries of docs/randomisation.md by
    name, ``true`` for those of the level, or ``false`` for none; left out, a ``seed`` means those of the level.
    """

    keyframe_name: str | None = None
    seed: int | None = None
    per_articulation_qpos: dict[str, dict[str, float | list[float]]] | None = None
    scope: str | None = None
    randomize: bool | dict[str, Any] | None = None


class RandomizedBlock(msgspec.Struct, kw_only=True):
    """What was drawn from a seed, entry by entry."""

    seed: int
    changes: list[ModelChange]


class ResetReply(StateReply, tag="reset_ok"):
    """State after a reset; ``setpoints`` (extension) are those that the reset has put in force, by articulation.

    ``randomized`` (extension) is what was drawn, where anything was. ``model`` (extension) brings a copy of the model
    up to date, where the reset has changed it.
    """

    setpoints: dict[str, list[float]] | None = None
    randomized: RandomizedBlock | None = None
    model: ModelWrites | None = None


class ForwardRequest(Request["ForwardReply"], tag="forward"):
    """Run mj_forward: derived quantities follow the state, time stands still.

    ``include_cameras`` (extension) is as in a step.
    """

    include_cameras: bool | dict[str, str] | None = None


class ForwardReply(StateReply, tag="forward_ok"):
    """State after mj_forward."""


class RestoreStateRequest(Request["RestoreStateReply"], tag="restore_state"):
    """Go to a state that `save_state` gave: by the ``name`` under which it is kept, or its bytes (extension).

    In JSON it is base64 text.
    """

    name: str | None = None
    state: bytes | None = None


class RestoreStateReply(StateReply, tag="restore_state_ok"):
    """The state that was restored, and the setpoints that are in force with it.

    ``equalities`` are the equality constraints, by compiled name, that are not as the model has them by default.
    """

    setpoints: dict[str, list[float]] | None = None
    equalities: dict[str, bool] | None = None

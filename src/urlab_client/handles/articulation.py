"""A robot: its parts by short name, its setpoints, and its state."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import mujoco
import numpy as np
import numpy.typing as npt

from urlab_client.checks import finite, per_name
from urlab_client.enums import ControlMode, coerce
from urlab_client.handles.camera import URLabCameraView
from urlab_client.handles.controller import URLabController, URLabPDController
from urlab_client.handles.entity import Array, URLabEntity
from urlab_client.handles.parts import Actuator, Body, Joint, Sensor
from urlab_wire.codec import Tree

if TYPE_CHECKING:
    from urlab_client.client import URLabClient


Index = slice | npt.NDArray[np.intp]
NamesByKind = Mapping[str, Mapping[str, str]]
"""By kind ("joints", "actuators"): live short name -> name in the source XML."""
Entry = TypeVar("Entry")

FREE_QPOS, FREE_QVEL = 7, 6
_FREE_SPANS = {"xpos": ("qpos", slice(0, 3)), "xquat": ("qpos", slice(3, 7)), "qvel": ("qvel", slice(0, 6))}
_NO_TWIST: Mapping[str, Sequence[float]] = {"linear": (0.0, 0.0, 0.0), "angular": (0.0, 0.0, 0.0)}


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


class Observed:
    """The observation of one articulation.

    ``ctrl``, ``act``, ``sensors``, ``twist`` and ``actions`` keep their last value when a reply leaves them out, as
    the minimal level does; ``bodies`` and ``forces`` are those of the last reply only.
    """

    __slots__ = ("act", "actions", "bodies", "ctrl", "forces", "qpos", "qvel", "sensors", "twist")

    def __init__(self) -> None:
        self.qpos: Sequence[float] = ()
        self.qvel: Sequence[float] = ()
        self.ctrl: Sequence[float] = ()
        self.act: Sequence[float] = ()
        self.sensors: Mapping[str, Sequence[float]] = {}
        self.bodies: Mapping[str, Mapping[str, Sequence[float]]] = {}
        self.forces: Sequence[float] | Mapping[str, float] = ()
        self.twist: Mapping[str, Sequence[float]] = _NO_TWIST
        self.actions = 0

    def absorb(self, block: Tree) -> None:
        """Take one articulation's block of a reply."""
        get = block.get
        self.qpos = get("qpos") or ()
        self.qvel = get("qvel") or ()
        self.ctrl = get("ctrl", self.ctrl)
        self.act = get("act", self.act)
        self.sensors = get("sensors", self.sensors)
        self.twist = get("twist", self.twist)
        self.actions = get("actions", self.actions)
        self.bodies = get("bodies") or {}
        self.forces = get("actuator_force") or get("actuator_forces") or ()

    def force(self, name: str, local: int) -> float | None:
        """The force of one actuator, where the reply had forces: by name, or by position."""
        if isinstance(self.forces, Mapping):
            found = self.forces.get(name)
        else:
            found = self.forces[local] if local < len(self.forces) else None
        return None if found is None else float(found)


def padded(values: Sequence[float], size: int) -> Array:
    """The values as an array of that size, or zeros when there are not exactly so many."""
    return np.array(values, dtype=np.float64) if len(values) == size else np.zeros(size)


class URLabArticulation(URLabEntity):
    """One articulation, keyed by ``prefix``. Part dicts are keyed by short name, in model id order.

    ``ctrl_array`` belongs to the caller: all of it goes out with every step. It begins with the setpoints that are
    in force on the server, and a reset fills it with those that the reset has put in force (of a keyframe, or zero;
    both as far as the server tells them); no step changes it. In puppet mode ``client.data`` leads: ``data.ctrl``
    begins with the same setpoints, and before a local step ``ctrl_array`` is copied into it only if it changed since
    the last step, so that ``data.ctrl`` may be written instead. All other state is read on access from
    ``client.data`` or from the last reply, as fresh arrays.
    """

    def __init__(
        self,
        prefix: str,
        *,
        actor_id: str = "",
        control_mode: str = ControlMode.RAW,
        controller: URLabController | None = None,
        original_names: NamesByKind | None = None,
        client: "URLabClient | None" = None,
    ) -> None:
        super().__init__(prefix, actor_id=actor_id, client=client)
        self.prefix = prefix
        self.controller = controller
        self.observed = Observed()
        self.cameras: dict[str, URLabCameraView] = {}
        self.control_mode = control_mode
        self._original_names = original_names or {}
        self.attach({}, {}, {}, {})

    root_local = 0, 0
    """Where the free root begins in `qpos_array` and `qvel_array`."""

    def attach(
        self,
        actuators: dict[str, Actuator],
        joints: dict[str, Joint],
        sensors: dict[str, Sensor],
        bodies: dict[str, Body],
    ) -> None:
        """Take the parts that the compiled model has, with zero setpoints."""
        self.actuators, self.joints, self.sensors, self.bodies = actuators, joints, sensors, bodies
        self._actuator_local = {name: place for place, name in enumerate(actuators)}
        self._ctrl: Array = np.zeros(len(actuators))
        self._stepped_ctrl: list[float] = self._ctrl.tolist()
        self._ctrl_ids = np.array([one.ctrl_id for one in actuators.values()], dtype=np.intp)
        self._qpos_index = _index([(one.qpos_offset, one.qpos_dim) for one in joints.values()])
        self._qvel_index = _index([(one.qvel_offset, one.qvel_dim) for one in joints.values()])

    @property
    def control_mode(self) -> ControlMode:
        """What the setpoints mean: targets for the controller, or raw actuator signals."""
        return self._control_mode

    @control_mode.setter
    def control_mode(self, mode: str) -> None:
        self._control_mode = coerce(ControlMode, mode)
        self._control_word: str = self._control_mode.value

    @property
    def ctrl_array(self) -> Array:
        """The setpoint buffer, (n_actuators,), writable."""
        return self._ctrl

    @ctrl_array.setter
    def ctrl_array(self, values: Sequence[float] | Array) -> None:
        self._ctrl[:] = per_name(list(self.actuators), f"{self.prefix}.ctrl_array", values)

    @property
    def last_applied_ctrl(self) -> Array:
        """What the server last applied, (n_actuators,), read-only."""
        echo = padded(self.observed.ctrl, len(self.actuators))
        echo.flags.writeable = False
        return echo

    @property
    def act_array(self) -> Array:
        """Activations, (n_actuators,): the first of each, zero for actuators without one."""
        return padded(self.observed.act[: len(self.actuators)], len(self.actuators))

    @property
    def qpos_array(self) -> Array:
        """The articulation's qpos, dense, in joint order."""
        data = self._state
        return np.array(self.observed.qpos if data is None else data.qpos[self._qpos_index], dtype=np.float64)

    @property
    def qvel_array(self) -> Array:
        """The articulation's qvel, dense, in joint order."""
        data = self._state
        return np.array(self.observed.qvel if data is None else data.qvel[self._qvel_index], dtype=np.float64)

    @property
    def dof_qpos(self) -> Array:
        """`qpos_array` without the free root."""
        return _without(self.qpos_array, self.root_local[0], FREE_QPOS if self.has_free_base else 0)

    @property
    def dof_qvel(self) -> Array:
        """`qvel_array` without the free root."""
        return _without(self.qvel_array, self.root_local[1], FREE_QVEL if self.has_free_base else 0)

    @property
    def twist_linear(self) -> Array:
        """The commanded (vx, vy, 0) in m/s."""
        return np.array(self.observed.twist["linear"], dtype=np.float64)

    @property
    def twist_angular(self) -> Array:
        """The commanded (0, 0, yaw rate) in rad/s."""
        return np.array(self.observed.twist["angular"], dtype=np.float64)

    @property
    def twist(self) -> Array:
        """Linear and angular command, (6,)."""
        return np.concatenate([self.twist_linear, self.twist_angular])

    @property
    def actions(self) -> int:
        """The action bits that go with the twist."""
        return int(self.observed.actions)

    def set_ctrl(self, values: Mapping[str, float]) -> None:
        """Set some setpoints by actuator name; the others stay.

        KeyError on an unknown name, ValueError on a number that is not finite; then nothing is changed.
        """
        slots = [self._known("actuator", name, self._actuator_local) for name in values]
        self._ctrl[slots] = [finite(f"{self.prefix}: {name}", value) for name, value in values.items()]

    def get_ctrl(self) -> dict[str, float]:
        """The setpoint buffer by actuator name."""
        return dict(zip(self.actuators, self._ctrl.tolist(), strict=True))

    def get_qpos(self) -> dict[str, float]:
        """The first qpos component of every joint."""
        qpos = self.qpos_array
        return {name: float(qpos[joint.qpos_local_offset]) for name, joint in self.joints.items()}

    def get_sensors(self) -> dict[str, Array]:
        """Every sensor's latest value; zeros before there is one."""
        values = self.observed.sensors
        return {name: padded(values.get(name, ()), sensor.dim) for name, sensor in self.sensors.items()}

    def apply_xfrc(  # type: ignore[override]  # a robot has many bodies: the public API names one
        self, body: str, force: Sequence[float] = (0, 0, 0), torque: Sequence[float] = (0, 0, 0)
    ) -> None:
        """Put a wrench (N, N m, world frame) on a body for the next step. Inert in puppet mode."""
        self._known("body", body, self.bodies)
        self._buffer_xfrc(body, force, torque)

    def mj(self, kind: str, name: str) -> int:
        """The model id of an element by its name with or without the ``<prefix>_``; KeyError when there is none.

        ``kind`` is joint, actuator, sensor, body, geom, site, camera or keyframe. Without a local model only the
        articulation's own joints, actuators, sensors and bodies are known.
        """
        if kind not in _KINDS:
            raise KeyError(f"unknown kind {kind!r}: choose one of {', '.join(_KINDS)}")
        found = self._model_id(kind, name)
        if found is None:
            raise KeyError(f"{self.prefix!r} has no {kind} {name!r}")
        return found

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

    def push_gains(
        self,
        joint_names: Sequence[str],
        stiffness: Sequence[float],
        damping: Sequence[float] | None = None,
        torque_limit: Sequence[float] | None = None,
    ) -> int:
        """Set PD gains from arrays aligned with ``joint_names`` (names of the source XML will do).

        Names that resolve to no joint are left out. Returns how many were set; RuntimeError without a PD controller.
        """
        if not isinstance(self.controller, URLabPDController):
            raise RuntimeError(f"{self.prefix!r} has no PD controller to take gains")
        live = [self.resolve_joint(name) for name in joint_names]
        columns = (stiffness, damping, torque_limit)
        self.controller.set_gains(*(None if column is None else _by_name(live, column) for column in columns))
        return sum(name is not None for name in live)

    def resolve_joint(self, name: str) -> str | None:
        """The live joint of a name: as it is, by its name in the source XML, or without ``_joint``."""
        return self._resolve(name, self.joints, self._original_names.get("joints") or {})

    def resolve_actuator(self, name: str) -> str | None:
        """The live actuator of a name: as it is, by its name in the source XML, or without ``_joint``."""
        return self._resolve(name, self.actuators, self._original_names.get("actuators") or {})

    def seed_ctrl(self, setpoints: Sequence[float]) -> None:
        """Take the setpoints that are in force on the server; a list of another length than ours is left out."""
        if len(setpoints) == len(self._ctrl):
            self._ctrl[:] = setpoints
            self._stepped_ctrl = self._ctrl.tolist()

    def write_ctrl(self, data: mujoco.MjData, *, changed_only: bool = False) -> None:
        """Put the setpoints into local data, or only if they changed since the last step."""
        ctrl: list[float] = self._ctrl.tolist()
        if not changed_only or ctrl != self._stepped_ctrl:
            data.ctrl[self._ctrl_ids] = ctrl
        self._stepped_ctrl = ctrl

    @property
    def has_news(self) -> bool:
        """Whether there are setpoints or wrenches that no step has sent yet."""
        return bool(self._pending_xfrc) or self._ctrl.tolist() != self._stepped_ctrl

    def command(self) -> Tree:
        """This articulation's part of a step request; the pending wrenches go with it."""
        command: Tree = {"control_mode": self._control_word}
        if self.actuators:
            command["ctrl"] = self._stepped_ctrl = self._ctrl.tolist()
        if self._pending_xfrc:
            command["xfrc_applied"] = self._take_xfrc()
        return command

    def _reported(self, key: str) -> Sequence[float] | None:
        """The root's xpos, xquat or qvel out of the last reply: of its free joint, or of its body at level full."""
        if self.has_free_base and key in _FREE_SPANS:
            field, span = _FREE_SPANS[key]
            first = self.root_local[0 if field == "qpos" else 1]
            numbers: Sequence[float] = getattr(self.observed, field)[span.start + first : span.stop + first]
            return numbers or None
        return self.observed.bodies.get(self._root_body, {}).get(key)

    @property
    def _root_body(self) -> str:
        return next((name for name, body in self.bodies.items() if body.id == self.body_id), "")

    def _model_id(self, kind: str, name: str) -> int | None:
        model = self._client._model if self._client is not None else None
        if model is None:
            return self._part_id(kind, name)
        ids = (int(mujoco.mj_name2id(model, _KINDS[kind], full)) for full in (f"{self.prefix}_{name}", name))
        return next((found for found in ids if found >= 0), None)

    def _part_id(self, kind: str, name: str) -> int | None:
        tables: dict[str, Mapping[str, Joint | Actuator | Sensor | Body]] = {
            "joint": self.joints,
            "actuator": self.actuators,
            "sensor": self.sensors,
            "body": self.bodies,
        }
        part = tables.get(kind, {}).get(name.removeprefix(f"{self.prefix}_"))
        return None if part is None else int(part.id)

    def _known(self, kind: str, name: str, table: Mapping[str, Entry]) -> Entry:
        if name not in table:
            raise KeyError(f"{self.prefix!r} has no {kind} {name!r}; it has {', '.join(table) or 'none'}")
        return table[name]

    def _resolve(self, name: str, live: Mapping[str, object], original_of: Mapping[str, str]) -> str | None:
        short = name.removeprefix(f"{self.prefix}_")
        by_source = [mine for mine, original in original_of.items() if original == name]
        candidates = (name, short, *by_source, name.removesuffix("_joint"))
        return next((one for one in candidates if one in live), None)


def _without(values: Array, start: int, count: int) -> Array:
    """The values without those from ``start`` on."""
    return values[count:] if start == 0 else np.delete(values, slice(start, start + count))


def _index(spans: Sequence[tuple[int, int]]) -> Index:
    """The places of several (start, length) spans: a slice when they follow each other, else an index array."""
    places = [place for start, length in spans for place in range(start, start + length)]
    if places and places[-1] - places[0] + 1 == len(places) and sorted(places) == places:
        return slice(places[0], places[-1] + 1)
    return np.array(places, dtype=np.intp)


def _by_name(names: Sequence[str | None], values: Sequence[float]) -> dict[str, float]:
    return {name: float(value) for name, value in zip(names, values, strict=True) if name is not None}

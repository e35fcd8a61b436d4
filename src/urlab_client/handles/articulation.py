"""A robot: its parts by short name, its setpoints, and its state."""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import mujoco
import numpy as np
import numpy.typing as npt

from urlab_client.checks import finite, per_name
from urlab_client.enums import ControlMode, coerce
from urlab_client.errors import counted, unknown_name
from urlab_client.handles.camera import URLabCameraView
from urlab_client.handles.controller import URLabController, URLabPDController
from urlab_client.handles.entity import NO_ROOT, Array, Root, URLabEntity
from urlab_client.handles.observed import Observed, padded
from urlab_client.handles.parts import Actuator, Body, Joint, Sensor, renewed
from urlab_client.html import robot_html
from urlab_client.lookup import FixedTable, NamedTable
from urlab_wire.codec import Tree

if TYPE_CHECKING:
    from urlab_client.client import URLabClient


Index = slice | npt.NDArray[np.intp]
NamesByKind = Mapping[str, Mapping[str, str]]
"""By kind ("joints", "actuators"): live short name -> name in the source XML."""
Entry = TypeVar("Entry")

FREE_QPOS, FREE_QVEL = 7, 6
_FREE_SPANS = {"xpos": ("qpos", slice(0, 3)), "xquat": ("qpos", slice(3, 7)), "qvel": ("qvel", slice(0, 6))}


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
_COUNTS = {"geom": "ngeom", "site": "nsite", "camera": "ncam", "keyframe": "nkey"}
_NO_NAME = re.compile(r"actuator_\d+")
"""What the server calls an actuator that has no name in the model file."""


class SentSetpoints:
    """The setpoints of the last step. They stand apart because every step writes them, and setting a handle's own
    attributes takes a check."""

    __slots__ = ("ctrl",)

    def __init__(self) -> None:
        self.ctrl: list[float] = []


class URLabArticulation(URLabEntity):
    """One articulation, keyed by ``prefix``. Part tables are keyed by short name, in model id order.

    ``ctrl_array`` belongs to the caller: all of it goes out with every step. It begins with the setpoints that are
    in force on the server, and a reset or a handshake fills it with those that are in force then (of a keyframe, or
    zero; both as far as the server tells them); no step changes it. In puppet mode ``client.data`` leads:
    ``data.ctrl`` begins with the same setpoints, and before a local step ``ctrl_array`` is copied into it only if it
    changed since the last step, so that ``data.ctrl`` may be written instead. All other state is read on access from
    ``client.data`` or from the last reply, as fresh arrays: writing into them changes nothing.

    The handle and its parts stay good as `URLabEntity` says.
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
        self._observed = Observed()
        self._sent = SentSetpoints()
        self._ctrl: Array = np.zeros(0)
        self._own_control_mode = False
        self._controller = controller
        self._cameras: NamedTable[URLabCameraView] = FixedTable("camera", owner=prefix)
        self._original_names = original_names or {}
        self._use_control_mode(control_mode)
        self._actuators: NamedTable[Actuator] = FixedTable("actuator", owner=prefix)
        self._joints: NamedTable[Joint] = FixedTable("joint", owner=prefix)
        self._sensors: NamedTable[Sensor] = FixedTable("sensor", owner=prefix)
        self._bodies: NamedTable[Body] = FixedTable("body", owner=prefix)
        self.attach({}, {}, {}, {})

    def describe(
        self,
        actor_id: str,
        control_mode: str,
        controller: URLabController | None,
        original_names: NamesByKind,
        cameras: NamedTable[URLabCameraView],
        client: "URLabClient",
    ) -> None:
        """Become what a handshake says. A control mode that the caller chose stays."""
        self._renew(NO_ROOT, actor_id, client)
        self._observed.forget()
        if not self._own_control_mode:
            self._use_control_mode(control_mode)
        self._controller = controller
        self._original_names = original_names
        self._cameras = cameras

    def attach(
        self,
        actuators: Mapping[str, Actuator],
        joints: Mapping[str, Joint],
        sensors: Mapping[str, Sensor],
        bodies: Mapping[str, Body],
        root: Root = NO_ROOT,
        *,
        empty: str = "",
    ) -> None:
        """Take the parts that the compiled model has, with zero setpoints; ``empty`` says why there are none."""
        me = self._name
        aliases = unnamed_by_joint(actuators)
        self._actuators = FixedTable(
            "actuator", renewed(self._actuators, actuators), owner=me, aliases=aliases, empty=empty
        )
        self._joints = FixedTable("joint", renewed(self._joints, joints), owner=me, empty=empty)
        self._sensors = FixedTable("sensor", renewed(self._sensors, sensors), owner=me, empty=empty)
        self._bodies = FixedTable("body", renewed(self._bodies, bodies), owner=me, empty=empty)
        self._root = root
        local = {name: place for place, name in enumerate(actuators)}
        self._actuator_local = NamedTable("actuator", local, owner=me, aliases=aliases)
        if len(self._ctrl) != len(actuators):
            self._ctrl = np.zeros(len(actuators))
        self._ctrl[:] = 0.0
        self._sent.ctrl = self._ctrl.tolist()
        self._ctrl_ids = np.array([one.ctrl_id for one in actuators.values()], dtype=np.intp)
        self._qpos_index = _index([(one.qpos_offset, one.qpos_dim) for one in joints.values()])
        self._qvel_index = _index([(one.qvel_offset, one.qvel_dim) for one in joints.values()])

    def __repr__(self) -> str:
        parts = {"joint": len(self._joints), "actuator": len(self._actuators), "sensor": len(self._sensors)}
        counts = ", ".join(counted(count, kind) for kind, count in parts.items())
        words = [repr(self._name), counts, *(["free base"] if self.has_free_base else []), self._control_word]
        return f"URLabArticulation({', '.join([*words, *(['gone'] if self._gone else [])])})"

    def _repr_html_(self) -> str:
        return robot_html(self)

    @property
    def prefix(self) -> str:
        """The articulation's name: that of its MJCF model, with ``-2`` and so on for later ones of that name."""
        return self._name

    @property
    def controller(self) -> URLabController | None:
        """Its controller; None when setpoints go straight to the actuators."""
        return self._controller

    @property
    def actuators(self) -> NamedTable[Actuator]:
        """The actuators by short name. One that has no name in the model file answers to its joint's name as well."""
        return self._actuators

    @property
    def joints(self) -> NamedTable[Joint]:
        """The joints by short name, the free joint of the root included."""
        return self._joints

    @property
    def sensors(self) -> NamedTable[Sensor]:
        """The sensors by short name."""
        return self._sensors

    @property
    def bodies(self) -> NamedTable[Body]:
        """The bodies by short name."""
        return self._bodies

    @property
    def cameras(self) -> NamedTable[URLabCameraView]:
        """The articulation's own cameras by short name."""
        return self._cameras

    @property
    def observed(self) -> Observed:
        """What the last replies told, raw."""
        self._refuse_when_gone()
        return self._observed

    @property
    def control_mode(self) -> ControlMode:
        """What the setpoints mean: targets for the controller (ue_controller), or raw actuator signals (raw).

        It may be set, as a word or a member; the next step sends it.
        """
        return self._control_mode

    @control_mode.setter
    def control_mode(self, mode: str) -> None:
        self._use_control_mode(mode)
        self._own_control_mode = True

    def _use_control_mode(self, mode: str) -> None:
        self._control_mode = coerce(ControlMode, mode)
        self._control_word: str = self._control_mode.value

    @property
    def ctrl_array(self) -> Array:
        """The setpoint buffer, (n_actuators,) in actuator order: writing into it sets what the next step sends.

        Assigning an array, or one number for all, copies into it.
        """
        self._refuse_when_gone()
        return self._ctrl

    @ctrl_array.setter
    def ctrl_array(self, values: Sequence[float] | Array) -> None:
        self._refuse_when_gone()
        self._ctrl[:] = per_name(list(self.actuators), f"{self.prefix}.ctrl_array", values)

    @property
    def last_applied_ctrl(self) -> Array:
        """The ctrl that the server last applied, (n_actuators,), a read-only copy."""
        echo = padded(self.observed.ctrl, len(self.actuators))
        echo.flags.writeable = False
        return echo

    @property
    def act_array(self) -> Array:
        """Activations, (n_actuators,), a copy: the first of each, zero for actuators without one."""
        return padded(self.observed.act[: len(self.actuators)], len(self.actuators))

    @property
    def qpos_array(self) -> Array:
        """The articulation's qpos (nq,), dense, in joint order (metres, radians, quaternions w, x, y, z); a copy."""
        data = self._state
        return np.array(self.observed.qpos if data is None else data.qpos[self._qpos_index], dtype=np.float64)

    @property
    def qvel_array(self) -> Array:
        """The articulation's qvel (nv,), dense, in joint order (m/s, rad/s); a copy."""
        data = self._state
        return np.array(self.observed.qvel if data is None else data.qvel[self._qvel_index], dtype=np.float64)

    @property
    def dof_qpos(self) -> Array:
        """`qpos_array` without the seven numbers of a free root; a copy."""
        return _without(self.qpos_array, self._root.qpos_local, FREE_QPOS if self.has_free_base else 0)

    @property
    def dof_qvel(self) -> Array:
        """`qvel_array` without the six numbers of a free root; a copy."""
        return _without(self.qvel_array, self._root.qvel_local, FREE_QVEL if self.has_free_base else 0)

    @property
    def twist_linear(self) -> Array:
        """The commanded (vx, vy, 0), (3,) m/s; a copy."""
        return np.array(self.observed.twist["linear"], dtype=np.float64)

    @property
    def twist_angular(self) -> Array:
        """The commanded (0, 0, yaw rate), (3,) rad/s; a copy."""
        return np.array(self.observed.twist["angular"], dtype=np.float64)

    @property
    def twist(self) -> Array:
        """Linear and angular command, (6,) m/s and rad/s; a copy."""
        return np.concatenate([self.twist_linear, self.twist_angular])

    @property
    def actions(self) -> int:
        """The action bits that go with the twist."""
        return int(self.observed.actions)

    def set_ctrl(self, values: Mapping[str, float]) -> None:
        """Set some setpoints by actuator name; the others stay.

        An actuator without a name in the model file answers to the name of the joint that it drives.
        `URLabLookupError` (a KeyError) on an unknown name, ValueError on a number that is not finite; then nothing is
        changed.
        """
        self._refuse_when_gone()
        slots = [self._actuator_local[name] for name in values]
        self._ctrl[slots] = [finite(f"{self.prefix}: {name}", value) for name, value in values.items()]

    def get_ctrl(self) -> dict[str, float]:
        """The setpoint buffer by actuator name; a copy."""
        values = zip(self._actuators, self.ctrl_array.tolist(), strict=True)
        return NamedTable("actuator", values, owner=self._name, aliases=self._actuators.aliases)

    def get_qpos(self) -> dict[str, float]:
        """The first qpos component of every joint, by name; a copy."""
        qpos = self.qpos_array
        firsts = {name: float(qpos[joint.qpos_local_offset]) for name, joint in self._joints.items()}
        return NamedTable("joint", firsts, owner=self._name)

    def get_sensors(self) -> dict[str, Array]:
        """Every sensor's latest value, (dim,) each, copies; zeros before there is one."""
        values = self.observed.sensors
        latest = {name: padded(values.get(name, ()), sensor.dim) for name, sensor in self._sensors.items()}
        return NamedTable("sensor", latest, owner=self._name)

    def apply_xfrc(  # type: ignore[override]  # a robot has many bodies: the public API names one
        self, body: str, force: Sequence[float] = (0, 0, 0), torque: Sequence[float] = (0, 0, 0)
    ) -> None:
        """Put a wrench (N, N m, world frame) on a body for the next step. Inert in puppet mode."""
        self._buffer_xfrc(self._bodies[body].name, force, torque)

    def mj(self, kind: str, name: str) -> int:
        """The model id of an element by its name with or without the ``<prefix>_``; `URLabLookupError` without one.

        ``kind`` is joint, actuator, sensor, body, geom, site, camera or keyframe. Without a local model only the
        articulation's own joints, actuators, sensors and bodies are known.
        """
        if kind not in _KINDS:
            raise unknown_name("kind of element", kind, _KINDS)
        self._refuse_when_gone()
        found = self._model_id(kind, name)
        if found is None:
            raise unknown_name(kind, name, self._names(kind), owner=self._name)
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
            self._sent.ctrl = self._ctrl.tolist()

    def write_ctrl(self, data: mujoco.MjData, *, changed_only: bool = False) -> None:
        """Put the setpoints into local data, or only if they changed since the last step."""
        ctrl: list[float] = self._ctrl.tolist()
        if not changed_only or ctrl != self._sent.ctrl:
            data.ctrl[self._ctrl_ids] = ctrl
        self._sent.ctrl = ctrl

    @property
    def has_news(self) -> bool:
        """Whether there are setpoints or wrenches that no step has sent yet."""
        return bool(self._pending_xfrc) or self._ctrl.tolist() != self._sent.ctrl

    def command(self) -> Tree:
        """This articulation's part of a step request; the pending wrenches go with it."""
        command: Tree = {"control_mode": self._control_word}
        if self._actuators:
            command["ctrl"] = self._sent.ctrl = self._ctrl.tolist()
        if self._pending_xfrc:
            command["xfrc_applied"] = self._take_xfrc()
        return command

    def _reported(self, key: str) -> Sequence[float] | None:
        """The root's xpos, xquat or qvel out of the last reply: of its free joint, or of its body at level full."""
        if self.has_free_base and key in _FREE_SPANS:
            field, span = _FREE_SPANS[key]
            first = self._root.qpos_local if field == "qpos" else self._root.qvel_local
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
        part = self._parts(kind).get(name.removeprefix(f"{self.prefix}_"))
        return None if part is None else int(part.id)

    def _parts(self, kind: str) -> Mapping[str, Joint | Actuator | Sensor | Body]:
        tables: dict[str, Mapping[str, Joint | Actuator | Sensor | Body]] = {
            "joint": self._joints,
            "actuator": self._actuators,
            "sensor": self._sensors,
            "body": self._bodies,
        }
        return tables.get(kind, {})

    def _names(self, kind: str) -> list[str]:
        """The short names of the articulation's elements of a kind, as far as they are known here."""
        model = self._client._model if self._client is not None else None
        if model is None or kind in ("joint", "actuator", "sensor", "body"):
            return list(self._parts(kind))
        names = (mujoco.mj_id2name(model, _KINDS[kind], i) for i in range(getattr(model, _COUNTS[kind])))
        return [name.removeprefix(f"{self.prefix}_") for name in names if name and name.startswith(f"{self.prefix}_")]

    def _resolve(self, name: str, live: NamedTable[Entry], original_of: Mapping[str, str]) -> str | None:
        short = name.removeprefix(f"{self.prefix}_")
        by_source = [mine for mine, original in original_of.items() if original == name]
        by_joint = live.aliases.get(short)
        candidates = (name, short, *by_source, by_joint, name.removesuffix("_joint"))
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


def unnamed_by_joint(actuators: Mapping[str, Actuator]) -> dict[str, str]:
    """Joint -> the actuator that drives it, for actuators without a name of their own; not where several do."""
    driven = [one.joint for one in actuators.values()]
    return {
        one.joint: name
        for name, one in actuators.items()
        if one.joint and _NO_NAME.fullmatch(name) and one.joint not in actuators and driven.count(one.joint) == 1
    }


def _by_name(names: Sequence[str | None], values: Sequence[float]) -> dict[str, float]:
    return {name: float(value) for name, value in zip(names, values, strict=True) if name is not None}

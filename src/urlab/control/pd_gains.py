"""The params of a PD controller, checked and immutable: a patch gives new gains or an error, never half of it.

`gains_patch` reads such a patch from a streamed ``set_gains``.
"""

import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from urlab.compile.compiled_scene import ActuatorSlot
from urlab.errors import BadValue, ControllerSchemaViolation, did_you_mean, known
from urlab_wire.codec import DecodeError, decode

DEFAULTS: Mapping[str, float] = {"kp": 100.0, "kv": 5.0, "torque_limit": 200.0}
MAX_GAIN = float(np.finfo(np.float32).max)
"""The schema promises float32; holding values to it also keeps the law's float64 products finite."""

SCHEMA: Mapping[str, Mapping[str, Any]] = {
    **{gain: {"type": "per_joint", "dtype": "float32", "min": 0.0} for gain in DEFAULTS},
    **{f"default_{gain}": {"type": "scalar", "dtype": "float32", "min": 0.0} for gain in DEFAULTS},
}


@dataclass(frozen=True, slots=True)
class PDGains:
    """``by_joint[gain][i]`` belongs to ``joints[i]``, in SI units: of torque for hinges, of force for slides.

    ``position`` finds a joint by its short name, or by that of an actuator which drives it.
    """

    joints: tuple[str, ...]
    position: Mapping[str, int]
    defaults: Mapping[str, float]
    by_joint: Mapping[str, tuple[float, ...]]

    @classmethod
    def of(cls, actuators: tuple[ActuatorSlot, ...]) -> Self:
        """Default gains for the joints of these actuators, in actuator order."""
        driven = [(actuator.short, actuator.joint.short) for actuator in actuators if actuator.joint is not None]
        joints = tuple(dict.fromkeys(joint for _, joint in driven))
        own = {joint: i for i, joint in enumerate(joints)}
        aliases = {actuator: own[joint] for actuator, joint in driven}
        by_joint = {gain: (value,) * len(joints) for gain, value in DEFAULTS.items()}
        return cls(joints, aliases | own, dict(DEFAULTS), by_joint)

    def params(self) -> dict[str, Any]:
        """As the wire shows them: three maps keyed by joint, and the three defaults."""
        maps = {gain: dict(zip(self.joints, values, strict=True)) for gain, values in self.by_joint.items()}
        return {**maps, **{f"default_{gain}": value for gain, value in self.defaults.items()}}

    def patched(self, patch: Mapping[str, Any]) -> Self:
        """These gains with ``patch`` on top. A new default goes to every joint that the patch does not name."""
        if not isinstance(patch, Mapping):
            raise ControllerSchemaViolation(f"params is {reprlib.repr(patch)}, expected a map; fields: {known(SCHEMA)}")
        for field in patch:
            if field not in SCHEMA:
                hint = did_you_mean(str(field), SCHEMA)
                raise ControllerSchemaViolation(f"unknown param {field!r}{hint}; the params are {known(SCHEMA)}")
        defaults = {gain: self._default(gain, patch) for gain in DEFAULTS}
        by_joint = {gain: self._values(gain, patch) for gain in DEFAULTS}
        return replace(self, defaults=defaults, by_joint=by_joint)

    def _default(self, gain: str, patch: Mapping[str, Any]) -> float:
        value = patch.get(f"default_{gain}")
        return self.defaults[gain] if value is None else _amount(f"default_{gain}", value)

    def _values(self, gain: str, patch: Mapping[str, Any]) -> tuple[float, ...]:
        values = list(self.by_joint[gain])
        if patch.get(f"default_{gain}") is not None:
            values = [self._default(gain, patch)] * len(values)
        for joint, value in self._named(gain, patch.get(gain)).items():
            values[joint] = value
        return tuple(values)

    def _named(self, gain: str, entries: Any) -> dict[int, float]:
        """Joint position -> value, of one map of the patch."""
        if entries is None:
            return {}
        if not isinstance(entries, Mapping):
            raise ControllerSchemaViolation(
                f"{gain} is {reprlib.repr(entries)}, expected a map by joint; joints: {known(self.joints)}"
            )
        named: dict[int, float] = {}
        for name, value in entries.items():
            joint = self._find(gain, name)
            if joint in named:
                raise ControllerSchemaViolation(f"{gain} names joint {self.joints[joint]!r} twice, once as {name!r}")
            named[joint] = _amount(f"{gain}[{name!r}]", value)
        return named

    def _find(self, gain: str, name: Any) -> int:
        joint = self.position.get(name) if isinstance(name, str) else None
        if joint is None:
            hint = did_you_mean(str(name), self.position)
            raise ControllerSchemaViolation(
                f"{gain}: no joint {name!r} under this controller{hint}; joints: {known(self.joints)}"
            )
        return joint


def _amount(field: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_GAIN:
        raise ControllerSchemaViolation(f"{field} is {reprlib.repr(value)}, expected a number from 0 to {MAX_GAIN:.3g}")
    return float(value)


def gains_patch(payload: bytes) -> dict[str, dict[str, Any]]:
    """Turn ``{joint: {"kp": .., "kv": .., "torque_limit": ..}}`` (UTF-8 JSON) into ``{"kp": {joint: ..}, ...}``.

    Joints and values are the controller's to judge; a payload of another shape raises `BadValue`.
    """
    patch: dict[str, dict[str, Any]] = {}
    for joint, gains in _decoded(payload).items():
        if not isinstance(gains, dict):
            raise BadValue(f"set_gains[{joint!r}] is {gains!r}, expected an object with {known(DEFAULTS)}")
        for gain, value in gains.items():
            if gain not in DEFAULTS:
                raise BadValue(f"set_gains[{joint!r}] has no {gain!r}; the gains are {known(DEFAULTS)}")
            patch.setdefault(gain, {})[joint] = value
    return patch


def _decoded(payload: bytes) -> dict[str, Any]:
    try:
        return decode(payload)
    except DecodeError as error:
        raise BadValue(f"set_gains takes a JSON object of joints: {error}") from error

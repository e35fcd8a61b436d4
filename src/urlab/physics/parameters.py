"""The parameters of a compiled model that may be changed while it runs: what they are called, and where they are.

A change is plain data (`ModelChange`: kind, name, field, value). `ModelParameters` checks changes and turns them into
writes of MuJoCo's own arrays (`ModelWrite`), which fit one MjModel as well as the fields that a batch has for each
simulation: ``getattr(model, array).reshape(-1)[start : start + len(values)]``, ``opt.gravity`` being an option's.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from urlab.errors import BadValue, DimMismatch, did_you_mean, known
from urlab.mujoco_versions import ACTUATOR_COUNT
from urlab.numbers import finite_numbers
from urlab.physics.queries import compiled_name
from urlab_wire.ops.stepping import ModelChange, ModelWrite

Values = NDArray[np.float64]
Check = Callable[[str, Values], None]

_SMALLEST = 1e-10
_FREE = int(mujoco.mjtJoint.mjJNT_FREE)
_SKYBOX = int(mujoco.mjtTexture.mjTEXTURE_SKYBOX)
_COLOUR_ROLES = (int(mujoco.mjtTextureRole.mjTEXROLE_RGB), int(mujoco.mjtTextureRole.mjTEXROLE_RGBA))
_AFFINE = int(mujoco.mjtBias.mjBIAS_AFFINE)
_FIXED = int(mujoco.mjtGain.mjGAIN_FIXED)


def _finite(what: str, values: Values) -> None:
    """Every finite number will do: `_numbers` has seen to that."""


def _at_least_zero(what: str, values: Values) -> None:
    if (values < 0).any():
        raise BadValue(f"{what} must not be negative, but is {_stated(values)}")


def _above_zero(what: str, values: Values) -> None:
    if (values < _SMALLEST).any():
        raise BadValue(f"{what} must be above zero, but is {_stated(values)}")


def _share(what: str, values: Values) -> None:
    if (values < 0).any() or (values > 1).any():
        raise BadValue(f"{what} is within 0 and 1, but is {_stated(values)}")


def _inertia(what: str, values: Values) -> None:
    _above_zero(what, values)
    small, middle, large = sorted(values.tolist())
    if small + middle < large * (1 - 1e-9):
        raise BadValue(
            f"{what} is of no body: each of its numbers is at most the sum of the others, not {_stated(values)}"
        )


def _direction(what: str, values: Values) -> None:
    if np.linalg.norm(values) < _SMALLEST:
        raise BadValue(f"{what} must not be all zeros")


def _angle(what: str, values: Values) -> None:
    if not 0 < values[0] < 180:
        raise BadValue(f"{what} is between 0 and 180 degrees, but is {_stated(values)}")


def _ordered(what: str, values: Values) -> None:
    if values[0] > values[1]:
        raise BadValue(f"{what} is a low and a high number, but is {_stated(values)}")


_LIMITS: Mapping[Check, tuple[float, float]] = {_share: (0.0, 1.0), _at_least_zero: (0.0, np.inf)}


@dataclass(frozen=True, slots=True)
class ModelField:
    """One field of one kind of element: its array, and which of the numbers in an element's row it is.

    ``width`` None takes a whole row. ``fewest`` is how many numbers may be given: those that are left out stay.
    ``per_dof`` says that rows are those of a joint's degrees of freedom, which all get the same number.
    """

    array: str
    check: Check = _finite
    start: int = 0
    width: int | None = None
    fewest: int | None = None
    unit: bool = False
    per_dof: bool = False


FIELDS: Mapping[str, Mapping[str, ModelField]] = {
    "body": {
        "mass": ModelField("body_mass", _above_zero),
        "inertia": ModelField("body_inertia", _inertia),
        "density_scale": ModelField("body_mass", _above_zero),
        "pos": ModelField("body_pos"),
        "quat": ModelField("body_quat", _direction, unit=True),
    },
    "geom": {
        "friction": ModelField("geom_friction", _at_least_zero, fewest=1),
        "rgba": ModelField("geom_rgba", _share, fewest=3),
        "solref": ModelField("geom_solref"),
        "solimp": ModelField("geom_solimp", _at_least_zero),
        "margin": ModelField("geom_margin", _at_least_zero),
    },
    "joint": {
        "damping": ModelField("dof_damping", _at_least_zero, per_dof=True),
        "armature": ModelField("dof_armature", _at_least_zero, per_dof=True),
        "frictionloss": ModelField("dof_frictionloss", _at_least_zero, per_dof=True),
        "stiffness": ModelField("jnt_stiffness", _at_least_zero),
    },
    "actuator": {
        "kp": ModelField("actuator_gainprm", _at_least_zero, width=1),
        "kv": ModelField("actuator_biasprm", _at_least_zero, start=2, width=1),
        "gain": ModelField("actuator_gainprm", fewest=1),
        "bias": ModelField("actuator_biasprm", fewest=1),
        "gear": ModelField("actuator_gear", fewest=1),
        "forcerange": ModelField("actuator_forcerange", _ordered),
    },
    "tendon": {
        "damping": ModelField("tendon_damping", _at_least_zero),
        "stiffness": ModelField("tendon_stiffness", _at_least_zero),
        "frictionloss": ModelField("tendon_frictionloss", _at_least_zero),
        "armature": ModelField("tendon_armature", _at_least_zero),
    },
    "light": {
        "pos": ModelField("light_pos"),
        "dir": ModelField("light_dir", _direction, unit=True),
        "ambient": ModelField("light_ambient", _share),
        "diffuse": ModelField("light_diffuse", _share),
        "specular": ModelField("light_specular", _share),
        "active": ModelField("light_active", _share),
        "castshadow": ModelField("light_castshadow", _share),
    },
    "material": {
        "rgba": ModelField("mat_rgba", _share, fewest=3),
        "emission": ModelField("mat_emission", _at_least_zero),
        "specular": ModelField("mat_specular", _share),
        "shininess": ModelField("mat_shininess", _share),
        "reflectance": ModelField("mat_reflectance", _share),
        "texrepeat": ModelField("mat_texrepeat", _above_zero),
        "texture": ModelField("mat_texid", width=1),
    },
    "camera": {
        "pos": ModelField("cam_pos"),
        "quat": ModelField("cam_quat", _direction, unit=True),
        "fovy": ModelField("cam_fovy", _angle),
        "intrinsic": ModelField("cam_intrinsic"),
    },
    "option": {
        "gravity": ModelField("opt.gravity"),
        "wind": ModelField("opt.wind"),
        "density": ModelField("opt.density", _at_least_zero),
        "viscosity": ModelField("opt.viscosity", _at_least_zero),
    },
}
"""By kind, then by field. ``density_scale`` is a factor on the compiled mass and inertia, ``texture`` is a name."""

DERIVED_FROM = frozenset({
    "body_mass", "body_inertia", "body_pos", "body_quat", "dof_armature", "actuator_gear", "tendon_stiffness",
    "tendon_damping", "tendon_armature", "cam_pos", "cam_quat", "light_pos", "light_dir", "geom_margin",
})  # fmt: skip
"""The arrays above on which other constants of a model depend: after a change of these, mj_setConst is due."""

_COUNTS = {
    "body": ("nbody", mujoco.mjtObj.mjOBJ_BODY),
    "geom": ("ngeom", mujoco.mjtObj.mjOBJ_GEOM),
    "joint": ("njnt", mujoco.mjtObj.mjOBJ_JOINT),
    "actuator": (ACTUATOR_COUNT, mujoco.mjtObj.mjOBJ_ACTUATOR),
    "tendon": ("ntendon", mujoco.mjtObj.mjOBJ_TENDON),
    "light": ("nlight", mujoco.mjtObj.mjOBJ_LIGHT),
    "material": ("nmat", mujoco.mjtObj.mjOBJ_MATERIAL),
    "camera": ("ncam", mujoco.mjtObj.mjOBJ_CAMERA),
}


class ModelParameters:
    """The parameters of one model as it was compiled; it is only read, here and before any of them is changed.

    A name may be compiled, or short where one of ``prefixes`` makes it the name of one element.
    """

    def __init__(self, model: Any, prefixes: Iterable[str] = ()) -> None:
        self._model = model
        self._prefixes = tuple(prefixes)
        self._ids = {kind: _ids(model, *where) for kind, where in _COUNTS.items()}
        textures = _ids(model, "ntex", mujoco.mjtObj.mjOBJ_TEXTURE)
        self._textures = {name: one for name, one in textures.items() if int(model.tex_type[one]) != _SKYBOX}
        arrays = {field.array for fields in FIELDS.values() for field in fields.values()}
        self._compiled = {name: array_of(model, name).copy() for name in sorted(arrays)}

    def names(self, kind: str, field: str) -> Sequence[str]:
        """The compiled names of all elements of a kind, in id order."""
        self._field(kind, field)
        return tuple(self._ids.get(kind, ("",)))

    def find(self, kind: str, name: str, field: str) -> str:
        """The compiled name that ``name`` means, of a texture too; BadValue lists those that exist."""
        if kind == "texture":
            return compiled_name("texture for a material", name, self._textures, self._prefixes, BadValue)
        self._field(kind, field)
        if kind == "option":
            if name:
                raise BadValue(f"an option has no name, and not {name!r}: there is one of each")
            return ""
        return compiled_name(kind, name, self._ids[kind], self._prefixes, BadValue)

    def width(self, kind: str, name: str, field: str) -> tuple[int, int]:
        """The fewest and the most numbers that a field of an element takes, by its compiled name."""
        found, element = self._field(kind, field), self._element(kind, name)
        self._refuse(kind, field, element, name)
        most = self._place(found, element)[1]
        return (most if found.fewest is None else found.fewest), most

    def limits(self, kind: str, name: str, field: str) -> tuple[float, float]:  # noqa: ARG002 - the same for all
        """Between what the numbers of a field are kept when they are drawn: shares within 0 and 1, many from 0 on."""
        return _LIMITS.get(self._field(kind, field).check, (-np.inf, np.inf))

    def value(self, kind: str, name: str, field: str) -> list[float]:
        """The numbers that a field of an element was compiled with, by its compiled name."""
        found, element = self._field(kind, field), self._element(kind, name)
        if field == "density_scale":
            return [1.0]
        start, width = self._place(found, element)
        numbers: list[float] = self._compiled[found.array].reshape(-1)[start : start + width].astype(float).tolist()
        return [-numbers[0]] if (kind, field) == ("actuator", "kv") else numbers

    def checked(self, change: ModelChange) -> ModelChange:
        """The change with its compiled name and its numbers as a list; BadValue or DimMismatch says what is wrong."""
        found, name = self._field(change.kind, change.field), self.find(change.kind, change.name, change.field)
        what = f"{change.field} of {change.kind} {name!r}" if name else change.field
        if (change.kind, change.field) == ("material", "texture"):
            if not isinstance(change.value, str):
                raise BadValue(f"{what} is the name of a texture, not {change.value!r}")
            texture = self.find("texture", change.value, change.field)
            return ModelChange(kind=change.kind, name=name, field=change.field, value=texture)
        values = _numbers(what, change.value)
        fewest, width = self.width(change.kind, name, change.field)
        if not fewest <= len(values) <= width:
            wanted = f"{width}" if fewest == width else f"{fewest} to {width}"
            raise DimMismatch(f"{what} takes {wanted} number{'s' * (wanted != '1')}, but has {len(values)}")
        found.check(what, values)
        if found.unit:
            values = values / np.linalg.norm(values)
        return ModelChange(kind=change.kind, name=name, field=change.field, value=values.tolist())

    def writes(self, changes: Iterable[ModelChange]) -> list[ModelWrite]:
        """What `checked` changes mean for MuJoCo's arrays, in their order."""
        return [write for change in changes for write in self._writes(change)]

    def _writes(self, change: ModelChange) -> Iterable[ModelWrite]:
        found, element, values = (
            self._field(change.kind, change.field),
            self._element(change.kind, change.name),
            change.value,
        )
        start, _ = self._place(found, element)
        match change.kind, change.field:
            case "body", "density_scale":
                for array in ("body_mass", "body_inertia"):
                    row = self._compiled[array].reshape(self._model.nbody, -1)[element] * values[0]
                    yield ModelWrite(array=array, start=element * len(row), values=row.tolist())
            case "actuator", "kp":
                yield ModelWrite(array=found.array, start=start, values=values)
                yield ModelWrite(array="actuator_biasprm", start=start + 1, values=[-values[0]])
            case "actuator", "kv":
                yield ModelWrite(array=found.array, start=start, values=[-values[0]])
                if self._is_velocity_servo(element):
                    yield ModelWrite(array="actuator_gainprm", start=start - 2, values=values)
            case "material", "texture":
                roles = self._compiled[found.array][element]
                role = next((one for one in _COLOUR_ROLES if roles[one] >= 0), _COLOUR_ROLES[0])
                yield ModelWrite(array=found.array, start=start + role, values=[self._textures[values]])
            case _ if found.per_dof:
                yield ModelWrite(array=found.array, start=start, values=values * self._dofs(element)[1])
            case _:
                yield ModelWrite(array=found.array, start=start, values=values)

    # -- places ---------------------------------------------------------------------------------------------------

    def _fields(self, kind: str) -> Mapping[str, ModelField]:
        found = FIELDS.get(kind)
        if found is None:
            raise BadValue(f"there is no kind {kind!r}{did_you_mean(kind, FIELDS)}; there are: {known(FIELDS)}")
        return found

    def _field(self, kind: str, field: str) -> ModelField:
        fields = self._fields(kind)
        found = fields.get(field)
        if found is None:
            hint = did_you_mean(field, fields)
            raise BadValue(f"{kind} has no field {field!r} that can be changed{hint}; there are: {known(fields)}")
        return found

    def _element(self, kind: str, name: str) -> int:
        return 0 if kind == "option" else self._ids[kind][name]

    def _dofs(self, joint: int) -> tuple[int, int]:
        kind = int(self._model.jnt_type[joint])
        return int(self._model.jnt_dofadr[joint]), {0: 6, 1: 3}.get(kind, 1)

    def _place(self, field: ModelField, element: int) -> tuple[int, int]:
        """Where the numbers begin in the flat array, and how many there are."""
        array = self._compiled[field.array]
        if field.array.startswith("opt."):
            return 0, int(array.size)
        if field.per_dof:
            return self._dofs(element)[0], 1
        row = int(array[0].size)
        return element * row + field.start, row - field.start if field.width is None else field.width

    def _is_velocity_servo(self, actuator: int) -> bool:
        gain, bias = self._compiled["actuator_gainprm"][actuator], self._compiled["actuator_biasprm"][actuator]
        return bool(bias[1] == 0 and gain[0] == -bias[2])

    def _refuse(self, kind: str, field: str, element: int, name: str) -> None:
        """BadValue for what would have no effect on this element, or not the one that its name promises."""
        model = self._model
        if kind == "body":
            self._refuse_body(field, element, name)
        elif kind == "camera":
            by_lens = bool(model.cam_sensorsize[element, 1] > 0)
            if (field == "fovy" and by_lens) or (field == "intrinsic" and not by_lens):
                other = "intrinsic" if by_lens else "fovy"
                raise BadValue(f"{field} of camera {name!r} has no effect: its lens is given by {other}")
        elif kind == "actuator" and field in ("kp", "kv"):
            self._refuse_servo(field, element, name)
        elif kind == "actuator" and field == "forcerange" and not model.actuator_forcelimited[element]:
            raise BadValue(f"forcerange of actuator {name!r} has no effect: its force is not limited")

    def _refuse_body(self, field: str, body: int, name: str) -> None:
        model = self._model
        if field in ("pos", "quat"):
            joint = int(model.body_jntadr[body])
            if joint >= 0 and int(model.jnt_type[joint]) == _FREE:
                raise BadValue(
                    f"body {name!r} is free, and {field} of its frame has no effect: use kind 'object', or set_qpos"
                )
            if body == 0:
                raise BadValue("the world has no place of its own")
        elif model.body_weldid[body] == 0 or model.body_mass[body] == 0:
            why = "it has no mass of its own" if model.body_weldid[body] else "it is fixed to the world"
            raise BadValue(f"{field} of body {name!r} has no effect: {why}")

    def _refuse_servo(self, field: str, actuator: int, name: str) -> None:
        model = self._model
        bias = self._compiled["actuator_biasprm"][actuator]
        servo = int(model.actuator_gaintype[actuator]) == _FIXED and int(model.actuator_biastype[actuator]) == _AFFINE
        position = servo and bias[1] == -self._compiled["actuator_gainprm"][actuator][0] and bias[1] != 0
        if not (position or (field == "kv" and servo and self._is_velocity_servo(actuator))):
            raise BadValue(f"actuator {name!r} has no {field}: it is no servo of that kind; use gain and bias")


def array_of(model: Any, name: str) -> NDArray[Any]:
    """An array of a model, or one of its options (``opt.gravity``); a single number is an array of one, a copy."""
    if name.startswith("opt."):
        return np.atleast_1d(np.asarray(getattr(model.opt, name.removeprefix("opt."))))
    found: NDArray[Any] = getattr(model, name)
    return found


def write_model(model: Any, writes: Iterable[ModelWrite]) -> None:
    """Write into the arrays of a model; the constants that depend on them are left as they are."""
    for write in writes:
        option = write.array.removeprefix("opt.")
        if option != write.array and len(write.values) == 1:
            setattr(model.opt, option, write.values[0])
        else:
            array_of(model, write.array).reshape(-1)[write.start : write.start + len(write.values)] = write.values


def _ids(model: Any, count: str, kind: mujoco.mjtObj) -> dict[str, int]:
    names = [mujoco.mj_id2name(model, kind, index) for index in range(int(getattr(model, count)))]
    return {name: index for index, name in enumerate(names) if name}


def _numbers(what: str, value: Any) -> Values:
    if isinstance(value, bool | int | float):
        return finite_numbers(what, [float(value)])
    if not isinstance(value, list | tuple) or any(isinstance(one, bool | str) for one in value):
        raise BadValue(f"{what} takes numbers, not {value!r}")
    return finite_numbers(what, value)


def _stated(values: Values) -> str:
    return str(values.tolist() if len(values) > 1 else float(values[0]))

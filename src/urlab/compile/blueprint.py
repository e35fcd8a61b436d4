"""A model file, parsed and made ready to be placed in a scene any number of times."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import mujoco

from urlab.compile.urdf import MUJOCO_ERRORS, leave_out_unusable_visuals, read_urdf, with_remedy
from urlab.errors import ImportFailed, known
from urlab.mujoco_versions import discard_visual, fuse_static
from urlab.physics.engine import mujoco_warnings
from urlab.scene.blueprint_record import BlueprintRecord
from urlab.scene.names import legal_name
from urlab.scene.sidecar import ActuatorConfig, Sidecar, read_sidecar, sidecar_path
from urlab_wire.enums import ActuatorType

__all__ = [
    "MUJOCO_ERRORS", "Blueprint", "ParsedModel", "compile_spec", "load_blueprint", "model_name_of", "name_the_unnamed",
    "parse_model",
]  # fmt: skip

_MOVING = (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE, mujoco.mjtJoint.mjJNT_BALL)
_UNNAMED_MODEL = "MuJoCo Model"

_KEY_FIELDS = ("qpos", "qvel", "act", "ctrl", "mpos", "mquat")

_NAMED_KINDS = (
    ("body", "bodies"), ("geom", "geoms"), ("site", "sites"), ("camera", "cameras"), ("light", "lights"),
    ("actuator", "actuators"), ("sensor", "sensors"), ("tendon", "tendons"), ("equality", "equalities"),
    ("key", "keys"), ("pair", "pairs"), ("exclude", "excludes"),
)  # fmt: skip


@dataclass(frozen=True)
class Blueprint:
    """``spec`` is a template: it is copied, never changed. ``model_name`` is a legal prefix."""

    record: BlueprintRecord
    model_name: str
    spec: Any
    sidecar: Sidecar
    is_articulation: bool
    notes: tuple[str, ...] = ()
    """What of the file could not be used."""

    @property
    def path(self) -> Path:
        """Its model file."""
        return self.record.file


def load_blueprint(record: BlueprintRecord, config: Mapping[str, Any] | None = None) -> Blueprint:
    """Parse a model file, once, and its sidecar; ImportFailed carries MuJoCo's own words.

    ``config`` replaces fields of the sidecar. The parsed spec itself is compiled, alone, as a check, and the blueprint
    gets a copy made before that: compiling changes a spec, and a copy silently leaves out elements that refer to what
    does not exist, where MuJoCo refuses the file.
    """
    path = record.file
    sidecar = read_sidecar(path, config or {})
    try:
        with mujoco_warnings() as said:
            parsed, notes = _load(path, sidecar)
        notes += said
        spec = parsed.copy()
        model, _ = compile_spec(parsed)
        if _key_sizes(parsed) != _key_sizes(spec):
            spec = parsed.copy()  # keyframes of models that the file itself attaches get their numbers by compiling
    except MUJOCO_ERRORS as refused:
        raise ImportFailed(f"{path}: {with_remedy(str(refused))}") from refused
    _refuse_unknown(path, "camera", sidecar.cameras, [camera.name for camera in spec.cameras])
    _refuse_unknown(path, "body", sidecar.semantic_bodies, [body.name for body in spec.bodies])
    is_articulation = bool(spec.actuators) or any(joint.type in _MOVING for joint in spec.joints)
    for index, skin in enumerate(spec.skins):
        if skin.file and (not is_articulation or _bones(model, index)[0] == 0):
            _take_from_file(skin, model, index)
    return Blueprint(record, _model_name(spec, path), spec, sidecar, is_articulation, tuple(notes))


def _bones(model: Any, skin: int) -> list[int]:
    """The bodies that carry a skin, ascending; 0 is the world."""
    start = int(model.skin_boneadr[skin])
    return sorted(model.skin_bonebodyid[start : start + int(model.skin_bonenum[skin])].tolist())


def _take_from_file(skin: Any, model: Any, index: int) -> None:
    """Write into the spec what the skin's file says: a file names bodies, and these will be called otherwise."""
    bones = range(int(model.skin_boneadr[index]), int(model.skin_boneadr[index] + model.skin_bonenum[index]))
    spans = [slice(int(model.skin_bonevertadr[one]), int(model.skin_bonevertadr[one] + model.skin_bonevertnum[one]))
             for one in bones]  # fmt: skip
    skin.file = ""
    skin.vert = _part(model.skin_vert, model.skin_vertadr[index], model.skin_vertnum[index])
    skin.face = _part(model.skin_face, model.skin_faceadr[index], model.skin_facenum[index])
    if int(model.skin_texcoordadr[index]) >= 0:
        skin.texcoord = _part(model.skin_texcoord, model.skin_texcoordadr[index], model.skin_vertnum[index])
    skin.bodyname = [model.body(int(model.skin_bonebodyid[one])).name for one in bones]
    skin.bindpos = _part(model.skin_bonebindpos, bones.start, len(bones))
    skin.bindquat = _part(model.skin_bonebindquat, bones.start, len(bones))
    skin.vertid = [model.skin_bonevertid[span].tolist() for span in spans]
    skin.vertweight = [model.skin_bonevertweight[span].tolist() for span in spans]


def _part(array: Any, start: int, count: int) -> list[Any]:
    numbers: list[Any] = array[int(start) : int(start) + int(count)].ravel().tolist()
    return numbers


def _key_sizes(spec: Any) -> list[tuple[int, ...]]:
    return [tuple(len(getattr(key, name)) for name in _KEY_FIELDS) for key in spec.keys]


def _refuse_unknown(path: Path, kind: str, named: Iterable[str], existing: Sequence[str]) -> None:
    """A sidecar that speaks of what the model does not have is a mistake, not a wish."""
    for name in named:
        if name not in existing:
            raise ImportFailed(f"the sidecar of {path} names the {kind} {name!r}; the model has: {known(existing)}")


def _load(path: Path, sidecar: Sidecar) -> tuple[Any, list[str]]:
    spec, is_urdf, notes = parse_model(path)
    _settle(spec)
    if sidecar.free_joint:
        _free_root(spec, path)
    elif is_urdf and sidecar.free_joint is None:
        notes += _fixed_root(spec, path)
    for config in sidecar.actuators:
        _add_actuator(spec, config, path)
    name_the_unnamed(spec)
    return spec, notes


def compile_spec(spec: Any) -> tuple[Any, list[str]]:
    """Compile; what MuJoCo warns of comes back as text."""
    with mujoco_warnings() as said:
        model = spec.compile()
    return model, said


def model_name_of(path: Path) -> str:
    """The prefix that a model file asks for; it is parsed, but not compiled."""
    try:
        with mujoco_warnings():  # they are told when the model is loaded
            spec = read_urdf(path)
            return _model_name(mujoco.MjSpec.from_file(str(path)) if spec is None else spec, path)
    except MUJOCO_ERRORS as refused:
        raise ImportFailed(f"{path}: {refused}") from refused


def _model_name(spec: Any, path: Path) -> str:
    authored = "" if spec.modelname == _UNNAMED_MODEL else spec.modelname
    return legal_name(authored or path.stem)


class ParsedModel(NamedTuple):
    """A model file as MuJoCo parses it. ``notes`` say what had to be left out."""

    spec: Any
    is_urdf: bool
    notes: list[str]


def parse_model(path: Path) -> ParsedModel:
    """Parse a model file. Of a URDF visuals and fixed links are kept, unless the author wants otherwise."""
    spec = read_urdf(path)
    if spec is None:
        return ParsedModel(mujoco.MjSpec.from_file(str(path)), is_urdf=False, notes=[])
    return ParsedModel(spec, is_urdf=True, notes=leave_out_unusable_visuals(spec))


def _settle(spec: Any) -> None:
    """Do here, to this model alone, what its author asks of the compiler and what would act on a whole scene."""
    for _ in range(len(spec.keys), spec.nkey):
        spec.add_key()
    spec.nkey = 0
    if spec.compiler.discardvisual:
        discard_visual(spec)
        spec.compiler.discardvisual = False
    if spec.compiler.fusestatic:
        fuse_static(spec)
        spec.compiler.fusestatic = False


def _fixed_roots(spec: Any) -> list[Any]:
    """The bodies that stand on the world without a joint."""
    return [body for body in spec.worldbody.bodies if body.parent == spec.worldbody and not body.joints]


def _free_root(spec: Any, path: Path) -> None:
    """Let the model's root move freely, as the sidecar asks."""
    roots = _fixed_roots(spec)
    if len(roots) != 1:
        raise ImportFailed(
            f"{path}: free_joint is for a model with one body that is fixed to the world; it has: "
            f"{known(body.name for body in roots)}"
        )
    roots[0].add_freejoint()


def _fixed_root(spec: Any, path: Path) -> list[str]:
    """A URDF does not say whether its root is free: what became of one that has a mass."""
    sidecar = sidecar_path(path).name
    return [
        f"its root link {body.name!r} is fixed to the world, as a URDF is read by MuJoCo; "
        f"free_joint = true in {sidecar} lets it move freely, false ends this note"
        for body in _fixed_roots(spec)
        if body.explicitinertial and body.mass > 0
    ]


def _add_actuator(spec: Any, config: ActuatorConfig, path: Path) -> None:
    if spec.joint(config.joint) is None:
        raise ImportFailed(f"{path}: actuator {config.name!r} drives joint {config.joint!r}, which does not exist")
    actuator = spec.add_actuator(name=config.name, trntype=mujoco.mjtTrn.mjTRN_JOINT, target=config.joint)
    actuator.gear[0] = config.gear
    _set_kind(actuator, config)
    if config.ctrlrange is not None:
        actuator.ctrlrange[:] = config.ctrlrange
        actuator.ctrllimited = mujoco.mjtLimited.mjLIMITED_TRUE
    if config.forcerange is not None:
        actuator.forcerange[:] = config.forcerange
        actuator.forcelimited = mujoco.mjtLimited.mjLIMITED_TRUE


def _set_kind(actuator: Any, config: ActuatorConfig) -> None:
    if config.kind is ActuatorType.POSITION:
        gains = {} if config.kv is None else {"kv": config.kv}
        actuator.set_to_position(kp=1.0 if config.kp is None else config.kp, **gains)
    elif config.kind is ActuatorType.VELOCITY:
        actuator.set_to_velocity(kv=1.0 if config.kv is None else config.kv)
    elif config.kind is ActuatorType.DAMPER:
        actuator.set_to_damper(kv=1.0 if config.kv is None else config.kv)
    else:
        actuator.set_to_motor()


def name_the_unnamed(spec: Any) -> None:
    """Name every unnamed element ``<kind>_<number>``; an unnamed free joint is called ``free``."""
    for kind, plural in _NAMED_KINDS:
        elements = getattr(spec, plural)
        _name_all(elements, [f"{kind}_{number}" for number in range(len(elements))])
    free = mujoco.mjtJoint.mjJNT_FREE
    joints = ["free" if joint.type == free else f"joint_{number}" for number, joint in enumerate(spec.joints)]
    _name_all(spec.joints, joints)


def _name_all(elements: Iterable[Any], wanted: list[str]) -> None:
    taken = {element.name for element in elements}
    for element, name in zip(elements, wanted, strict=True):
        if not element.name:
            element.name = _untaken(name, taken)
            taken.add(element.name)


def _untaken(wanted: str, taken: set[str]) -> str:
    name, number = wanted, 2
    while name in taken:
        name, number = f"{wanted}_{number}", number + 1
    return name

"""Parameters of a running model: what is written, what follows from it, and that it can all be taken back."""

import copy
from typing import Any

import mujoco
import numpy as np
import pytest

from urlab.errors import BadValue, DimMismatch
from urlab.physics import Engine
from urlab.physics.model_changes import ModelChanges
from urlab.physics.parameters import DERIVED_FROM, FIELDS, ModelParameters, write_model
from urlab_wire.ops.stepping import ModelChange

SCENE = """
<mujoco><statistic meanmass="7"/><asset><texture name="t" type="2d" builtin="flat" width="2" height="2"/>
  <texture name="wood" type="cube" builtin="flat" width="2" height="2"/>
  <texture name="sky" type="skybox" builtin="flat" width="2" height="2"/>
  <material name="paint" texture="t"/><material name="bare"/></asset>
<worldbody><light name="lamp" pos="0 0 3"/><camera name="eye" pos="0 -2 1"/>
  <camera name="lens" sensorsize=".01 .01" focal=".02 .02" resolution="8 8"/>
  <body name="arm"><joint name="turn" axis="0 1 0" damping=".5"/><geom name="link" type="capsule" size=".05 .2"/>
    <body name="tip" pos=".3 0 0"><joint name="ball" type="ball"/><geom name="tip" size=".05"/></body></body>
  <body name="crate" pos="1 0 0"><freejoint/><geom name="crate" type="box" size=".1 .2 .3" material="paint"/></body>
  <body name="post" pos="3 0 0"><geom size=".1"/></body></worldbody>
<tendon><fixed name="string"><joint joint="turn" coef="1"/></fixed></tendon>
<actuator><position name="servo" joint="turn" kp="10" kv="1"/><velocity name="spin" joint="turn" kv="2"/>
  <motor name="push" joint="turn"/></actuator></mujoco>"""


@pytest.fixture
def engine() -> Engine:
    return Engine(mujoco.MjModel.from_xml_string(SCENE))


def change(kind: str, name: str, field: str, value: Any) -> ModelChange:
    return ModelChange(kind=kind, name=name, field=field, value=value)


def content(model: Any) -> bytes:
    """The model as MuJoCo saves it."""
    buffer = np.empty(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, None, buffer)
    return buffer.tobytes()


def apply(changes: ModelChanges, *wanted: ModelChange, until_reset: bool = True) -> Any:
    return changes.set(changes.check(wanted), until_reset=until_reset)


def test_a_heavier_body_is_the_one_that_mujoco_compiles(engine: Engine) -> None:
    changes = ModelChanges(engine)
    apply(changes, change("body", "crate", "density_scale", 2.0), change("joint", "turn", "armature", 0.3))
    heavy = SCENE.replace('material="paint"/></body>', 'material="paint" density="2000"/></body>')
    heavy = heavy.replace('damping=".5"', 'damping=".5" armature=".3"')
    compiled = mujoco.MjModel.from_xml_string(heavy)
    for name in ("body_mass", "body_inertia", "body_subtreemass", "body_invweight0", "dof_M0", "dof_invweight0"):
        assert np.allclose(getattr(engine.model, name), getattr(compiled, name), rtol=1e-12, atol=0), name
    assert engine.model.stat.meanmass == 7


@pytest.mark.parametrize(("kind", "name", "field", "value", "array", "where"), [
    ("body", "tip", "mass", 0.25, "body_mass", 2),
    ("geom", "tip", "friction", 0.3, "geom_friction", (1, 0)),
    ("geom", "tip", "rgba", [1.0, 0.0, 0.5, 1.0], "geom_rgba", 1),
    ("joint", "ball", "damping", 0.75, "dof_damping", slice(1, 4)),
    ("actuator", "push", "gear", 3.0, "actuator_gear", (2, 0)),
    ("tendon", "string", "stiffness", 4.0, "tendon_stiffness", 0),
    ("light", "lamp", "diffuse", [0.25, 0.5, 1.0], "light_diffuse", 0),
    ("light", "lamp", "active", False, "light_active", 0),
    ("material", "paint", "reflectance", 0.5, "mat_reflectance", 0),
    ("camera", "eye", "pos", [1.0, 2.0, 3.0], "cam_pos", 0),
    ("camera", "eye", "quat", [0.0, 2.0, 0.0, 0.0], "cam_quat", 0),
    ("camera", "eye", "fovy", 30.0, "cam_fovy", 0),
])  # fmt: skip
def test_a_field_goes_where_mujoco_has_it(
    engine: Engine, kind: str, name: str, field: str, value: Any, array: str, where: Any
) -> None:
    apply(ModelChanges(engine), change(kind, name, field, value))
    written = getattr(engine.model, array)[where]
    expected = np.array(value, float) / (2 if field == "quat" else 1)
    assert np.array_equal(written, np.broadcast_to(expected, np.shape(written)))


@pytest.mark.parametrize("material", ["paint", "bare"])
def test_a_material_has_another_texture_as_if_it_had_been_compiled_so(engine: Engine, material: str) -> None:
    apply(ModelChanges(engine), change("material", material, "texture", "wood"))
    before = {"bare": '"bare"/>', "paint": '"paint" texture="t"/>'}[material]
    text = SCENE.replace(before, f'"{material}" texture="wood"/>')
    assert np.array_equal(engine.model.mat_texid, mujoco.MjModel.from_xml_string(text).mat_texid)


def test_gains_of_servos_go_into_gain_and_bias(engine: Engine) -> None:
    wanted = [("servo", "kp", 50.0), ("servo", "kv", 3.0), ("spin", "kv", 4.0)]
    apply(ModelChanges(engine), *(change("actuator", *one) for one in wanted))
    text = SCENE.replace('kp="10" kv="1"', 'kp="50" kv="3"').replace('kv="2"', 'kv="4"')
    compiled = mujoco.MjModel.from_xml_string(text)
    assert np.array_equal(engine.model.actuator_gainprm, compiled.actuator_gainprm)
    assert np.array_equal(engine.model.actuator_biasprm, compiled.actuator_biasprm)


def test_without_changes_the_model_is_the_compiled_one_bit_for_bit(engine: Engine) -> None:
    before, changes = content(engine.model), ModelChanges(engine)
    names = {"body": "tip", "geom": "tip", "joint": "turn", "actuator": "servo", "tendon": "string", "light": "lamp"}
    for kind, fields in FIELDS.items():
        name = {**names, "material": "paint", "camera": "eye", "option": ""}[kind]
        for field in set(fields) - {"intrinsic", "forcerange", "range"}:
            value: Any = [one * 0.5 + 0.125 for one in changes.parameters.value(kind, name, field)]
            apply(changes, change(kind, name, field, "wood" if field == "texture" else value))
    assert content(engine.model) != before
    assert changes.begin_anew() is not None
    assert content(engine.model) == before
    assert changes.begin_anew() is None


def test_changes_until_play_stops_survive_a_reset_and_the_others_do_not(engine: Engine) -> None:
    changes = ModelChanges(engine)
    apply(changes, change("body", "crate", "mass", 5.0), until_reset=False)
    kept = content(engine.model)
    apply(changes, change("body", "crate", "mass", 9.0), change("option", "", "gravity", [0, 0, -1]))
    changes.begin_anew()
    assert content(engine.model) == kept


def test_an_option_that_was_set_since_stays(engine: Engine) -> None:
    changes = ModelChanges(engine)
    apply(changes, change("option", "", "gravity", [0, 0, -1]))
    engine.model.opt.gravity[:] = 0, 0, -2
    changes.begin_anew()
    assert engine.model.opt.gravity.tolist() == [0, 0, -2]


def test_what_is_told_brings_a_copy_of_the_model_up_to_date(engine: Engine) -> None:
    changes, local = ModelChanges(engine), copy.copy(engine.model)
    wanted = (change("body", "arm", "mass", 3.0), change("actuator", "servo", "kp", 5.0))
    for step in (lambda: apply(changes, *wanted), changes.begin_anew):
        told = step()
        write_model(local, told.writes)
        assert told.derive
        mujoco.mj_setConst(local, mujoco.MjData(local))
        arrays = [name for name in dir(local) if isinstance(getattr(local, name), np.ndarray)]
        differ = [name for name in arrays if not np.array_equal(getattr(local, name), getattr(engine.model, name))]
        assert differ == []


@pytest.mark.parametrize(("wrong", "words"), [
    (("bodi", "crate", "mass", 1.0), "actuator, body"),
    (("body", "box", "mass", 1.0), "arm, crate, post, tip"),
    (("body", "crate", "weight", 1.0), "density_scale, inertia, mass"),
    (("body", "crate", "mass", -1.0), "above zero"),
    (("body", "crate", "mass", float("nan")), "finite"),
    (("body", "crate", "mass", "heavy"), "numbers"),
    (("body", "crate", "inertia", [1.0, 1.0, 9.0]), "sum of the others"),
    (("body", "crate", "pos", [0, 0, 0]), "is free"),
    (("body", "post", "mass", 1.0), "fixed to the world"),
    (("actuator", "push", "kp", 1.0), "no servo"),
    (("camera", "lens", "fovy", 40.0), "intrinsic"),
    (("camera", "eye", "fovy", 180.0), "180"),
    (("geom", "tip", "rgba", [2.0, 0, 0]), "0 and 1"),
    (("option", "world", "gravity", [0, 0, 0]), "no name"),
    (("material", "paint", "texture", 1), "is the name of a texture, not 1"),
    (("material", "paint", "texture", "sky"), "there is no texture for a material 'sky'.*t, wood"),
])  # fmt: skip
def test_one_wrong_change_and_nothing_is_applied(engine: Engine, wrong: Any, words: str) -> None:
    before, changes = content(engine.model), ModelChanges(engine)
    with pytest.raises(BadValue, match=words):
        apply(changes, change("body", "arm", "mass", 2.0), change(*wrong))
    assert content(engine.model) == before


def test_the_wrong_count_of_numbers_is_refused(engine: Engine) -> None:
    with pytest.raises(DimMismatch, match="1 to 3 numbers, but has 4"):
        apply(ModelChanges(engine), change("geom", "tip", "friction", [1, 1, 1, 1]))


def test_short_names_will_do_where_they_are_unique(engine: Engine) -> None:
    checked = ModelParameters(engine.model, ("ta", "po")).checked(change("body", "crate", "mass", 1))
    assert checked.name == "crate"


@pytest.mark.skipif(not hasattr(mujoco.MjModel, "_setconst_inputs"), reason="this MuJoCo does not tell")
def test_constants_are_derived_after_every_change_that_they_depend_on() -> None:
    ours = {field.array for fields in FIELDS.values() for field in fields.values()}
    assert ours & set(mujoco.MjModel._setconst_inputs) == DERIVED_FROM


def drawn(index: int) -> list[ModelChange]:
    return [
        change("body", "crate", "density_scale", 1.0 + index),
        change("joint", "turn", "armature", 0.1 * index),
        change("geom", "tip", "friction", 0.5 + 0.1 * index),
        change("option", "", "gravity", [0, 0, -float(index)]),
    ]


@pytest.mark.skipif(not hasattr(mujoco.MjModel, "_setconst_inputs"), reason="this MuJoCo has no batches")
def test_the_same_changes_make_the_same_models_in_a_batch() -> None:
    from mujoco.batch import Batch

    compiled = mujoco.MjModel.from_xml_string(SCENE)
    batch, parameters = Batch(compiled, 3, 1), ModelParameters(compiled)
    for index in range(3):
        for write in parameters.writes([parameters.checked(one) for one in drawn(index)]):
            flat = batch.expand(write.array)[index].reshape(-1)
            flat[write.start : write.start + len(write.values)] = write.values
    batch.set_const()
    for index in range(3):
        engine = Engine(mujoco.MjModel.from_xml_string(SCENE))
        apply(ModelChanges(engine), *drawn(index))
        one = batch.get_model(index)
        for name in ("body_mass", "body_inertia", "dof_M0", "dof_invweight0", "body_subtreemass", "geom_friction"):
            assert np.array_equal(getattr(one, name), getattr(engine.model, name)), name
        assert one.opt.gravity.tolist() == engine.model.opt.gravity.tolist()

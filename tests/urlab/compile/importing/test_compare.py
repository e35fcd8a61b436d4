import mujoco
import pytest

from urlab.compile.importing.compare import first_difference

BALL = '<mujoco><worldbody><geom size="1"/></worldbody></mujoco>'


def test_a_model_is_the_same_as_itself_read_again() -> None:
    assert first_difference(*(mujoco.MjModel.from_xml_string(BALL) for _ in range(2))) is None


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("/>", ' friction="1.0000000000000002"/>', "geom_friction"),
        ("/>", ' rgba="0.5 0.5 0.5 0.51"/>', "geom_rgba"),
        ("<worldbody>", '<option timestep="0.003"/><worldbody>', "opt"),
        ("<worldbody>", '<visual><global fovy="44"/></visual><worldbody>', "vis"),
        ("<worldbody>", '<statistic extent="44"/><worldbody>', "stat"),
        ("<mujoco>", '<mujoco model="MuJoCo Mode1">', "names"),
        ("</mujoco>", '<custom><numeric name="n" data="1"/></custom></mujoco>', "name_numericadr"),
    ],
)
def test_the_smallest_difference_is_found(old: str, new: str, field: str) -> None:
    models = [mujoco.MjModel.from_xml_string(text) for text in (BALL, BALL.replace(old, new))]
    assert first_difference(*models) == field


def test_paths_do_not_matter(tree, stl) -> None:
    text = '<mujoco><asset><mesh file="m.stl"/></asset></mujoco>'
    folder = tree({"a/r.xml": text, "longer/r.xml": text, "a/m.stl": stl(), "longer/m.stl": stl()})
    models = [mujoco.MjModel.from_xml_path(str(folder / name / "r.xml")) for name in ("a", "longer")]
    assert models[0].paths != models[1].paths
    assert first_difference(*models) is None

import mujoco
import pytest

from urlab.errors import ImportFailed
from urlab.importing.bundle import Original
from urlab.importing.check import CheckRequest, check_import, decoded, encoded, explanation
from urlab.importing.check_child import first_difference
from urlab.importing.sources import DEFAULT_LIMITS, ImportLimits

pytestmark = pytest.mark.usefixtures("cold_start")

BALL = '<mujoco><worldbody><geom size="1"/></worldbody></mujoco>'


def test_messages_carry_paths_that_are_not_utf8() -> None:
    request = CheckRequest("/a\udce9/r.xml", "/b", {"package://x": "/c\udce9"})
    assert decoded(encoded(request), CheckRequest) == request
    with pytest.raises(ValueError, match="Expected"):
        decoded(b"{}", str | None)


def test_a_sound_import_passes(tree) -> None:
    folder = tree({"a/r.xml": BALL, "b/r.xml": BALL.replace("><", ">\n<")})
    check_import(folder / "a/r.xml", DEFAULT_LIMITS, Original(folder / "b/r.xml"))


def test_an_import_that_is_another_model_is_refused_and_the_field_named(tree) -> None:
    folder = tree({"a/r.xml": BALL, "b/r.xml": BALL.replace("/>", ' friction="1.0000000000000002"/>')})
    with pytest.raises(ImportFailed, match=r"not be the same model: geom_friction differs from .*b/r\.xml"):
        check_import(folder / "a/r.xml", DEFAULT_LIMITS, Original(folder / "b/r.xml"))


def test_an_import_that_needs_a_file_elsewhere_is_refused(tree, stl) -> None:
    text = '<mujoco><asset><mesh file="@/b/m.stl"/></asset></mujoco>'
    folder = tree({"a/r.xml": text, "b/m.stl": stl()})
    with pytest.raises(ImportFailed, match=f"would still need {folder}/b/m.stl"):
        check_import(folder / "a/r.xml", DEFAULT_LIMITS)


def test_mujoco_says_what_is_wrong_with_a_text_and_reads_nothing_else() -> None:
    said = explanation(b'<mujoco>\n< include file="/dev/zero"/>\n<a b=1/></mujoco>', DEFAULT_LIMITS)
    assert said is not None
    assert "XML_ERROR_PARSING_ATTRIBUTE" in said
    assert "Line number=3" in said
    assert explanation(b"<mujoco/>", DEFAULT_LIMITS) is None


def test_a_small_text_that_asks_for_too_much_memory_is_stopped(tree) -> None:
    text = '<mujoco><asset><hfield name="h" size="1 1 1 1" nrow="60000" ncol="60000"/></asset></mujoco>'
    folder = tree({"r.xml": text})
    with pytest.raises(ImportFailed, match="for want of memory: it may have 512 MiB"):
        check_import(folder / "r.xml", ImportLimits(memory_bytes=512 << 20))
    assert not list(folder.glob("*LOG*"))


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

from xml.etree import ElementTree as ET

import mujoco
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from urlab.importing.xml_tags import BrokenXml, edited, tags

NAMES = st.sampled_from(["a", "mesh", "b-c", "d.e", "_f"])
VALUES = st.text(st.characters(codec="utf-8", exclude_characters="\0", exclude_categories=["C"]), max_size=8)


@st.composite
def elements(draw: st.DrawFn, depth: int = 2) -> ET.Element:
    element = ET.Element(draw(NAMES), draw(st.dictionaries(NAMES, VALUES, max_size=3)))
    if depth:
        element.extend(draw(st.lists(elements(depth - 1), max_size=3)))
    return element


@settings(max_examples=40)
@given(elements())
def test_the_tags_of_a_strict_text_are_those_of_a_strict_parser(element: ET.Element) -> None:
    found = [tag for tag in tags(ET.tostring(element)) if not tag.is_end]
    assert [(tag.name, {name: one.value for name, one in tag.attributes.items()}) for tag in found] == [
        (one.tag, dict(one.attrib)) for one in element.iter()
    ]


@settings(max_examples=40)
@given(elements(), VALUES)
def test_a_value_that_is_replaced_is_read_back_and_nothing_else_changes(element: ET.Element, value: str) -> None:
    text = ET.tostring(element)
    edits = [one.with_value(value) for tag in tags(text) for one in tag.attributes.values()]
    expected = ET.fromstring(text)
    for one in expected.iter():
        one.attrib = dict.fromkeys(one.attrib, value)
    assert ET.tostring(ET.fromstring(edited(text, edits))) == ET.tostring(expected)


@pytest.mark.parametrize(
    "text",
    [
        b"<mujoco><!-- ---- arms ---- --><option/></mujoco>",
        b"<mujoco>< option ></option ></mujoco >",
        b"<mujoco><option timestep='0.1'gravity=\"0 0 0\"/></mujoco>",
        b"<?xml version='1.0' encoding='latin1'?><!DOCTYPE m><mujoco model='\xe9 > <b>'><option/></mujoco>",
        b"\xef\xbb\xbf<mujoco><![CDATA[<mesh file='x'>]]><option/></mujoco>",
        b"<mujoco><option/></mujoco><mujoco/>",
    ],
)
def test_what_mujoco_takes_for_xml_is_taken_here_too(text: bytes) -> None:
    mujoco.MjSpec.from_string(text.decode("utf-8", "replace"))
    assert "option" in [tag.name for tag in tags(text)]
    assert "mesh" not in [tag.name for tag in tags(text)]


@pytest.mark.parametrize("text", ["<mujoco>\n<option a=1/></mujoco>", "<mujoco>\n<!-- ", "<mujoco>\n< /", "\n<1/>"])
def test_what_is_no_xml_to_mujoco_is_none_here_and_the_line_is_told(text: str) -> None:
    with pytest.raises(ValueError, match="XML parse error"):
        mujoco.MjSpec.from_string(text)
    with pytest.raises(BrokenXml, match="line 2 "):
        list(tags(text.encode()))


@pytest.mark.parametrize("said", ["a&amp;b&#x41;&#47;&quot;&lt;", "&amp;12/&nbsp;.", "a\r\nb\rc\n\r&e;", "a&;b&"])
def test_entities_and_line_ends_are_read_as_mujoco_reads_them(said: str) -> None:
    [tag] = tags(f'<mujoco model="{said}"/>'.encode())
    assert mujoco.MjSpec.from_string(tag.text.decode()).modelname == tag.attributes["model"].value


@pytest.mark.parametrize("said", ["a&#;b", "a&#0;b", "a&#x;b"])
def test_what_ends_a_value_for_mujoco_is_a_nul_here(said: str) -> None:
    [tag] = tags(f'<mujoco model="{said}"/>'.encode())
    assert mujoco.MjSpec.from_string(tag.text.decode()).modelname == tag.attributes["model"].value.partition("\0")[0]
    assert "\0" in tag.attributes["model"].value


def test_attributes_can_be_added_and_taken_away() -> None:
    text = b"<m  a='1'\n b = \"2\" />"
    [tag] = tags(text)
    assert edited(text, [tag.attributes["a"].removed()]) == b'<m\n b = "2" />'
    assert edited(text, [tag.with_attribute("name", 'x"')]) == b'<m name="x&quot;"  a=\'1\'\n b = "2" />'


def test_bytes_that_are_not_utf8_survive() -> None:
    text = b"<m file='\xe9.stl'/>"
    [tag] = tags(text)
    assert edited(text, [tag.attributes["file"].with_value(tag.attributes["file"].value)]) == text

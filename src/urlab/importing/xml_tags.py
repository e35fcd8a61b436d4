"""The tags of an XML text, found as MuJoCo's parser finds them, and edits that leave the rest of the text alone.

MuJoCo's parser is not a strict one: it takes ``--`` in comments and any bytes as text, and it knows no entities but
the usual five. A strict parser would refuse models that MuJoCo reads.
"""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

_SPACE = rb"[ \t\n\r\v\f]"
_NAME = rb"[A-Za-z_:\x80-\xff][A-Za-z0-9_:.\-\x80-\xff]*+"
_ATTRIBUTE = rb"%b*+(%b)%b*+=%b*+(?:\"([^\"]*+)\"|'([^']*+)')" % (_SPACE, _NAME, _SPACE, _SPACE)
_ATTRIBUTES = re.sub(rb"\((?!\?)", b"(?:", _ATTRIBUTE)
_ELEMENT = rb"%b*+(/?)%b*+(%b)((?:%b)*+)%b*+(/?)>" % (_SPACE, _SPACE, _NAME, _ATTRIBUTES, _SPACE)
_OTHER = rb"\?.*?\?>|!--.*?-->|!\[CDATA\[.*?\]\]>|!(?!--|\[CDATA\[).*?>"
_MARKUP = re.compile(rb"<(?:%b|%b)" % (_OTHER, _ELEMENT), re.DOTALL)
_ONE_ATTRIBUTE = re.compile(_ATTRIBUTE)
_SPECIAL = re.compile(rb"&(?:#x([0-9a-fA-F]{1,8})|#([0-9]{1,8})|(quot|amp|apos|lt|gt));|&#?|\r\n?|\n\r")
_NAMED = {b"quot": '"', b"amp": "&", b"apos": "'", b"lt": "<", b"gt": ">"}
_LARGEST_CHARACTER = 0x10FFFF


class BrokenXml(Exception):
    """The text is no XML, from ``line`` on."""

    def __init__(self, line: int) -> None:
        super().__init__(f"line {line} is not XML")
        self.line = line


@dataclass(frozen=True, slots=True)
class Edit:
    """Bytes ``start`` to ``end`` of a text become ``new``."""

    start: int
    end: int
    new: bytes = b""


@dataclass(frozen=True, slots=True)
class Attribute:
    """``value`` is what it says, entities resolved; ``start`` and ``end`` span it with the space before it."""

    value: str
    start: int
    end: int
    value_start: int
    value_end: int

    def with_value(self, value: str) -> Edit:
        """The edit that gives it another value."""
        return Edit(self.value_start, self.value_end, quoted(value))

    def removed(self) -> Edit:
        """The edit that takes it away."""
        return Edit(self.start, self.end)


@dataclass(frozen=True)
class Tag:
    """A start tag, an end tag or, when ``is_empty``, both in one.

    ``start`` and ``end`` are bytes of ``text``, ``line`` counts from 1.
    """

    text: bytes
    line: int
    name: str
    start: int
    end: int
    is_end: bool
    is_empty: bool
    name_end: int
    attributes_end: int

    @cached_property
    def attributes(self) -> dict[str, Attribute]:
        """Its attributes by name, in the order of the text."""
        found = _ONE_ATTRIBUTE.finditer(self.text, self.name_end, self.attributes_end)
        return {match[1].decode("latin-1"): _attribute(match) for match in found}

    def with_attribute(self, name: str, value: str) -> Edit:
        """The edit that adds an attribute, as the first one."""
        return Edit(self.name_end, self.name_end, b' %b="%b"' % (name.encode(), quoted(value)))


def tags(text: bytes) -> Iterator[Tag]:
    """All tags in order; BrokenXml where the text stops being XML. Nesting is not judged."""
    line, counted, position = 1, 0, text.find(b"<")
    while position >= 0:
        line, counted = line + text.count(b"\n", counted, position), position
        match = _MARKUP.match(text, position)
        if match is None:
            raise BrokenXml(line)
        if match[2] is not None:
            yield _tag(match, line)
        position = text.find(b"<", match.end())


def _tag(match: re.Match[bytes], line: int) -> Tag:
    return Tag(
        text=match.string,
        line=line,
        name=match[2].decode("latin-1"),
        start=match.start(),
        end=match.end(),
        is_end=bool(match[1]),
        is_empty=bool(match[4]),
        name_end=match.end(2),
        attributes_end=match.end(3),
    )


def edited(text: bytes, edits: Iterable[Edit], start: int = 0, end: int | None = None) -> bytes:
    """Bytes ``start`` to ``end`` of the text with its edits, none of which overlap or reach outside."""
    parts, position = [], start
    for edit in sorted(edits, key=lambda one: (one.start, one.end)):
        parts += [text[position : edit.start], edit.new]
        position = edit.end
    return b"".join([*parts, text[position:end]])


def quoted(value: str) -> bytes:
    """A value as it stands between quotes."""
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("'", "&apos;")):
        value = value.replace(character, entity)
    return os.fsencode(value)


def _attribute(match: re.Match[bytes]) -> Attribute:
    group = 2 if match[2] is not None else 3
    value = os.fsdecode(_decoded(match[group]))
    return Attribute(value, match.start(), match.end(), match.start(group), match.end(group))


def _decoded(raw: bytes) -> bytes:
    """Entities and line ends as MuJoCo's parser reads them, which works in place.

    Of an entity that it does not know, it leaves out the ``&`` and takes up what the place happens to hold. What is
    no number after ``&#`` becomes a NUL here, which no path may have.
    """
    if b"&" not in raw and b"\r" not in raw:
        return raw
    value, position = bytearray(), 0
    while position < len(raw):
        match = _SPECIAL.match(raw, position)
        if match is None:
            value.append(raw[position])
        elif match[0] == b"&":
            value.append(raw[len(value)])
        elif match[0] == b"&#":
            value.append(0)
        else:
            value += _character(match) if match[0].startswith(b"&") else b"\n"
        position = match.end() if match is not None else position + 1
    return bytes(value)


def _character(match: re.Match[bytes]) -> bytes:
    if match[3] is not None:
        return _NAMED[match[3]].encode()
    number = int(match[1], 16) if match[1] is not None else int(match[2])
    return chr(number).encode(errors="surrogatepass") if number <= _LARGEST_CHARACTER else match[0]

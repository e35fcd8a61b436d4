"""TOML that people write: typed reads of its tables, and errors that say file, line, field and what is allowed; and
values as TOML text, which the standard library does not write.

Every message is ``file:line: field: what is wrong``. Sidecars, level files and task files are read with this.
"""

import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from enum import Enum
from itertools import takewhile
from operator import eq
from typing import Any, NoReturn, TypeVar

import msgspec
from msgspec.inspect import EnumType, ListType, LiteralType, StructType, Type, UnionType, type_info

from urlab.errors import UrlabError, did_you_mean

T = TypeVar("T")
StructT = TypeVar("StructT", bound=msgspec.Struct)
Keys = tuple[str | int, ...]
"""The way to a value from the top of the document: keys of tables and indices of arrays."""


class TomlTable:
    """One table of a document.

    ``source`` is what messages call the document, ``text`` its text, for line numbers ("" = it has none), ``keys`` the
    way to this table, ``error`` the class of the errors that are raised.
    """

    def __init__(
        self, source: str, content: object, *, error: type[UrlabError], text: str = "", keys: Keys = ()
    ) -> None:
        self.source, self.text, self.keys, self._error = source, text, keys, error
        if not isinstance(content, Mapping):
            self.fail(f"is {content!r}, expected a table")
        self.content: Mapping[str, Any] = content

    @classmethod
    def parse(cls, text: str, *, source: str, error: type[UrlabError]) -> "TomlTable":
        """The document as its top table."""
        try:
            content = tomllib.loads(text)
        except (ValueError, RecursionError) as broken:
            raise error(_syntax_message(str(broken), text, source)) from broken
        return cls(source, content, error=error, text=text)

    def problem(self, what: str, *keys: str | int) -> UrlabError:
        """An error about the value at ``keys`` below this table; no keys = about the table itself."""
        path = (*self.keys, *keys)
        line = _line_of(path, self.text)
        place = f"{self.source}{f':{line}' if line else ''}"
        return self._error(f"{place}: {_dotted(path)}: {what}" if path else f"{place}: {what}")

    def fail(self, what: str, *keys: str | int) -> NoReturn:
        """Raise `problem`."""
        raise self.problem(what, *keys)

    def allow(self, *keys: str) -> None:
        """Refuse every key but these."""
        for key in self.content:
            if key not in keys:
                self.fail(unknown_key(key, keys), key)

    def read(self, key: str, check: Callable[[Any], T]) -> T | None:
        """The checked value, or None when the key is absent. ``check`` raises ValueError with what is expected."""
        if key not in self.content:
            return None
        try:
            return check(self.content[key])
        except ValueError as expected:
            self.fail(f"is {self.content[key]!r}, expected {expected}", key)

    def require(self, key: str, check: Callable[[Any], T]) -> T:
        """The checked value of a key that must be there."""
        value = self.read(key, check)
        return self.fail("is missing", key) if value is None else value

    def word(self, key: str, words: Collection[str], default: str | None = None) -> str:
        """A value that must be one of ``words``."""
        value = self.content.get(key, default)
        if not isinstance(value, str) or value not in words:
            self.fail(wrong_word(value, words), key)
        return value

    def table(self, key: str) -> "TomlTable":
        """The table of that key; empty when it is absent."""
        return self.at(self.content.get(key, {}), key)

    def tables(self, key: str) -> list["TomlTable"]:
        """The array of tables of that key; empty when it is absent."""
        rows = self.content.get(key, [])
        if not isinstance(rows, list):
            self.fail(f"is {rows!r}, expected an array of tables: [[{key}]]", key)
        return [self.at(row, key, index) for index, row in enumerate(rows)]

    def convert(self, kind: type[StructT]) -> StructT:
        """The whole table as a Struct."""
        try:
            return msgspec.convert(dict(self.content), kind)
        except msgspec.ValidationError as broken:
            raise self._explained(str(broken), kind) from broken

    def convert_tagged(self, tag_key: str, kinds: Mapping[str, type[StructT]], default: str | None = None) -> StructT:
        """The whole table as the one of ``kinds`` that its ``tag_key`` names."""
        word = self.word(tag_key, kinds, default)
        return self.replaced(**{tag_key: word}).convert(kinds[word])

    def split(self, kind: type[msgspec.Struct], other: type[msgspec.Struct]) -> tuple["TomlTable", "TomlTable"]:
        """The keys that ``kind`` has, and those that ``other`` has; an error when there are more."""
        own_keys = {*_field_names(kind), kind.__struct_config__.tag_field}
        other_keys = set(_field_names(other))
        for key in self.content:
            if key not in own_keys | other_keys:
                self.fail(unknown_key(key, [*_field_names(kind), *_field_names(other)]), key)
        own = {key: value for key, value in self.content.items() if key in own_keys}
        rest = {key: value for key, value in self.content.items() if key not in own_keys}
        return self._with(own), self._with(rest)

    def at(self, content: object, *keys: str | int) -> "TomlTable":
        """``content``, which stands at ``keys`` below this table, as a table."""
        return TomlTable(self.source, content, error=self._error, text=self.text, keys=(*self.keys, *keys))

    def replaced(self, **values: object) -> "TomlTable":
        """This table with other values for some of its keys."""
        return self._with({**self.content, **values})

    def _with(self, content: Mapping[str, Any]) -> "TomlTable":
        return TomlTable(self.source, content, error=self._error, text=self.text, keys=self.keys)

    def _explained(self, message: str, kind: type[msgspec.Struct]) -> UrlabError:
        """msgspec's message as one about a line of this document."""
        at = _AT.search(message)
        keys, what = (_keys_of(at[1]), message[: at.start()]) if at else ((), message)
        if missing := _MISSING.search(what):
            return self.problem("is missing", *keys, missing[1])
        if unknown := _UNKNOWN.search(what):
            return self.problem(unknown_key(unknown[1], _names_at(type_info(kind), keys)), *keys, unknown[1])
        if word := _NOT_A_WORD.search(what):
            return self.problem(wrong_word(word[1], _words_at(type_info(kind), keys)), *keys)
        return self.problem(_in_plain_words(what, self._stated(keys)), *keys)

    def _stated(self, keys: Keys) -> str:
        """The number or text at ``keys``, for messages; "" when there is none."""
        value: Any = self.content
        for key in keys:
            value = value.get(key) if isinstance(value, Mapping) else value[key] if isinstance(key, int) else None
        return repr(value) if isinstance(value, int | float | str) else ""


def unknown_key(key: str, keys: Collection[str]) -> str:
    """What to say of a key that is not one of ``keys``."""
    return f"unknown key{did_you_mean(key, keys)}; allowed: {', '.join(keys)}"


def wrong_word(value: object, words: Collection[str]) -> str:
    """What to say of a value that is not one of ``words``."""
    stated = "is missing" if value is None else f"is {value!r}"
    return f"{stated}, expected one of {', '.join(words)}{did_you_mean(value, words)}"


_AT = re.compile(r" - at `\$\.?([^`]*)`$")
_NOT_A_WORD = re.compile(r"Invalid enum value '([^']*)'")
_UNKNOWN = re.compile(r"unknown field `([^`]*)`")
_MISSING = re.compile(r"missing required field `([^`]*)`")
_TYPES = re.compile(r"`([^`]*)`")
_TYPE_WORDS = {
    "array": "a list",
    "object": "a table",
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
}


def _in_plain_words(what: str, stated: str) -> str:
    """msgspec's complaint in the words of a person who writes TOML."""
    said = _TYPES.sub(lambda types: _type_words(types[1]), what)
    said = said[:1].lower() + said[1:]
    return said if ", got " in said or not stated else f"{said}, not {stated}"


def _type_words(types: str) -> str:
    return " or ".join(_TYPE_WORDS.get(one, one) for one in types.split(" | ") if one != "null")


def _keys_of(path: str) -> Keys:
    """``actors[0].location`` as keys. Where msgspec says ``[...]``, a key that it does not know, the way ends."""
    keys: list[str | int] = []
    for index, key in re.findall(r"\[([^\]]*)\]|([^.\[\]]+)", path):
        if index == "...":
            break
        keys.append(int(index) if index else key)
    return tuple(keys)


def _field_names(kind: type[msgspec.Struct]) -> list[str]:
    return [field.encode_name for field in msgspec.structs.fields(kind)]


def _names_at(info: Type, keys: Keys) -> list[str]:
    """The keys that the table at ``keys`` may have."""
    return [field.encode_name for one in _types_at(info, keys) if isinstance(one, StructType) for field in one.fields]


def _words_at(info: Type, keys: Keys) -> list[str]:
    """The words that the value at ``keys`` may be."""
    words: list[str] = []
    for one in _types_at(info, keys):
        if isinstance(one, LiteralType):
            words += [str(word) for word in one.values]
        elif isinstance(one, EnumType):
            words += [str(word.value) for word in one.cls if isinstance(word, Enum)]
    return words


def _types_at(info: Type, keys: Sequence[str | int]) -> Iterator[Type]:
    """The types that a value at ``keys`` may have."""
    if isinstance(info, UnionType):
        for one in info.types:
            yield from _types_at(one, keys)
    elif not keys:
        yield info
    elif isinstance(info, ListType):
        yield from _types_at(info.item_type, keys[1:])
    elif isinstance(info, StructType):
        for field in info.fields:
            if field.encode_name == keys[0]:
                yield from _types_at(field.type, keys[1:])


def _dotted(path: Keys) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


def _syntax_message(reason: str, text: str, source: str) -> str:
    at = re.search(r" \(at line (\d+), column (\d+)\)", reason)
    if at is None:
        return f"{source}:{text.count(chr(10)) + 1}: not TOML: {reason}"
    return f"{source}:{at[1]}:{at[2]}: not TOML: {reason[: at.start()]}"


def _line_of(path: Keys, text: str) -> int | None:
    """The line that states the longest beginning of ``path``: an inline table's keys are on its own line."""
    best, best_line = 0, None
    for line, stated in _stated_paths(text):
        shared = sum(takewhile(bool, map(eq, stated, path)))
        if shared > best:
            best, best_line = shared, line
    return best_line


def _stated_paths(text: str) -> Iterator[tuple[int, Keys]]:
    """Every table header and key of a valid document, in order, with its line number."""
    header: Keys = ()
    rows: Counter[Keys] = Counter()
    for number, line in enumerate(text.splitlines(), start=1):
        if (opened := _HEADER.match(line)) and (keys := _keys_in(opened[0])):
            header = _nested(rows, keys, opens_row=opened[1] == "[[")
            yield number, header
        elif assigned := _ASSIGNMENT.match(line):
            yield number, (*header, *_keys_in(f"{assigned[1]} = 0"))


def _nested(rows: "Counter[Keys]", keys: tuple[str, ...], *, opens_row: bool) -> Keys:
    """A header's keys with the index of the row that is open in each array of tables on its way."""
    path: Keys = ()
    for depth, key in enumerate(keys, start=1):
        path = (*path, key)
        rows[path] += opens_row and depth == len(keys)
        if rows[path]:
            path = (*path, rows[path] - 1)
    return path


_ONE_KEY = r"""(?:"[^"]*"|'[^']*'|[\w-]+)"""
_ASSIGNMENT = re.compile(rf"\s*({_ONE_KEY}(?:\s*\.\s*{_ONE_KEY})*)\s*=")
_HEADER = re.compile(r"\s*(\[\[?).*")


def _keys_in(line: str) -> tuple[str, ...]:
    """The keys that a line opens when TOML reads it alone: ``[a."b c"]`` gives a, b c; () for what is not TOML."""
    try:
        content: Any = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return ()
    keys: tuple[str, ...] = ()
    while isinstance(content, dict | list) and content:
        if isinstance(content, list):
            content = content[0]
            continue
        key, content = next(iter(content.items()))
        keys = (*keys, key)
    return keys


_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def table_lines(header: str, fields: Mapping[str, Any]) -> Iterator[str]:
    """A table as lines of TOML; ``header`` is its first line."""
    yield header
    for key, value in fields.items():
        yield assignment(key, value)


def assignment(key: str, value: Any) -> str:
    """``key = value`` as a line of TOML."""
    return f"{toml_key(key)} = {_toml_value(value)}"


def _toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _toml_string(value)
    if isinstance(value, Mapping):
        inner = ", ".join(assignment(key, one) for key, one in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_toml_value(one) for one in value)}]"
    return repr(value)


def toml_key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _toml_string(key)


def _toml_string(text: str) -> str:
    """JSON's escapes are TOML's, but for DEL, which JSON leaves as it is."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")

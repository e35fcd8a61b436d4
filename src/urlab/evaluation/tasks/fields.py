"""Reading the tables of a task file into types, with errors that name the field and what is allowed."""

import difflib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec.inspect import ListType, LiteralType, StructType, Type, type_info

from urlab.errors import FileError

T = TypeVar("T", bound=msgspec.Struct)

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


class TaskError(FileError):
    """The message has the file, the field, what is wrong and what is allowed."""


def task_error(source: str, field: str, problem: str) -> TaskError:
    """``source: field: problem``."""
    return TaskError(f"{source}: {field}: {problem}" if field else f"{source}: {problem}")


class Table:
    """A table of a file: ``source`` is the file, ``path`` the table's place in it, for messages."""

    def __init__(self, source: str, path: str, raw: object) -> None:
        self.source, self.path = source, path
        if not isinstance(raw, Mapping):
            raise self.error("", f"must be a table, not {_kind(raw)}")
        self.raw: Mapping[str, Any] = raw

    def error(self, field: str, problem: str) -> TaskError:
        """An error about one of its fields ("" = about itself)."""
        return task_error(self.source, ".".join(part for part in (self.path, field) if part), problem)

    def read(self, kind: type[T]) -> T:
        """The whole table as ``kind``."""
        try:
            return msgspec.convert(dict(self.raw), kind)
        except msgspec.ValidationError as broken:
            raise self._explained(str(broken), kind) from broken

    def read_tagged(self, tag_field: str, kinds: Mapping[str, type[T]], default: str | None = None) -> T:
        """The table as the one of ``kinds`` that its ``tag_field`` names."""
        word = self.word(tag_field, kinds, default)
        return Table(self.source, self.path, {**self.raw, tag_field: word}).read(kinds[word])

    def word(self, field: str, words: Collection[str], default: str | None = None) -> str:
        """A field that must be one of ``words``."""
        value = self.raw.get(field, default)
        if not isinstance(value, str) or value not in words:
            raise self.error(field, word_problem(value, words))
        return value

    def split(self, kind: type[msgspec.Struct], other: type[msgspec.Struct]) -> tuple["Table", "Table"]:
        """The fields that ``kind`` knows, and those that ``other`` knows; an error when there are more."""
        known = {*_field_names(kind), kind.__struct_config__.tag_field}
        own = {key: value for key, value in self.raw.items() if key in known}
        rest = {key: value for key, value in self.raw.items() if key not in known}
        for field in rest.keys() - set(_field_names(other)):
            raise self.error(field, _unknown_field(field, [*_field_names(kind), *_field_names(other)]))
        return Table(self.source, self.path, own), Table(self.source, self.path, rest)

    def _explained(self, message: str, kind: type[msgspec.Struct]) -> TaskError:
        at = _AT.search(message)
        field, problem = (at[1], message[: at.start()]) if at else ("", message)
        unknown = _UNKNOWN.search(problem)
        if unknown and not field:
            return self.error(unknown[1], _unknown_field(unknown[1], _field_names(kind)))
        missing = _MISSING.search(problem)
        if missing:
            return self.error(f"{field}.{missing[1]}" if field else missing[1], "is missing")
        word = _NOT_A_WORD.search(problem)
        if word:
            return self.error(field, word_problem(word[1], _words(kind, field)))
        return self.error(field, _in_plain_words(problem, self._stated(field)))

    def _stated(self, path: str) -> str:
        """The number or text at a path like ``size[0]``, for messages; "" when there is none."""
        value: Any = self.raw
        for step in re.findall(r"[^.\[\]]+", path):
            value = value.get(step) if isinstance(value, Mapping) else value[int(step)] if step.isdigit() else None
        return repr(value) if isinstance(value, int | float | str) else ""


def word_problem(value: object, words: Collection[str]) -> str:
    """What to say of a word that is not one of ``words``."""
    said = "is missing" if value is None else f"{value!r} is unknown"
    return f"{said}; {allowed_words(str(value), words)}"


def allowed_words(word: str, words: Collection[str]) -> str:
    """``allowed: ...``, and the nearest."""
    close = difflib.get_close_matches(word, words, n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    return f"allowed: {', '.join(sorted(words))}{hint}"


def _unknown_field(field: str, known: Collection[str]) -> str:
    return f"no such field; {allowed_words(field, known)}"


def _in_plain_words(problem: str, stated: str) -> str:
    """A complaint of the reader in the words of somebody who writes TOML."""
    told = _TYPES.sub(lambda types: _type_words(types[1]), problem)
    told = told[:1].lower() + told[1:]
    return told if ", got " in told or not stated else f"{told}, not {stated}"


def _type_words(types: str) -> str:
    return " or ".join(_TYPE_WORDS.get(one, one) for one in types.split(" | ") if one != "null")


def _field_names(kind: type[msgspec.Struct]) -> list[str]:
    return [field.encode_name for field in msgspec.structs.fields(kind)]


def _words(kind: type[msgspec.Struct], path: str) -> list[str]:
    """The words that the field at the end of a path may have."""
    name = path.rpartition(".")[2]
    return [str(word) for field, words in _literals(type_info(kind)) if field == name for word in words]


def _literals(info: Type) -> Iterator[tuple[str, Sequence[object]]]:
    """The fields that must be one of some words, here and in tables within."""
    if isinstance(info, ListType):
        yield from _literals(info.item_type)
    for field in info.fields if isinstance(info, StructType) else ():
        if isinstance(field.type, LiteralType):
            yield field.encode_name, field.type.values
        yield from _literals(field.type)


def _kind(raw: object) -> str:
    return "missing" if raw is None else type(raw).__name__

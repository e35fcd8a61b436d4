"""The tree of errors, and what its messages promise."""

import re
from collections.abc import Iterator

import pytest

from urlab import errors
from urlab.errors import PathNotWritable, UnknownBody, UrlabError, known
from urlab_wire import ErrorCode


def tree(root: type[UrlabError] = UrlabError) -> Iterator[type[UrlabError]]:
    yield root
    for child in root.__subclasses__():
        yield from tree(child)


def test_every_error_is_drawn_at_the_top_of_the_file() -> None:
    drawn = set(re.findall(r"\b[A-Z]\w+\b", (errors.__doc__ or "").partition("UrlabError")[2])) | {"UrlabError"}
    assert {one.__name__ for one in tree() if one.__module__ == errors.__name__} <= drawn


@pytest.mark.parametrize("error", list(tree()), ids=lambda error: error.__name__)
def test_every_error_has_a_code_that_clients_know(error: type[UrlabError]) -> None:
    assert isinstance(error.code, ErrorCode)
    assert error.__doc__


def test_an_error_without_words_says_what_its_code_means() -> None:
    assert UnknownBody().message == ErrorCode.UNKNOWN_BODY.meaning
    assert UnknownBody("there is no body 'x'").message == "there is no body 'x'"


def test_an_unwritable_path_is_carried_along() -> None:
    assert PathNotWritable("no", absolute_path="/x/y").absolute_path == "/x/y"
    assert PathNotWritable("no").absolute_path is None


def test_what_exists_is_listed_in_order_and_not_endlessly() -> None:
    assert known([]) == "none"
    assert known(["b", "a"]) == "a, b"
    assert known("abc", limit=2) == "a, b, ... (3 in all)"
    assert known(f"n{i:02}" for i in range(40)).endswith("n19, ... (40 in all)")

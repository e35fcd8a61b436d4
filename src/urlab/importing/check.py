"""The first compilation of an import, in a child process, and what it found."""

import json
from pathlib import Path
from typing import Any

import msgspec

from urlab.errors import ChildFailed, ImportFailed
from urlab.importing.bundle import Original
from urlab.importing.limited_process import LimitedProcess, ProcessLimits, python_module

_CHILD = python_module("urlab.importing.check_child")


class CheckRequest(msgspec.Struct):
    """Either ``text``, one that is no XML and that MuJoCo shall explain (in Latin-1), or an import to be judged.

    ``imported`` is its model file; ``original`` the one that it must be equal to, if there is one, and ``files`` what
    the original's URIs mean. Where ``roots`` are given, nothing outside them is read for the original.
    """

    imported: str = ""
    original: str | None = None
    files: dict[str, str] = {}
    roots: list[str] | None = None
    text: str | None = None


def encoded(message: CheckRequest | str | None) -> bytes:
    """A request or its reply (the problem, or None) as JSON. (msgspec's encoder refuses paths that are not UTF-8.)"""
    return json.dumps(msgspec.to_builtins(message)).encode()


def decoded(frame: bytes, kind: Any) -> Any:
    """The message of that kind in a frame; ValueError when it holds another."""
    return msgspec.convert(json.loads(frame), kind)


def check_import(imported: Path, limits: ProcessLimits, original: Original | None = None) -> None:
    """ImportFailed when MuJoCo refuses the model or its import, or when the two are not the same."""
    request = CheckRequest(str(imported))
    if original is not None:
        roots = None if original.roots is None else [str(root) for root in original.roots]
        request = CheckRequest(str(imported), str(original.path), dict(original.files), roots)
    problem = _ask(request, limits)
    if problem is not None:
        raise ImportFailed(problem)


def explanation(text: bytes, limits: ProcessLimits) -> str | None:
    """What MuJoCo says of the text of a model file that is no XML; None when it has no complaint."""
    return _ask(CheckRequest(text=text.decode("latin-1")), limits)


def _ask(request: CheckRequest, limits: ProcessLimits) -> str | None:
    try:
        problem: str | None = decoded(LimitedProcess(_CHILD, encoded(request), limits).result(), str | None)
        return problem
    except (ChildFailed, ValueError) as failed:
        raise ImportFailed(f"compiling it failed: {failed}") from failed

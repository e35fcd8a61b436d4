"""Helpers for the decomposition tests: mesh files made of unit cells, a decomposer, and what it logs."""

import logging
import queue
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from urlab.importing.hulls import Decomposer

Cells = Sequence[tuple[int, int]]


def obj_of(cells: Cells) -> str:
    """A closed OBJ mesh: unit cells in the x-z plane, one metre deep along y, no walls between neighbours."""
    lines, count = [], 0
    for quad in (quad for cell in cells for quad in _quads(cell, set(cells))):
        lines += [f"v {x} {y} {z}" for x, y, z in quad]
        lines += [f"f {count + 1} {count + 2} {count + 3}", f"f {count + 1} {count + 3} {count + 4}"]
        count += 4
    return "\n".join(lines) + "\n"


def _quads(cell: tuple[int, int], cells: set[tuple[int, int]]) -> Iterator[list[tuple[int, int, int]]]:
    (a, c), (b, d) = cell, (cell[0] + 1, cell[1] + 1)
    yield [(a, 0, c), (b, 0, c), (b, 0, d), (a, 0, d)]
    yield [(a, 1, c), (a, 1, d), (b, 1, d), (b, 1, c)]
    sides = {
        (a - 1, c): [(a, 0, c), (a, 0, d), (a, 1, d), (a, 1, c)],
        (b, c): [(b, 0, c), (b, 1, c), (b, 1, d), (b, 0, d)],
        (a, c - 1): [(a, 0, c), (a, 1, c), (b, 1, c), (b, 0, c)],
        (a, d): [(a, 0, d), (b, 0, d), (b, 1, d), (a, 1, d)],
    }
    yield from (quad for neighbour, quad in sides.items() if neighbour not in cells)


U_SHAPE: Cells = ((0, 0), (1, 0), (2, 0), (0, 1), (2, 1))


@pytest.fixture
def write_cells(tmp_path: Path) -> Callable[[Cells], Path]:
    """``write_cells(cells)`` puts an OBJ file there and returns its path."""

    def write(cells: Cells) -> Path:
        path = tmp_path / "cells.obj"
        path.write_text(obj_of(cells), encoding="utf-8")
        return path

    return write


@pytest.fixture
def u_shape(write_cells: Callable[[Cells], Path]) -> Path:
    """A closed mesh of five unit cubes around a notch."""
    return write_cells(U_SHAPE)


@pytest.fixture
def decomposer(tmp_path: Path) -> Iterator[Decomposer]:
    """With an empty cache in ``tmp_path / "cache"``."""
    made = Decomposer(tmp_path / "cache")
    yield made
    made.close()


class Log(logging.Handler):
    """What the room logs, to be waited for."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.records: queue.Queue[logging.LogRecord] = queue.Queue()

    def emit(self, record: logging.LogRecord) -> None:
        self.records.put(record)

    def next_message(self) -> str:
        """Waits for the next line."""
        return self.records.get(timeout=30).getMessage()

    def next_pid(self) -> int:
        """Waits for a child to be started; its process id."""
        message = self.next_message()
        assert "in process" in message
        return int(message.rsplit(" ", 1)[1])


@pytest.fixture
def log() -> Iterator[Log]:
    """Listens to the room's logger."""
    logger, handler = logging.getLogger("urlab.importing"), Log()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(level)

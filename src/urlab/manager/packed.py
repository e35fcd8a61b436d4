"""Observations as msgpack bytes, without visiting their numbers one by one.

The shape of an observation never changes while a scene runs: the same keys, the same lists, other numbers. So the
`Observer` is run once on arrays that hold marks instead of numbers, its result is encoded, and every mark that is
found in the bytes tells which number belongs there. From then on an observation is: copy the arrays behind each other,
pick the numbers out of that, write them between the constant bytes. By construction it decodes to what the `Observer`
says.
"""

import re
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from urlab.compile import CompiledScene
from urlab.manager.observation import Array, ObservedArrays, Observer
from urlab_wire import encode
from urlab_wire.enums import ObservationLevel

_FLOAT = b"\xcb"
_MARK = 0x7E37 << 48
"""The bits of the first mark, as a float64; the mark of number k has k added. No text can contain one: 0xcb 0x7e is
not UTF-8."""

_MARKS = re.compile(re.escape(_FLOAT) + b"\x7e\x37(.{6})", re.DOTALL)
_FLOAT_BYTES = 9
_FEW_RUNS = 12

Indices = NDArray[np.intp]


class PackedObserver:
    """Packs observations of one scene. The owner of the physics lock calls it."""

    def __init__(self, scene: CompiledScene, sources: ObservedArrays) -> None:
        self._scene = scene
        self._sources = sources
        self._actions = b""
        self._templates: dict[ObservationLevel, _Template] = {}

    def pack(self, level: ObservationLevel) -> bytes:
        """Every robot at that level, and every entity: two entries of a map, keys and values, without its head."""
        if self._sources.actions.tobytes() != self._actions:
            self._templates.clear()
            self._actions = self._sources.actions.tobytes()
        template = self._templates.get(level)
        if template is None:
            marked = Observer(self._scene, _marked(self._sources))
            blocks = {"per_articulation": marked.articulations(level), "entities": marked.entities()}
            template = self._templates[level] = _Template.of(encode(blocks)[1:], self._sources)
        return template.fill()


@dataclass(slots=True)
class _Template:
    """Constant bytes with room for numbers between them.

    ``slots`` are where the numbers go: every ninth byte on, big-endian, as msgpack wants them. ``parts`` alternate
    between constant bytes and views into the memory of the slots. ``arrays``, each (n,), hold the numbers: the very
    numbers in wire order if they are a few runs (``gather`` is None), else whole arrays that it picks from.
    """

    arrays: tuple[Array, ...]
    gather: "_Gather | None"
    slots: Array
    parts: tuple[bytes | memoryview, ...]

    @classmethod
    def of(cls, blob: bytes, sources: ObservedArrays) -> "_Template":
        """Compile an encoded observation of marks."""
        marks = [*_MARKS.finditer(blob)]
        arrays, places = _find(sources, [int.from_bytes(match[1], "big") for match in marks])
        count = len(places)
        rows = np.full((count, _FLOAT_BYTES), _FLOAT[0], dtype=np.uint8)
        flat = rows.reshape(-1).data
        runs = _runs(arrays, places)
        few = len(runs) <= _FEW_RUNS
        return cls(
            arrays=runs if few else arrays,
            gather=None if few else _Gather(places, np.empty(sum(map(len, arrays))), np.empty(count)),
            slots=np.ndarray(
                (count,), ">f8", buffer=flat if count else bytearray(1), offset=1, strides=(_FLOAT_BYTES,)
            ),
            parts=tuple(_parts(blob, [match.start() for match in marks], flat)),
        )

    def fill(self) -> bytes:
        """The bytes with the numbers that the sources hold now."""
        gather = self.gather
        if gather is not None:
            places, copied, picked = gather
            np.concatenate(self.arrays, out=copied)
            copied.take(places, out=picked, mode="clip")
            self.slots[:] = picked
        elif self.arrays:
            np.concatenate(self.arrays, out=self.slots)
        return b"".join(self.parts)


class _Gather(NamedTuple):
    """Picks numbers out of many arrays: ``copied`` holds these behind each other, ``picked`` what is at ``places``.

    One copy of everything and one pick is several times cheaper than a pick per array, or than many short runs.
    """

    places: Indices
    copied: Array
    picked: Array


def _parts(blob: bytes, starts: list[int], rows: memoryview) -> list[bytes | memoryview]:
    """Constant bytes and runs of numbers, in turn; numbers that follow each other directly make one run."""
    parts: list[bytes | memoryview] = []
    position = row = 0
    while row < len(starts):
        last = row
        while last + 1 < len(starts) and starts[last + 1] == starts[last] + _FLOAT_BYTES:
            last += 1
        parts += [blob[position : starts[row]], rows[row * _FLOAT_BYTES : (last + 1) * _FLOAT_BYTES]]
        position, row = starts[last] + _FLOAT_BYTES, last + 1
    return [*parts, blob[position:]]


def _marked(sources: ObservedArrays) -> ObservedArrays:
    """Arrays of the same shapes that hold marks, numbered in the order of the fields."""
    marks, first = {}, 0
    for name in _float_fields():
        shape = getattr(sources, name).shape
        size = int(np.prod(shape))
        bits = np.arange(_MARK + first, _MARK + first + size, dtype=np.uint64)
        marks[name] = bits.view(np.float64).reshape(shape)
        first += size
    return replace(sources, **marks)


def _find(sources: ObservedArrays, numbers: list[int]) -> tuple[tuple[Array, ...], Indices]:
    """The arrays that hold these numbers, and where the numbers are when those stand behind each other."""
    wanted = np.array(numbers, dtype=np.intp)
    places = np.zeros_like(wanted)
    arrays: list[Array] = []
    first = length = 0
    for name in _float_fields():
        array = getattr(sources, name).reshape(-1)
        inside = (wanted >= first) & (wanted < first + len(array))
        if inside.any():
            arrays.append(array)
            places[inside] = wanted[inside] - first + length
            length += len(array)
        first += len(array)
    return tuple(arrays), places


def _runs(arrays: tuple[Array, ...], places: Indices) -> tuple[Array, ...]:
    """Views of the numbers at these places, in their order; numbers side by side in one array are one view."""
    owners = np.repeat(np.arange(len(arrays)), [len(array) for array in arrays])
    starts = np.concatenate([[0], np.cumsum([len(array) for array in arrays])]).astype(np.intp)
    breaks = np.flatnonzero((np.diff(places) != 1) | (np.diff(owners[places]) != 0)) + 1
    runs = np.split(places, breaks) if len(places) else []
    return tuple(arrays[owners[run[0]]][run[0] - starts[owners[run[0]]] :][: len(run)] for run in runs)


def _float_fields() -> list[str]:
    return [one.name for one in fields(ObservedArrays) if one.name != "actions"]

"""Observations as msgpack bytes, without visiting their numbers one by one.

The shape of an observation never changes while a scene runs: the same keys, the same lists, other numbers. So the
`Observer` is run once on arrays that hold marks instead of numbers, its result is encoded, and every mark that is
found in the bytes tells which number belongs there. From then on an observation is: gather the numbers, write them
between the constant bytes. By construction it decodes to what the `Observer` says.
"""

import ctypes
import re
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from urlab.compile import CompiledScene
from urlab.manager.observation import Array, Observer, Sources
from urlab_wire import encode
from urlab_wire.enums import ObservationLevel

_FLOAT = b"\xcb"
_MARK = 0x7E37 << 48
"""The bits of the first mark, as a float64; the mark of number k has k added. No text can contain one: 0xcb 0x7e is
not UTF-8."""

_MARKS = re.compile(re.escape(_FLOAT) + b"\x7e\x37(.{6})", re.DOTALL)
_FLOAT_BYTES = 9
_NUMBER_BYTES = 8

Indices = NDArray[np.intp]


class PackedObserver:
    """Packs observations of one scene. The owner of the physics lock calls it."""

    def __init__(self, scene: CompiledScene, sources: Sources) -> None:
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

    ``memory`` covers the arrays that hold the numbers, ``picked`` are those that are wanted (at ``places``), in wire
    order. ``slots`` are where they go: every ninth byte on, big-endian, as msgpack wants them. ``parts`` alternate
    between constant bytes and views into the memory of the slots. ``sources`` are kept alive by being here.
    """

    sources: Sources
    memory: Array
    places: Indices
    picked: Array
    slots: Array
    parts: tuple[bytes | memoryview, ...]

    @classmethod
    def of(cls, blob: bytes, sources: Sources) -> "_Template":
        """Compile an encoded observation of marks."""
        marks = [*_MARKS.finditer(blob)]
        memory, places = _find(sources, [int.from_bytes(match[1], "big") for match in marks])
        count = len(places)
        rows = np.full((count, _FLOAT_BYTES), _FLOAT[0], dtype=np.uint8)
        flat = rows.reshape(-1).data
        return cls(
            sources=sources,
            memory=memory,
            places=places,
            picked=np.empty(count),
            slots=np.ndarray(
                (count,), ">f8", buffer=flat if count else bytearray(1), offset=1, strides=(_FLOAT_BYTES,)
            ),
            parts=tuple(_parts(blob, [match.start() for match in marks], flat)),
        )

    def fill(self) -> bytes:
        """The bytes with the numbers that the sources hold now."""
        self.memory.take(self.places, out=self.picked, mode="clip")
        self.slots[:] = self.picked
        return b"".join(self.parts)


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


def _marked(sources: Sources) -> Sources:
    """Arrays of the same shapes that hold marks, numbered in the order of the fields."""
    marks, first = {}, 0
    for name in _float_fields():
        shape = getattr(sources, name).shape
        size = int(np.prod(shape))
        bits = np.arange(_MARK + first, _MARK + first + size, dtype=np.uint64)
        marks[name] = bits.view(np.float64).reshape(shape)
        first += size
    return replace(sources, **marks)


def _find(sources: Sources, numbers: list[int]) -> tuple[Array, Indices]:
    """Memory that covers the arrays of these numbers, and where the numbers are in it.

    One gather from there is several times cheaper than one per array. It spans whatever lies between the arrays as
    well, but only the places of the numbers are ever read.
    """
    wanted = np.array(numbers, dtype=np.intp)
    addresses = np.zeros_like(wanted)
    first = 0
    for name in _float_fields():
        array = getattr(sources, name)
        inside = (wanted >= first) & (wanted < first + array.size)
        addresses[inside] = array.ctypes.data + (wanted[inside] - first) * _NUMBER_BYTES
        first += array.size
    if not len(wanted):
        return np.zeros(1), wanted
    lowest = int(addresses.min())
    places = (addresses - lowest) // _NUMBER_BYTES
    memory = (ctypes.c_double * (int(places.max()) + 1)).from_address(lowest)
    return np.frombuffer(memoryview(memory), dtype=np.float64), places


def _float_fields() -> list[str]:
    return [one.name for one in fields(Sources) if one.name != "actions"]

"""Observations as msgpack bytes, without visiting their numbers one by one.

The shape of an observation never changes while a scene runs: the same keys, the same lists, other numbers. So the
`Observer` is run once on arrays that hold marks instead of numbers, its result is encoded, and every mark that is
found in the bytes tells which number belongs there. From then on an observation is: gather the numbers, write them
between the constant bytes. By construction it decodes to what the `Observer` says.
"""

import re
from dataclasses import dataclass, fields, replace

import msgspec
import numpy as np

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


class PackedObserver:
    """Packs observations of one scene. The owner of the physics lock calls it."""

    def __init__(self, scene: CompiledScene, sources: Sources) -> None:
        self._scene = scene
        self._sources = sources
        self._actions = b""
        self._templates: dict[ObservationLevel, _Template] = {}

    def pack(self, level: ObservationLevel) -> tuple[msgspec.Raw, msgspec.Raw]:
        """Every robot at that level, and every entity."""
        if self._sources.actions.tobytes() != self._actions:
            self._templates.clear()
            self._actions = self._sources.actions.tobytes()
        template = self._templates.get(level)
        if template is None:
            marked = Observer(self._scene, _marked(self._sources))
            blobs = encode(marked.articulations(level)), encode(marked.entities())
            template = self._templates[level] = _Template.of(blobs, self._sources)
        return template.fill()


@dataclass
class _Template:
    """Two blobs of constant bytes with room for numbers between them.

    ``inputs`` are the arrays that hold the numbers, ``gathered`` all of them in a row, ``picked`` those that are
    wanted (at ``places``), in wire order. ``slots`` are where they go: every ninth byte on, big-endian, as msgpack
    wants them. The parts of either blob alternate between constant bytes and views into the memory of the slots.
    """

    inputs: tuple[Array, ...]
    gathered: Array
    places: "np.ndarray[tuple[int], np.dtype[np.intp]]"
    picked: Array
    slots: Array
    first_parts: tuple[bytes | memoryview, ...]
    second_parts: tuple[bytes | memoryview, ...]

    @classmethod
    def of(cls, blobs: tuple[bytes, bytes], sources: Sources) -> "_Template":
        """Compile two encoded observations of marks."""
        first, second = ([*_MARKS.finditer(blob)] for blob in blobs)
        inputs, places = _inputs(sources, [int.from_bytes(match[1], "big") for match in (*first, *second)])
        count = len(places)
        rows = np.full((count, _FLOAT_BYTES), _FLOAT[0], dtype=np.uint8)
        flat, border = rows.reshape(-1).data, len(first) * _FLOAT_BYTES
        return cls(
            inputs=inputs,
            gathered=np.empty(sum(one.size for one in inputs)),
            places=places,
            picked=np.empty(count),
            slots=np.ndarray((count,), ">f8", buffer=flat if count else b"\0", offset=1, strides=(_FLOAT_BYTES,)),
            first_parts=tuple(_parts(blobs[0], [match.start() for match in first], flat[:border])),
            second_parts=tuple(_parts(blobs[1], [match.start() for match in second], flat[border:])),
        )

    def fill(self) -> tuple[msgspec.Raw, msgspec.Raw]:
        """The bytes with the numbers that the sources hold now."""
        if len(self.places):
            np.concatenate(self.inputs, out=self.gathered)
            self.gathered.take(self.places, out=self.picked, mode="clip")
            self.slots[:] = self.picked
        return msgspec.Raw(b"".join(self.first_parts)), msgspec.Raw(b"".join(self.second_parts))


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


def _inputs(
    sources: Sources, numbers: list[int]
) -> tuple[tuple[Array, ...], "np.ndarray[tuple[int], np.dtype[np.intp]]"]:
    """The arrays that hold these numbers, flat, and where the numbers are when those arrays are put in a row."""
    wanted = np.array(numbers, dtype=np.intp)
    places = np.zeros_like(wanted)
    inputs, first, offset = [], 0, 0
    for name in _float_fields():
        flat = getattr(sources, name).reshape(-1)
        inside = (wanted >= first) & (wanted < first + flat.size)
        if inside.any():
            places[inside] = wanted[inside] - first + offset
            inputs.append(flat)
            offset += flat.size
        first += flat.size
    return tuple(inputs), places


def _float_fields() -> list[str]:
    return [one.name for one in fields(Sources) if one.name != "actions"]

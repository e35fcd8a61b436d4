"""Observations as msgpack bytes, without visiting their numbers one by one.

The shape of an observation never changes while a scene runs: the same keys, the same lists, other numbers. So the
`Observer` is run once on arrays that hold marks instead of numbers, its result is encoded, and every mark that is
found in the bytes tells which number belongs there. From then on an observation is: pick the numbers out of MjData's
buffer, write them between the constant bytes. By construction it decodes to what the `Observer` says.
"""

import re
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from urlab.compile import CompiledScene
from urlab.manager.observation import DATA_FIELDS, Array, ObservedArrays, Observer
from urlab_wire import encode
from urlab_wire.enums import ObservationLevel

_FLOAT = b"\xcb"
_MARK = 0x7E37 << 48
"""The bits of the first mark, as a float64; the mark of number k has k added. No text can contain one: 0xcb 0x7e is
not UTF-8."""

_MARKS = re.compile(re.escape(_FLOAT) + b"\x7e\x37\0\0\0(.{3})", re.DOTALL)
"""The bytes of constant numbers can contain one, but are as unlikely to as 2**-48 each."""
_FLOAT_BYTES = 9
_NUMBER_BYTES = 8

Indices = NDArray[np.intp]
Copies = list[tuple[Array, Array]]
"""(into, from): what has to be copied before numbers are picked."""


class PackedObserver:
    """Packs observations of one scene. The owner of the physics lock calls it."""

    def __init__(self, scene: CompiledScene, sources: ObservedArrays) -> None:
        self._scene = scene
        self._sources = sources
        self._commands = b""
        self._actions = b""
        self._templates: dict[ObservationLevel, _Template] = {}

    def pack(self, level: ObservationLevel) -> bytes:
        """Every robot at that level, and every entity: two entries of a map, keys and values, without its head."""
        commands = self._sources.commands.tobytes()
        if commands != self._commands:
            self._commands = commands
            self._take_commands()
        template = self._templates.get(level)
        if template is None:
            template = self._templates[level] = self._compiled(level)
        return template.fill()

    def _take_commands(self) -> None:
        """Twists and actions change seldom compared with the observations that show them."""
        actions = self._sources.actions.tobytes()
        if actions != self._actions:
            self._templates.clear()
            self._actions = actions
        for template in self._templates.values():
            template.take_twists()

    def _compiled(self, level: ObservationLevel) -> "_Template":
        marked = Observer(self._scene, _marked(self._sources, _fixed_bodies(self._scene.model)))
        blocks = {"per_articulation": marked.articulations(level), "entities": marked.entities()}
        return _Template(encode(blocks)[1:], self._sources)


class _Template:
    """An encoded observation: constant bytes with slots for numbers between them.

    Slots are every ninth byte on, big-endian, as msgpack wants them: first those of MjData's numbers, in wire order,
    then those of twists. The parts alternate between constant bytes and views into the memory of the slots.
    """

    __slots__ = (
        "_buffer",
        "_copies",
        "_parts",
        "_picked",
        "_places",
        "_slots",
        "_twist",
        "_twist_places",
        "_twist_slots",
    )

    def __init__(self, blob: bytes, sources: ObservedArrays) -> None:
        """Compile an encoded observation of marks."""
        marks = [*_MARKS.finditer(blob)]
        wanted = np.array([int.from_bytes(match[1], "big") for match in marks], dtype=np.intp)
        twists_begin = sum(getattr(sources, name).size for name in DATA_FIELDS)
        of_data = wanted < twists_begin
        self._buffer, self._places, self._copies = _find(sources, wanted[of_data])
        self._picked = np.empty(len(self._places))
        self._twist = sources.twist
        self._twist_places = wanted[~of_data] - twists_begin
        memory = bytearray(_FLOAT * max(1, _FLOAT_BYTES * len(marks)))
        slots: Array = np.ndarray((len(marks),), ">f8", buffer=memory, offset=1, strides=(_FLOAT_BYTES,))
        self._slots, self._twist_slots = np.split(slots, [len(self._places)])
        slot_of_mark = np.argsort(np.argsort(~of_data, kind="stable")).tolist()
        self._parts = _parts(blob, [match.start() for match in marks], slot_of_mark, memoryview(memory))
        self.take_twists()

    def take_twists(self) -> None:
        """Copy the twists that are in force now."""
        self._twist_slots[:] = self._twist.take(self._twist_places)

    def fill(self) -> bytes:
        """The bytes with the numbers that MjData holds now, and the twists that were taken last."""
        for into, array in self._copies:
            into[:] = array
        self._buffer.take(self._places, out=self._picked, mode="clip")
        self._slots[:] = self._picked
        return b"".join(self._parts)


def _parts(blob: bytes, starts: list[int], slots: list[int], memory: memoryview) -> tuple[bytes | memoryview, ...]:
    """Constant bytes and runs of numbers, in turn; numbers that follow each other directly make one run."""
    parts: list[bytes | memoryview] = []
    position = mark = 0
    while mark < len(starts):
        last = mark
        while starts[last + 1 : last + 2] == [starts[last] + _FLOAT_BYTES] and slots[last + 1] == slots[last] + 1:
            last += 1
        numbers = memory[slots[mark] * _FLOAT_BYTES : (slots[last] + 1) * _FLOAT_BYTES]
        parts += [blob[position : starts[mark]], numbers]
        position, mark = starts[last] + _FLOAT_BYTES, last + 1
    return (*parts, blob[position:])


def _fixed_bodies(model: Any) -> Indices:
    """Bodies that no joint and no mocap pose can move: their poses are the same in every observation."""
    is_fixed = (model.body_weldid == 0) & (model.body_mocapid[model.body_rootid] < 0)
    return np.flatnonzero(is_fixed)


def _marked(sources: ObservedArrays, fixed: Indices) -> ObservedArrays:
    """Arrays of the same shapes that hold marks, numbered in the order of the fields, the twists last.

    The poses of fixed bodies are there as they are: they become constant bytes.
    """
    marks: dict[str, Any] = {}
    first = 0
    for name in (*DATA_FIELDS, "twist"):
        shape = getattr(sources, name).shape
        size = int(np.prod(shape))
        bits = np.arange(_MARK + first, _MARK + first + size, dtype=np.uint64)
        marks[name] = bits.view(np.float64).reshape(shape)
        first += size
    for name in ("xpos", "xquat"):
        marks[name][fixed] = getattr(sources, name)[fixed]
    return replace(sources, **marks)


def _find(sources: ObservedArrays, wanted: Indices) -> tuple[Array, Indices, Copies]:
    """An array over MjData's buffer, and where in it the numbers of these marks are.

    MuJoCo keeps all these arrays in one allocation. One pick from there is several times cheaper than one per array;
    only the places of the numbers are ever read. Like each of the arrays it keeps MjData alive. Where the arrays do not
    tell that they share one, as before MuJoCo 4, the buffer is our own, and each array is copied there first.
    """
    arrays = [getattr(sources, name) for name in DATA_FIELDS]
    held = [array for array in arrays if array.size]
    lowest = min(held, key=_address)
    nbytes = max(_address(array) + array.nbytes for array in held) - _address(lowest)
    if any(array.base is None or array.base is not lowest.base for array in held):
        return _gathered(arrays, wanted)
    if nbytes > sources.buffer_bytes:
        raise RuntimeError(f"MjData's arrays span {nbytes} bytes, but its buffer has {sources.buffer_bytes}")
    buffer = as_strided(lowest.reshape(-1), (nbytes // _NUMBER_BYTES,), (_NUMBER_BYTES,), writeable=False)
    places = np.zeros_like(wanted)
    first = 0
    for array in arrays:
        inside = (wanted >= first) & (wanted < first + array.size)
        places[inside] = wanted[inside] - first + (_address(array) - _address(lowest)) // _NUMBER_BYTES
        first += array.size
    return buffer, places, []


def _gathered(arrays: list[Array], wanted: Indices) -> tuple[Array, Indices, Copies]:
    """A buffer of our own in the order of the marks, and the copies that fill it."""
    buffer: Array = np.empty(sum(array.size for array in arrays))
    copies, begin = [], 0
    for array in arrays:
        copies.append((buffer[begin : begin + array.size].reshape(array.shape), array))
        begin += array.size
    return buffer, wanted, copies


def _address(array: Array) -> int:
    return array.ctypes.data

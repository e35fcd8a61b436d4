"""ROS 2 messages as bytes: CDR of the few types that files of ours hold, and their definitions.

A `MessageTemplate` is a message of fixed size whose numbers are still to come: where names and lengths do not change,
thousands of messages are one array of bytes, filled column by column.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

_DEFINITIONS = {
    "builtin_interfaces/Time": "int32 sec\nuint32 nanosec",
    "std_msgs/Header": "builtin_interfaces/Time stamp\nstring frame_id",
    "rosgraph_msgs/Clock": "builtin_interfaces/Time clock",
    "sensor_msgs/JointState": (
        "std_msgs/Header header\nstring[] name\nfloat64[] position\nfloat64[] velocity\nfloat64[] effort"
    ),
    "geometry_msgs/Vector3": "float64 x\nfloat64 y\nfloat64 z",
    "geometry_msgs/Quaternion": "float64 x\nfloat64 y\nfloat64 z\nfloat64 w",
    "geometry_msgs/Transform": "geometry_msgs/Vector3 translation\ngeometry_msgs/Quaternion rotation",
    "geometry_msgs/TransformStamped": (
        "std_msgs/Header header\nstring child_frame_id\ngeometry_msgs/Transform transform"
    ),
    "tf2_msgs/TFMessage": "geometry_msgs/TransformStamped[] transforms",
    "sensor_msgs/CompressedImage": "std_msgs/Header header\nstring format\nuint8[] data",
    "urlab_msgs/NamedValues": "std_msgs/Header header\nstring[] name\nfloat64[] value",
    "urlab_msgs/State": "float64 time\nfloat64[] qpos\nfloat64[] qvel\nfloat64[] ctrl\nfloat64[] sensordata",
}
_ENCAPSULATION = b"\0\1\0\0"
"""Plain CDR, little endian; alignment counts from behind it."""

_SEPARATOR = "\n" + "=" * 80 + "\nMSG: "


def type_name(short: str) -> str:
    """``sensor_msgs/JointState`` as ROS 2 spells it: ``sensor_msgs/msg/JointState``."""
    package, _, name = short.partition("/")
    return f"{package}/msg/{name}"


def definition(short: str) -> str:
    """The definition of a type, followed by those of the types that it is made of."""
    needed: list[str] = []

    def collect(one: str) -> None:
        for line in _DEFINITIONS[one].splitlines():
            inner = line.split()[0].removesuffix("[]")
            if inner in _DEFINITIONS and inner not in needed:
                needed.append(inner)
                collect(inner)

    collect(short)
    return _DEFINITIONS[short] + "".join(f"{_SEPARATOR}{one}\n{_DEFINITIONS[one]}" for one in needed) + "\n"


@dataclass(slots=True)
class MessageTemplate:
    """Bytes of one message, in the order of its fields. ``places`` are the offsets of numbers, by what they are of."""

    data: bytearray = field(default_factory=lambda: bytearray(_ENCAPSULATION))
    places: list[tuple[str, int]] = field(default_factory=list)

    def time(self) -> "MessageTemplate":
        """A time, to be filled in: seconds (int32) and nanoseconds (uint32)."""
        self._align(4)
        return self._room("stamp", 8)

    def text(self, text: str) -> "MessageTemplate":
        """A string."""
        encoded = text.encode() + b"\0"
        return self._number("<I", 4, len(encoded))._raw(encoded)

    def texts(self, texts: Sequence[str]) -> "MessageTemplate":
        """A sequence of strings."""
        self._number("<I", 4, len(texts))
        for one in texts:
            self.text(one)
        return self

    def header(self, frame: str = "") -> "MessageTemplate":
        """A std_msgs/Header: its time is to be filled in."""
        return self.time().text(frame)

    def doubles(self, of: str, count: int) -> "MessageTemplate":
        """A sequence of float64, to be filled in."""
        self._number("<I", 4, count)
        return self.fixed_doubles(of, count) if count else self

    def fixed_doubles(self, of: str, count: int) -> "MessageTemplate":
        """So many float64 one after the other, to be filled in."""
        self._align(8)
        return self._room(of, 8 * count)

    def count(self, count: int) -> "MessageTemplate":
        """How many elements follow."""
        return self._number("<I", 4, count)

    def octets(self, content: bytes) -> "MessageTemplate":
        """A sequence of bytes."""
        return self._number("<I", 4, len(content))._raw(content)

    def filled(self, time_s: float, **doubles: Sequence[float]) -> bytes:
        """One message: its times are ``time_s``, its numbers those of the given names, with ``_`` for spaces."""
        data, whole_ns = bytearray(self.data), round(time_s * 1e9)
        for of, place in self.places:
            if of == "stamp":
                struct.pack_into("<iI", data, place, *divmod(whole_ns, 10**9))
            else:
                numbers = doubles[of.replace(" ", "_")]
                struct.pack_into(f"<{len(numbers)}d", data, place, *numbers)
        return bytes(data)

    def _room(self, of: str, length: int) -> "MessageTemplate":
        self.places.append((of, len(self.data)))
        return self._raw(bytes(length))

    def _number(self, form: str, size: int, number: int) -> "MessageTemplate":
        self._align(size)
        return self._raw(struct.pack(form, number))

    def _align(self, size: int) -> None:
        self.data += bytes(-(len(self.data) - len(_ENCAPSULATION)) % size)

    def _raw(self, content: bytes) -> "MessageTemplate":
        self.data += content
        return self


def transforms(frames: Sequence[str], parent: str = "world") -> MessageTemplate:
    """A tf2_msgs/TFMessage: poses of frames in ``parent``, each x y z and the rotation x y z w, as ``pose 0`` ..."""
    message = MessageTemplate().count(len(frames))
    for index, frame in enumerate(frames):
        message.header(parent).text(frame).fixed_doubles(f"pose {index}", 7)
    return message


def compressed_image(frame: str, content: bytes, form: str = "jpeg") -> MessageTemplate:
    """A sensor_msgs/CompressedImage; its time is to be filled in."""
    return MessageTemplate().header(frame).text(form).octets(content)

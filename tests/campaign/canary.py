"""A tree of files that no process may touch: inotify tells when one is opened, read, made, changed or removed."""

import ctypes
import os
import struct
from collections import Counter
from pathlib import Path

_FILE_EVENTS = {
    0x1: "read",
    0x2: "written",
    0x20: "opened",
    0x100: "made",
    0x200: "removed",
    0x40: "moved",
    0x80: "moved",
}
_MASK = 0x1 | 0x2 | 0x20 | 0x100 | 0x200 | 0x40 | 0x80
_IS_FOLDER = 0x40000000
_EVENT = struct.Struct("iIII")


class Canary:
    """Watches every folder of a tree, as it is when this is made. Opening a folder is no event, its files are."""

    def __init__(self, root: Path) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self._folders: dict[int, Path] = {}
        for folder in (root, *(one for one in root.rglob("*") if one.is_dir() and not one.is_symlink())):
            watch = libc.inotify_add_watch(self._descriptor, os.fsencode(folder), _MASK)
            if watch < 0:
                raise OSError(ctypes.get_errno(), "inotify")
            self._folders[watch] = folder

    def events(self) -> Counter[str]:
        """What has happened since it was asked last: ``read /path``, and how often."""
        found: Counter[str] = Counter()
        while True:
            try:
                data = os.read(self._descriptor, 1 << 16)
            except BlockingIOError:
                return found
            start = 0
            while start < len(data):
                watch, mask, _, size = _EVENT.unpack_from(data, start)
                name = data[start + _EVENT.size : start + _EVENT.size + size].rstrip(b"\0").decode(errors="replace")
                start += _EVENT.size + size
                if not mask & _IS_FOLDER or mask & 0x3C0:
                    words = [word for bit, word in _FILE_EVENTS.items() if mask & bit]
                    found.update(f"{word} {self._folders.get(watch, '?')}/{name}" for word in words)

    def close(self) -> None:
        os.close(self._descriptor)

"""Which files a child process may read, held by the system itself (Landlock, Linux 5.13 and newer).

MuJoCo opens files by their names. What a name means to it may differ from what it means to us, and a link may appear
between our look and its own. So a child that lets MuJoCo read a model where it stands gives up, for good, the right to
read anything but the folders that it is told, and what Python itself is made of.
"""

import ctypes
import os
import struct
import sys
from collections.abc import Iterable
from pathlib import Path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
"""Numbers of system calls, the same on every processor."""

_PR_SET_NO_NEW_PRIVS = 38
_PATH_BENEATH = 1
_READ_FILE, _READ_DIR = 1 << 2, 1 << 3
_RIGHTS = struct.Struct("=Q")
_RULE = struct.Struct("=Qi")
_LIBRARIES = ("/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib", "/lib64")


def read_only_below(folders: Iterable[Path]) -> bool:
    """From now on this thread, and those that it starts, read nothing else; whether the system can hold that.

    Python and its packages stay readable: modules are imported when they are first needed.
    """
    if sys.platform != "linux":
        return False
    system = ctypes.CDLL(None, use_errno=True)
    rules = system.syscall(_CREATE_RULESET, _RIGHTS.pack(_READ_FILE | _READ_DIR), _RIGHTS.size, 0)
    if rules < 0:  # an older system, or one that was built or started without it
        return False
    try:
        for folder in {*map(str, folders), *_LIBRARIES, sys.prefix, sys.base_prefix, *filter(None, sys.path)}:
            _allow(system, rules, folder)
        system.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        return bool(system.syscall(_RESTRICT_SELF, rules, 0) == 0)
    finally:
        os.close(rules)


def _allow(system: ctypes.CDLL, rules: int, path: str) -> None:
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # there is nothing to be read
        return
    try:
        rights = _READ_FILE | _READ_DIR if Path(path).is_dir() else _READ_FILE
        system.syscall(_ADD_RULE, rules, _PATH_BENEATH, _RULE.pack(rights, handle), 0)
    finally:
        os.close(handle)

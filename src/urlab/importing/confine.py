"""Takes limits upon this process, then becomes the command: ``confine.py TERMS COMMAND...``.

It is run as a script by an interpreter without site packages: the limits are in force before anything else starts.
"""

import ctypes
import json
import math
import os
import resource
import signal
import sys

_PR_SET_PDEATHSIG = 1


def confine(terms: dict[str, float]) -> None:
    """``terms`` are those of `ProcessLimits`, and parent, the process that this one must not outlive."""
    cpu_s = math.ceil(terms["timeout_s"] * (os.cpu_count() or 1)) + 1
    _limit(resource.RLIMIT_AS, int(terms["memory_bytes"]))
    _limit(resource.RLIMIT_CPU, cpu_s)
    _limit(resource.RLIMIT_FSIZE, int(terms["written_bytes"]))
    _limit(resource.RLIMIT_CORE, 0)
    os.nice(int(terms["niceness"]))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != terms["parent"]:
        sys.exit("the parent is gone")


def _limit(kind: int, value: int) -> None:
    _, most = resource.getrlimit(kind)
    value = value if most == resource.RLIM_INFINITY else min(value, most)
    resource.setrlimit(kind, (value, most))


if __name__ == "__main__":
    confine(json.loads(sys.argv[1]))
    os.execvp(sys.argv[2], sys.argv[2:])

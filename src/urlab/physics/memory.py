"""Memory that is free, but that the allocator keeps to itself."""

import ctypes
import sys


def give_memory_back() -> None:
    """Return free memory to the system. Models are large, and what is left of them would else pile up."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it, musl does not
        if trim is not None:
            trim(0)

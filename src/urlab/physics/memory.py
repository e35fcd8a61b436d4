"""Memory that is free, but that the allocator keeps to itself."""

import ctypes
import gc
import sys


def give_memory_back() -> None:
    """Return free memory to the system. A model is large, and what is left of it would else stay for good."""
    gc.collect()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it, musl does not
        if trim is not None:
            trim(0)

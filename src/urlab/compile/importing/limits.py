"""How much one import may cost."""

from dataclasses import dataclass

_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """``timeout_s`` and ``memory_bytes`` bound the child process that compiles; the others bound what is read."""

    timeout_s: float = 60.0
    memory_bytes: int = 4096 * _MIB
    file_bytes: int = 256 * _MIB
    total_bytes: int = 1024 * _MIB


DEFAULT_LIMITS = Limits()

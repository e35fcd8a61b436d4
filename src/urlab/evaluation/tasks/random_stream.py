"""Chance that is the same on every machine and in every version of numpy."""

import hashlib
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")


class RandomStream:
    """Numbers from the raw output of PCG64, seeded by a text.

    numpy promises that a bit generator's raw output never changes; it promises less for what is derived from it, so
    that is done here.
    """

    def __init__(self, seed_text: str) -> None:
        digest = hashlib.sha256(seed_text.encode()).digest()
        self._source = np.random.PCG64(int.from_bytes(digest, "big"))

    def unit(self) -> float:
        """Evenly from [0, 1), a multiple of 2**-53."""
        return (int(self._source.random_raw()) >> 11) * 2.0**-53

    def between(self, low: float, high: float) -> float:
        """Evenly between two numbers."""
        return low + (high - low) * self.unit()

    def choice(self, options: Sequence[T]) -> T:
        """One of them."""
        return options[int(self.unit() * len(options))]

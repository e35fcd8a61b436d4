"""How the numbers of one articulation are picked out of a whole model's arrays."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Float64Array = NDArray[np.float64]
Index = slice | NDArray[np.intp]


def index_of(ids: Sequence[int]) -> Index:
    """An index that selects ``ids`` in their order: a slice (a view, no copy) when they are consecutive."""
    if len(ids) > 0 and list(ids) == list(range(ids[0], ids[0] + len(ids))):
        return slice(ids[0], ids[0] + len(ids))
    return np.asarray(ids, dtype=np.intp)

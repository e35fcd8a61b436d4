"""What there is to see."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Stage:
    """A model and one state of it. Whoever views it reads, and never writes, model and arrays.

    ``key`` is another one whenever the model is; ``sim_time`` is None while nothing plays. ``qpos`` is (nq,),
    ``mocap_pos`` (nmocap, 3) and ``mocap_quat`` (nmocap, 4), w first.
    """

    key: Hashable
    model: Any
    qpos: NDArray[np.float64]
    mocap_pos: NDArray[np.float64]
    mocap_quat: NDArray[np.float64]
    sim_time: float | None = None

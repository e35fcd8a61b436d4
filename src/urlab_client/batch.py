"""Many copies of the running scene, stepped together on the server; an extension of ours."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from urlab_wire.ops import batch as wire

if TYPE_CHECKING:
    from urlab_client.client import URLabClient

Array = npt.NDArray[np.float64]


class URLabBatch:
    """``num`` simulations that began where the scene stood. `URLabClient.batch` makes one; closing it gives it up.

    ``time`` (num,), ``qpos`` (num, nq), ``qvel`` (num, nv) and ``sensordata`` (num, nsensordata) are those of the last
    reply, read-only, in the order of ``client.model``. The running scene does not notice; the end of the play ends it.
    """

    def __init__(
        self, client: "URLabClient", num: int, *, threads: int = 0, randomize: Mapping[str, Any] | None = None
    ) -> None:
        self._client = client
        entries = None if randomize is None else {key: dict(one) for key, one in randomize.items()}
        opened = client._ask(wire.BatchOpenRequest(num=num, threads=threads or None, randomize=entries))
        self._id, self.num, self.timestep = opened.batch_id, opened.num, opened.timestep
        self.n_setpoints = opened.setpoints
        """The setpoints of a row: those of every robot, in the order of ``client.articulations``."""

        self._widths = {"time": None, "qpos": opened.nq, "qvel": opened.nv, "sensordata": opened.nsensordata}
        self.time = self.qpos = self.qvel = self.sensordata = np.zeros((num, 0))
        self.reset()

    def __repr__(self) -> str:
        return f"URLabBatch(num={self.num}, n_setpoints={self.n_setpoints})"

    def step(self, ctrl: npt.ArrayLike | None = None, n_steps: int = 1) -> Self:
        """``n_steps`` mj_steps of all, with setpoints (num, n_setpoints), or with those of the step before."""
        data = None
        if ctrl is not None:
            given = np.ascontiguousarray(ctrl, dtype="<f8")
            if given.shape != (self.num, self.n_setpoints):
                raise ValueError(f"ctrl has the shape {given.shape}, expected {(self.num, self.n_setpoints)}")
            data = given.tobytes()
        return self._take(self._client._ask(wire.BatchStepRequest(batch_id=self._id, n_steps=n_steps, ctrl=data)))

    def reset(self, ids: Sequence[int] | None = None, *, seeds: Sequence[int] | None = None) -> Self:
        """Put all, or those of ``ids``, back to where they began.

        ``seeds``, one for each, draw the entries of ``randomize``; without, the model is the compiled one.
        """
        chosen = None if ids is None else [int(one) for one in ids]
        drawn = None if seeds is None else [int(one) for one in seeds]
        return self._take(self._client._ask(wire.BatchResetRequest(batch_id=self._id, ids=chosen, seeds=drawn)))

    def close(self) -> None:
        """Give it up; the end of the session does so too."""
        self._client._ask(wire.BatchCloseRequest(batch_id=self._id))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def _take(self, reply: wire.BatchArrays) -> Self:
        for name, width in self._widths.items():
            array: Array = np.frombuffer(getattr(reply, name), dtype="<f8")
            setattr(self, name, array if width is None else array.reshape(self.num, width))
        return self

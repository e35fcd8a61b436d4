"""The two floors under a step request: a bare round trip of the same sizes, and the same physics without a server."""

import contextlib
from collections.abc import Iterator
from typing import Any

import mujoco
import numpy as np
import zmq
from numpy.typing import NDArray

from urlab.cli.bench.echo_sizes import READY_FILE, echo_request
from urlab.cli.bench.spawn import ECHO, running

_TIMEOUT_MS = 5000


class Echo:
    """A bare REQ socket to a process that answers at once; ``pid`` is that process's."""

    def __init__(self, endpoint: str, pid: int) -> None:
        self.pid = pid
        self._socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.REQ)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.RCVTIMEO, _TIMEOUT_MS)
        self._socket.connect(endpoint)
        self._frame = b""

    def use(self, request_bytes: int, reply_bytes: int) -> None:
        """The sizes of the round trips from now on."""
        self._frame = echo_request(request_bytes, reply_bytes)

    def once(self) -> None:
        """One round trip."""
        self._socket.send(self._frame)
        self._socket.recv()

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


@contextlib.contextmanager
def echoing(scheme: str = "tcp") -> Iterator[Echo]:
    """An echo over tcp or ipc, with its far end in another process."""
    with running([*ECHO, scheme]) as (child, folder):
        endpoints, _ = child.wait_for_file(folder / READY_FILE)
        echo = Echo(str(endpoints["endpoint"]), child.pid)
        try:
            yield echo
        finally:
            echo.close()


class PlainLoop:
    """``mj_step`` in a loop, with the controls that the server applied at each step, (steps, nu).

    The state is read into lists, as a reply needs it. Replaying the controls keeps the states equal to the server's
    where a controller computes them.
    """

    def __init__(self, model: Any, controls: NDArray[np.float64]) -> None:
        self._model = model
        self._controls = list(controls)
        self._done = 0
        self.data = mujoco.MjData(model)
        self.n_steps = 1

    def reset(self) -> None:
        """Back to the start, as the server's reset does it."""
        mujoco.mj_resetData(self._model, self.data)
        mujoco.mj_forward(self._model, self.data)
        self._done = 0

    def once(self) -> tuple[list[float], list[float], list[float]]:
        """`n_steps` steps, then qpos, qvel and sensordata."""
        model, data = self._model, self.data
        for controls in self._controls[self._done : self._done + self.n_steps]:
            data.ctrl[:] = controls
            mujoco.mj_step(model, data)
        self._done += self.n_steps
        return data.qpos.tolist(), data.qvel.tolist(), data.sensordata.tolist()

"""One scene, reachable in every way that is measured: all of them run the same steps from the same start."""

import copy
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from urlab.app import launch
from urlab.cli.bench.floors import Echo, PlainLoop
from urlab.cli.bench.plan import SCENES, Case
from urlab.cli.bench.raw import RawClient, connect, step_frame
from urlab.cli.bench.spawn import Server, serving
from urlab_client import URLabArticulation, URLabClient


class ScenePaths:
    """A server process with a typed and a raw client on one session, an embedded server, and a plain loop.

    ``longest`` is the largest number of steps that a block may take.
    """

    def __init__(self, scene: str, longest: int) -> None:
        self.scene = scene
        with ExitStack() as opened:
            self.server: Server = opened.enter_context(serving(SCENES[scene]))
            self.rss_ready_mb = self.server.rss_mb
            self.client = opened.enter_context(connect(self.server.step_endpoint))
            self.raw = RawClient(self.server.step_endpoint)
            opened.callback(self.raw.close)
            self.embedded = opened.enter_context(embedded(SCENES[scene], opened))
            restart(self.client)
            self.plain = PlainLoop(copy.copy(self.embedded.model), record_controls(self.embedded, longest))
            self._opened = opened.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened.close()

    def use(self, case: Case, echo: Echo) -> tuple[int, int]:
        """Get ready for a case; the sizes of its request and its reply in bytes."""
        self.plain.n_steps = case.n_steps
        self.raw.frame = step_frame(self.client, case.n_steps, case.observations)
        sizes = len(self.raw.frame), self.raw.measure_reply()
        echo.use(*sizes)
        return sizes

    def same_state(self) -> bool:
        """Whether the raw client's last reply, the embedded server and the plain loop agree to the last bit."""
        observed = self.raw.reply["per_articulation"]
        return (
            shows(self.embedded, self.plain.data)
            and self.raw.reply["time"] == self.plain.data.time
            and all(
                np.array_equal(one.qpos_array, observed[prefix]["qpos"])
                for prefix, one in self.embedded.articulations.items()
            )
        )


def embedded(targets: Sequence[str], opened: ExitStack) -> URLabClient:
    """The client of a server in this process; its project is gone when ``opened`` is closed."""
    project = opened.enter_context(TemporaryDirectory(prefix="urlab-bench-"))
    return launch(targets, project=Path(project))


def restart(client: URLabClient) -> None:
    """Go back to the start, and set every robot's setpoints to the pose it starts in."""
    client.reset()
    for articulation in client.articulations.values():
        articulation.set_ctrl({name: _start_of(articulation, name, client.model) for name in articulation.actuators})


def _start_of(articulation: URLabArticulation, actuator: str, model: Any) -> float:
    driven = articulation.actuators[actuator]
    joint = articulation.joints.get(driven.joint or "")
    if joint is not None:
        return float(model.qpos0[joint.qpos_offset])
    return max(driven.ctrlrange or (0.0, 0.0))


def record_controls(client: URLabClient, steps: int) -> NDArray[np.float64]:
    """``data.ctrl`` at each of the first ``steps`` steps after a reset, (steps, nu)."""
    restart(client)
    rows = np.zeros((steps, client.model.nu))
    places = [(one, [actuator.id for actuator in one.actuators.values()]) for one in client.articulations.values()]
    for row in rows:
        client.step(1)
        for articulation, ids in places:
            row[ids] = articulation.last_applied_ctrl
    return rows


def shows(client: URLabClient, data: Any) -> bool:
    """Whether a client shows the state of the robots in ``data``, to the last bit.

    It does not look at ``client.data``, which would make every later step slower: most clients never do.
    """
    return client.sim_time == data.time and all(
        np.array_equal(robot.qpos_array, _joined(data.qpos, robot, "qpos"))
        and np.array_equal(robot.qvel_array, _joined(data.qvel, robot, "qvel"))
        for robot in client.articulations.values()
    )


def _joined(vector: Any, robot: URLabArticulation, kind: str) -> list[float]:
    """A robot's numbers out of a whole state vector, joint by joint."""
    return [
        float(vector[getattr(joint, f"{kind}_offset") + i])
        for joint in robot.joints.values()
        for i in range(getattr(joint, f"{kind}_dim"))
    ]

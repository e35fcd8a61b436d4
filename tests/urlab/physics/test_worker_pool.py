"""An error of MuJoCo on one of its own threads: an error for the client that stepped, not the end of the process."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mujoco
import pytest

from urlab.child_process import ServerProcess
from urlab_client import URLabClient, URLabRPCError

pytestmark = pytest.mark.skipif(not hasattr(mujoco, "mju_threadpool"), reason="this MuJoCo has no pool of threads")

BOXES = "".join(
    f'<body pos="{i % 8 * 0.3} {i // 8 * 0.3} .05"><freejoint/><geom type="box" size=".06 .06 .06"/></body>'
    for i in range(60)
)
ISLANDS = f"""<mujoco model="boxes"><size memory="450K"/><worldbody>
  <geom type="plane" size="5 5 .1"/><body pos="0 0 3"><joint name="hinge"/><geom size=".01"/></body>{BOXES}
</worldbody></mujoco>"""
"""Each box is an island of its own: one thread solves them in 440 kB, one after the other, two threads cannot."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Any]:
    model = tmp_path / "boxes.xml"
    model.write_text(ISLANDS)
    with ServerProcess(str(model), "--project", str(tmp_path / "project"), "--log-level", "error") as started:
        yield started


def test_an_error_on_a_thread_of_the_pool_costs_the_step_and_not_the_process(server: Any) -> None:
    port = int(server.endpoints["step"].rpartition(":")[2])
    with (
        URLabClient(step_port=port, step_mode="direct", local_model=False) as driver,
        URLabClient(step_port=port, observer=True, local_model=False, camera_streams=False) as observer,
    ):
        driver.discover()
        observer.discover()
        driver.step(3)
        assert driver.runtime.set_sim_options(num_worker_threads=2).num_worker_threads > 0
        with pytest.raises(URLabRPCError, match=r"MuJoCo failed inside a step with worker threads.*memory") as refused:
            driver.step()
        assert refused.value.code == "physics_error"
        assert "out of memory" in str(observer.sim.status().physics_error)
        driver.reset()
        assert observer.sim.status().physics_error is None
        assert driver.step(5)["step"] == 5
        assert driver.runtime.set_sim_options(iterations=100).num_worker_threads == 0
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(60.0) == 0
    assert "MuJoCo failed on a thread of its own" in server.last_words()
